"""Time a piece of work or a whole command, in this process or in a fresh database of its own."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
import psycopg

from toolkit import embedded
from toolkit.database import schema
from toolkit.database.connection import Database

_ROUNDS = 3
_LOOK = 0.02


@dataclass(frozen=True)
class Timed:
    """The time that something took, by the clock and of the processors, and its answer."""

    seconds: float
    cpu: float
    answer: object


def timed(work, elsewhere=lambda: 0.0):
    """Do the work; its CPU seconds are those of this process, its ended children, and a server elsewhere."""
    started, before = time.perf_counter(), sum(os.times()[:4]) + elsewhere()
    answer = work()
    return Timed(time.perf_counter() - started, sum(os.times()[:4]) + elsewhere() - before, answer)


def line(name, seconds, count, remark=""):
    """Print what took so many seconds, and how many of ``count`` it did in each."""
    print(f"{name:46}{seconds:>8.2f}{count / seconds:>12,.0f}  {remark}", flush=True)


def toolkit(args, environ, *, ends=0):
    """Run ``toolkit`` with ``args``, which must end with the status ``ends``; the most megabytes it ever held."""
    command = [sys.executable, "-m", "toolkit", "-q", *map(str, args)]
    # Compiling some 1,300 modules anew each time would take longer than to load 100,000 rows.
    environ = {name: value for name, value in environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, peak_mb(process.pid))
        time.sleep(_LOOK)
    assert process.returncode == ends, process.stdout.read()
    return peak


def peak_mb(pid="self"):
    """The most memory that a process ever held, 0 for one that has ended."""
    # The high-water mark belongs to the program, where ru_maxrss would start with that of its parent.
    with suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        return int(found[1]) * 1024 / 1e6 if found else 0.0
    return 0.0


def server_cpu(home):
    """The CPU seconds of the PostgreSQL that is embedded under ``home``, with those of sessions that ended."""
    server = psutil.Process(int(next(home.rglob("postmaster.pid")).read_text().split()[0]))
    while True:
        before = server.cpu_times()
        try:
            times = [before, *(session.cpu_times() for session in server.children())]
        except psutil.NoSuchProcess:
            continue
        if server.cpu_times().children_user == before.children_user:
            return sum(each.user + each.system for each in times) + before.children_user + before.children_system


def plain(database):
    """Return the address as libpq takes it."""
    return database.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)


def copy(database, sources):
    """Copy CSV into tables, in one transaction."""
    with psycopg.connect(plain(database)) as connection:
        for table, path in sources.items():
            statement = f"COPY {table} FROM STDIN (FORMAT csv)"
            with connection.cursor() as cursor, cursor.copy(statement) as copying, path.open("rb") as stream:
                while block := stream.read(1 << 20):
                    copying.write(block)
        connection.commit()


@contextmanager
def own_database():
    """A migrated database without rows, and the ``TOOLKIT_HOME`` that it is in; its servers end with it."""
    home = Path(tempfile.mkdtemp(prefix="own-", dir="/tmp"))  # open to the account of PostgreSQL
    try:
        with Database(embedded.database_url(home), embedded=True) as database:
            schema.upgrade(database, service_tables=True)
            yield database, home
    finally:
        embedded.stop(home)
        shutil.rmtree(home)


def in_turn(*works):
    """Return the round of median seconds of each work, which gets a fresh database and its home every time."""
    rounds = [[] for _ in works]
    for _ in range(_ROUNDS):
        for work, times in zip(works, rounds, strict=True):
            with own_database() as (database, home):
                times.append(timed(partial(work, database, home), partial(server_cpu, home)))
    return [sorted(times, key=lambda each: each.seconds)[_ROUNDS // 2] for times in rounds]
