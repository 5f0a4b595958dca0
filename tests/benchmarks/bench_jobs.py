"""Jobs: the cost of a job over its work; a year of nights; starts, kernels and databases killed at random moments.

Two schedulers race for each slot, and one of three is killed: the process that runs the job, its kernel, or the
database server (one of its processes, or all of it). On some nights nobody starts. Each slot must end as one run
that is done, with every file and nothing half published, or as one that is missed and announced once.
"""

from __future__ import annotations

import io
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from itertools import count
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Lock

import nbformat
import psutil
import sqlalchemy as sa
from nbclient import NotebookClient

from tests.benchmarks.timing import timed
from tests.forked import FORKED
from tests.integration.scripted_server import Answer, scripted
from tests.integration.test_job_retention import nights
from tests.job_runner import (
    SLOT,
    STEPS,
    check_done_once,
    check_not_half_published,
    effects,
    holder,
    start,
    start_process,
    victim_job,
)
from tests.made_notebooks import write_notebook
from tests.own_services import own_database
from tests.waiting import wait_until
from toolkit.domain.jobs.outcomes import RunStatus
from toolkit.entrypoints.jobs.job_log import JobLog
from toolkit.entrypoints.notebook_runs import run_notebook
from toolkit.errors import DatabaseError
from toolkit.operations.jobs.history import recent_runs, run_of_slot, steps_of
from toolkit.storage import embedded
from toolkit.storage.database import Database
from toolkit.storage.tables import job_notices

_KILLS = 50
_NIGHTS = 365
_KEPT = 30
_TRIALS = 5
_LANES = 4
"""Servers that are killed beside each other, because a night mostly waits."""
_NOBODY = 0.1
"""The share of nights on which nobody starts."""


def main(scale: float) -> None:
    """Measure, let a year pass, and kill."""
    with ExitStack() as stack:
        servers = [stack.enter_context(own_database()) for _ in range(_LANES + 1)]
        _overhead(*servers[0])
        stack.enter_context(_year(*servers.pop(), max(_KEPT + 5, round(_NIGHTS * scale))))
        for kind in ("runner", "kernel", "database"):
            _kills(kind, max(1, round(_KILLS * scale)), servers)


def _fresh(home: Path, database: Database) -> Path:
    """An empty folder, and an empty history."""
    with database.transaction() as connection:
        connection.exec_driver_sql(
            "TRUNCATE audit.job_steps, audit.job_runs, audit.job_schedules, audit.job_notices"
        )
    return Path(tempfile.mkdtemp(dir=home))


def _notebook(home: Path) -> Path:
    return write_notebook(home / "two.ipynb", "import time\ntime.sleep(0.5)")


def _overhead(database: Database, home: Path) -> None:
    """The seconds of a job over the seconds of its steps, and of a notebook run over its kernel's."""
    quiet, notebook = JobLog(lambda: SLOT, stream=io.StringIO()), _notebook(home)
    environ = {"TOOLKIT_HOME": str(home)}
    slots = (SLOT + timedelta(days=days) for days in count())

    def job(notebook: Path | None = None) -> float:
        made = victim_job(notebook)
        return timed(lambda: start(folder, environ, slot=next(slots), seconds=0, log=quiet, job=made)).seconds

    folder = _fresh(home, database)
    job(notebook)  # loads what is loaded once
    step = sorted(job() for _ in range(_TRIALS))[_TRIALS // 2] / len(STEPS)
    print(f"a step without a notebook: {step:.3f} s over its own work (limit 0.5)")
    runs, jobs = [], []
    for _ in range(_TRIALS):
        bare = timed(lambda: NotebookClient(nbformat.read(notebook, 4), kernel_name="python3").execute()).seconds
        runs.append(timed(lambda: run_notebook(notebook, out=folder / "out.ipynb")).seconds - bare)
        jobs.append(job(notebook) - bare)
    run, with_job = (sorted(each)[_TRIALS // 2] for each in (runs, jobs))
    print(f"over its kernel, by nbclient alone: a run {run:.2f} s, a job with it {with_job:.2f} s (limit 1.5)")
    assert step < 0.5
    assert max(run, with_job) < 1.5


@contextmanager
def _year(database: Database, home: Path, number: int) -> Iterator[None]:
    """Night after night, in a process of its own beside the kills."""
    folder, began = _fresh(home, database), time.perf_counter()
    environ = {**os.environ, "TOOLKIT_HOME": str(home)}
    process = FORKED.Process(target=nights, args=(folder, environ, number, _KEPT))
    process.start()
    yield
    process.join()
    assert process.exitcode == 0
    kept = len(list((folder / "out" / "victim").glob("20*")))
    megabytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
    with database.transaction() as connection:
        rows = connection.scalar(sa.text("SELECT count(*) FROM audit.job_runs"))
        size = connection.scalar(sa.text("SELECT pg_total_relation_size('audit.job_runs') / 1e6"))
    seconds = time.perf_counter() - began
    print(
        f"{number} nights beside them, {seconds:.0f} s in all: {rows} entries ({size:.1f} MB), "
        f"files of {kept} nights ({megabytes:.1f} MB)"
    )
    assert (rows, kept) == (number, _KEPT)


def _kills(kind: str, number: int, servers: Sequence[tuple[Database, Path]]) -> None:
    """Nights with a kill each, in several lanes, until so many kills hit."""
    began, left, lock = time.perf_counter(), [number], Lock()
    totals: Counter[str] = Counter()

    def more() -> bool:
        with lock:
            left[0] -= 1
            return left[0] >= 0

    def lane(seed: int) -> Counter[str]:
        with scripted(Answer(200)) as receiver:
            nights = _Nights(kind, *servers[seed], receiver.url, random.Random(f"{kind} {seed}"))
            while more():
                nights.kill_once()
            nights.end()
            return nights.ended

    with ThreadPoolExecutor(_LANES) as pool:
        for ended in pool.map(lane, range(min(_LANES, number))):
            totals += ended
    print(f"{kind} killed {number} times in {time.perf_counter() - began:.0f} s: nothing half published")
    for what, times in sorted(totals.items()):
        print(f"  {times:>3} x {what}")


class _Nights:
    """One night after another on one server, with a webhook for the notices."""

    def __init__(self, kind: str, database: Database, home: Path, webhook: str, chance: random.Random) -> None:
        self.kind, self.home, self.database, self.chance = kind, home, database, chance
        self.folder = _fresh(home, database)
        self.notebook = _notebook(home) if kind == "kernel" else None
        self.environ = {
            "TOOLKIT_HOME": str(home),
            "TOOLKIT_WEBHOOK_URL": webhook,
            "TOOLKIT_WEBHOOK_SECRET": "shared",
        }
        self.slot = SLOT
        self.skipped: list[str] = []
        self.ended: Counter[str] = Counter()
        self._undisturbed()  # the job is watched from here on

    def kill_once(self) -> None:
        """Let nights pass until a kill hit."""
        hit = False
        while not hit:
            self.slot += timedelta(days=1)
            if self.chance.random() < _NOBODY:
                self.skipped.append(self.slot.isoformat())
            else:
                hit = self._race()

    def end(self) -> None:
        """One more night, after which every slot must be accounted for, and each missed one announced once."""
        self.slot += timedelta(days=1)
        self._undisturbed()
        runs = recent_runs(self.database, limit=1000)
        assert len(runs) == (self.slot - SLOT).days + 1
        missed = sorted(run.slot.isoformat() for run in runs if run.status == RunStatus.MISSED)
        assert missed == self.skipped
        assert {run.status for run in runs} <= {RunStatus.MISSED, RunStatus.DONE}
        with self.database.transaction() as connection:
            notices = connection.execute(sa.select(job_notices)).all()
        announced = [slot for notice in notices if notice.kind == "missed" for slot in notice.content["slots"]]
        assert sorted(announced) == self.skipped
        assert all(notice.delivered_at for notice in notices)
        self.ended["slots missed, each announced once"] += len(missed)

    def _undisturbed(self) -> None:
        self._start().join()
        check_done_once(self.database, self.folder, self.slot)

    def _start(self) -> BaseProcess:
        return start_process(self.folder, self.environ, victim_job(self.notebook), self.slot)

    def _race(self) -> bool:
        """Two starts, one kill, and further starts until the run is done; whether the kill hit it."""
        starts = [self._start() for _ in range(2)]
        hit = self._strike(holder(self.database, self.slot))
        for process in starts:
            process.join(300)
        self._recover()
        check_not_half_published(self.database, self.folder, self.slot)
        further = 0
        while (run := run_of_slot(self.database, "victim", self.slot)) is None or run.status != RunStatus.DONE:
            further += 1
            assert further < 5
            self._start().join(300)
        run = check_done_once(self.database, self.folder, self.slot)
        done, marks = Counter(effects(self.folder, self.slot)), set(STEPS)
        if self.notebook is not None:
            marks.remove(self.notebook.stem)
        assert set(done) == marks
        again = sum(step.tries - 1 for step in steps_of(self.database, run.id))
        # Only a step that was cut off between its effect and its note is done again.
        assert done.total() <= len(marks) + run.starts - 1 + again
        if hit:
            later = f", {further} of them later" if further else ""
            self.ended[f"done by {run.starts} starts{later}; {again} steps tried again"] += 1
        return hit

    def _strike(self, pid: int) -> bool:
        if self.kind == "kernel":
            return self._kill_kernel(pid)
        time.sleep(self.chance.uniform(0, 0.8))
        if self.kind == "runner":
            return _kill(pid)
        if self.chance.random() < 0.5:
            return _kill(next(each.pid for each in embedded.statuses(self.home) if each.pid))
        with suppress(DatabaseError), self.database.transaction() as connection:
            return _kill(connection.scalar(sa.text("SELECT pg_backend_pid()")) or 0)
        return True

    def _kill_kernel(self, pid: int) -> bool:
        """Kill the kernel that the holder started, at some moment of its life."""
        kernels: list[psutil.Process] = []

        def looked() -> bool:
            kernels.clear()
            try:
                children = psutil.Process(pid).children()
                kernels.extend(each for each in children if "ipykernel" in " ".join(each.cmdline()))
            except psutil.NoSuchProcess:
                return True
            return bool(kernels)

        wait_until(looked)
        time.sleep(self.chance.uniform(0, 1.5))
        return _kill(kernels[0].pid) if kernels else False

    def _recover(self) -> None:
        def answers() -> bool:
            with suppress(DatabaseError):
                embedded.database_url(self.home)
                with self.database.transaction():
                    return True
            return False

        wait_until(answers, step=0.1)


def _kill(pid: int) -> bool:
    try:
        process = psutil.Process(pid)
        alive = process.status() != psutil.STATUS_ZOMBIE
        process.kill()
    except psutil.NoSuchProcess:
        return False
    return alive
