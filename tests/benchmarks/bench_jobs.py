"""Jobs: starts, kernels and the database killed at random moments; the cost of a job over its work; a year.

Two schedulers race for the slot each time, and one of three is killed: the process that runs the job, its kernel,
or a process of the database server, which then restarts. After each kill there is one run, done, with all files.
"""

from __future__ import annotations

import io
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import nbformat
import psutil
import sqlalchemy as sa
from nbclient import NotebookClient

from tests.integration.test_job_retention import nights
from tests.job_runner import SLOT, STEPS, check_done_once, holder, start, start_process, victim_job
from toolkit.entrypoints.jobs.job_log import JobLog
from toolkit.entrypoints.notebook_runs import run_notebook
from toolkit.errors import DatabaseError
from toolkit.operations.jobs.history import recent_runs, steps_of
from toolkit.storage import embedded, schema
from toolkit.storage.database import Database

_KILLS = 50
_NIGHTS = 365
_KEPT = 30
_TRIALS = 5


def main(scale: float) -> None:
    """Kill, measure, and let a year pass."""
    home = Path(tempfile.mkdtemp(prefix="bench-jobs-", dir="/tmp"))  # open to the account of PostgreSQL
    try:
        url = embedded.database_url(home)
        database = Database(url)
        schema.upgrade(database, service_tables=True)
        bench = _Bench(home, database, {"TOOLKIT_HOME": str(home), "DATABASE_URL": url})
        bench.overhead()
        bench.year(max(_KEPT + 5, round(_NIGHTS * scale)))
        for name, strike in (
            ("runner", bench.kill_runner),
            ("kernel", bench.kill_kernel),
            ("database", bench.kill_server),
        ):
            bench.kills(name, strike, max(1, round(_KILLS * scale)))
        database.dispose()
    finally:
        embedded.stop(home)
        shutil.rmtree(home)


class _Bench:
    def __init__(self, home: Path, database: Database, environ: dict[str, str]) -> None:
        self.home, self.database, self.environ = home, database, environ
        self.random = random.Random(1)
        self.notebook = home / "two.ipynb"
        cell = nbformat.v4.new_code_cell("import time\ntime.sleep(0.5)")
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(nbformat.v4.new_notebook(cells=[cell], metadata={"kernelspec": kernel}), self.notebook)

    def fresh(self) -> Path:
        """An empty history and an empty folder."""
        with self.database.transaction() as connection:
            connection.exec_driver_sql("DELETE FROM audit.job_steps; DELETE FROM audit.job_runs")
        return Path(tempfile.mkdtemp(dir=self.home))

    def overhead(self) -> None:
        """The seconds of a job over the seconds of its steps, and of a notebook run over its kernel's."""
        quiet = JobLog(lambda: SLOT, stream=io.StringIO())
        start(self.fresh(), self.environ, seconds=0, log=quiet)  # loads what is loaded once
        found = []
        for _ in range(_TRIALS):
            folder, began = self.fresh(), time.perf_counter()
            start(folder, self.environ, seconds=0, log=quiet)
            found.append((time.perf_counter() - began) / len(STEPS))
        print(f"a step without a notebook: {min(found):.3f} s over its own work (limit 0.5)")
        over = []
        for _ in range(_TRIALS):
            folder, began = self.fresh(), time.perf_counter()
            NotebookClient(nbformat.read(self.notebook, 4), kernel_name="python3").execute()
            bare = time.perf_counter() - began
            began = time.perf_counter()
            run_notebook(self.notebook, out=folder / "out.ipynb")
            alone = time.perf_counter() - began
            began = time.perf_counter()
            start(folder, self.environ, seconds=0, log=quiet, job=victim_job(self.notebook))
            over.append((alone - bare, time.perf_counter() - began - bare))
        run, job = (sorted(each)[len(each) // 2] for each in zip(*over, strict=True))
        print(f"over its kernel, by nbclient alone: a run {run:.2f} s, a job with it {job:.2f} s (limit 1.5)")

    def year(self, number: int) -> None:
        """Night after night."""
        folder, began = self.fresh(), time.perf_counter()
        nights(folder, self.environ, number, _KEPT)
        kept = len(list((folder / "out" / "victim").glob("20*")))
        megabytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
        with self.database.transaction() as connection:
            rows = connection.scalar(sa.text("SELECT count(*) FROM audit.job_runs"))
            size = connection.scalar(sa.text("SELECT pg_total_relation_size('audit.job_runs') / 1e6"))
        seconds = time.perf_counter() - began
        print(
            f"{number} nights in {seconds:.0f} s: {rows} entries ({size:.1f} MB), "
            f"files of {kept} nights ({megabytes:.1f} MB)"
        )
        assert (rows, kept) == (number, _KEPT)

    def kills(self, name: str, strike: Callable[[int], None], number: int) -> None:
        """Two starts, one kill, and what came of it."""
        ended: Counter[str] = Counter()
        for _ in range(number):
            folder = self.fresh()
            notebook = self.notebook if strike == self.kill_kernel else None
            starts = [start_process(folder, self.environ, notebook) for _ in range(2)]
            strike(holder(self.database))
            for process in starts:
                process.join(300)
            self._recover()
            if recent_runs(self.database)[0].status != "done":  # the next scheduled start
                last = start_process(folder, self.environ, notebook)
                last.join(300)
            check_done_once(self.database, folder)
            [run] = recent_runs(self.database)
            again = sum(step.tries - 1 for step in steps_of(self.database, run.id))
            ended[f"{run.starts} starts took it, {again} steps tried again"] += 1
        print(f"{name} killed {number} times: one run each, done, every file there")
        for what, count in sorted(ended.items()):
            print(f"  {count:>3} x {what}")

    def kill_runner(self, pid: int) -> None:
        """Kill the process that holds the run."""
        time.sleep(self.random.uniform(0, 0.7))
        with suppress(psutil.NoSuchProcess):
            psutil.Process(pid).kill()

    def kill_kernel(self, pid: int) -> None:
        """Kill the kernel that the holder started, at some moment of its life."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with suppress(psutil.NoSuchProcess):
                kernels = [
                    each for each in psutil.Process(pid).children() if "ipykernel" in " ".join(each.cmdline())
                ]
                if kernels:
                    time.sleep(self.random.uniform(0, 2))
                    kernels[0].kill()
                    return
            time.sleep(0.02)

    def kill_server(self, pid: int) -> None:
        """Kill a process of the database server: all its sessions end, and it recovers."""
        time.sleep(self.random.uniform(0, 0.7))
        with suppress(DatabaseError), self.database.transaction() as connection:
            backend = connection.scalar(sa.text("SELECT pg_backend_pid()"))
            psutil.Process(int(backend or 0)).kill()

    def _recover(self) -> None:
        for _ in range(600):
            with suppress(DatabaseError), self.database.transaction():
                return
            time.sleep(0.1)
        raise AssertionError("The database did not recover")
