"""Run a job for one logical date: once, from where an earlier start stopped, whole or not at all.

::

    OUT/JOB/2026-11-21T0200-0300/STEP/...      the files of a run that is done, and nothing else
    OUT/JOB/latest                             a link to the newest of them
    OUT/JOB/failed/2026-11-21T0200-0300/       the notebook of the step that failed
    OUT/JOB/.staged/2026-11-21T0200-0300/      what a run has made so far

Everything is checked before anything starts. The files of a step and of a run get their names while the row of the
run is locked, in the transaction that notes them: a start that lost its lease can do neither, and one that is
killed in between leaves what the next start goes on with.
"""

import os
import platform
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from errno import EDQUOT, ENOSPC
from functools import partial
from pathlib import Path
from re import sub
from typing import Any, Final, Protocol
from urllib.parse import quote
from uuid import UUID

from toolkit import errors
from toolkit.contract.deadlines import Clock
from toolkit.contract.rules import rules_fingerprint, toolkit_version
from toolkit.database.connection import Database
from toolkit.errors import DatabaseUnavailable, LeaseLost, NotebookFailed, SettingsError, ToolkitError
from toolkit.jobs.definitions import Job, Step, named_values
from toolkit.jobs.notices import Notice, NoticeKind, NoticeSettings, deliver_notices, put_notices
from toolkit.jobs.runs import (
    LEASE,
    Claim,
    Outcome,
    RunStatus,
    counts_of,
    critical_findings,
    delete_old_files,
    end_run,
    holding,
    open_sales,
    renew_lease,
    take_run,
    watch_job,
    write_run,
)
from toolkit.kit.context import ApplicationContext
from toolkit.kit.process import stop_signals_handled
from toolkit.log.sealing import newest_seal
from toolkit.notebooks.packaged import find_notebook
from toolkit.settings import Settings

Log = Callable[..., None]
"""Writes a line about a run: a message, and by name a ``level`` and the ``step``."""

_NOT_FOR_KERNELS: Final = ("TOOLKIT_SMTP_", "TOOLKIT_WEBHOOK_", "TOOLKIT_JWT_SECRET")
"""Variables that no kernel gets."""
_TO_END: Final = 60.0
"""Seconds that a run has to end itself after it was told to stop; then the process ends as a whole."""
_MARGIN: Final = 2.0
"""Seconds by which a notebook's time is up before that of the run, so that what ran of it is kept."""
_POLL: Final = 2.0
"""Seconds between two looks at a run that another process holds."""


class Commands(Protocol):
    """The command line, as steps of a job run it."""

    def check(self, words: Sequence[str]) -> object:
        """Raise SettingsError where there is no such command or it refuses its options."""

    def run(self, words: Sequence[str], environ: Mapping[str, str], log: Log) -> Mapping[str, Any]:
        """Run a command, and return the JSON document that it prints, if any."""


class RunFolder:
    """The files of one run; its name is its logical date in the zone of the office."""

    def __init__(self, out: Path, job: Job, date: datetime) -> None:
        self.around, self.name = out / job.name, date.astimezone(job.schedule.zone).strftime("%Y-%m-%dT%H%M%z")
        self.final, self.failed = self.around / self.name, self.around / "failed" / self.name
        self.staged = self.around / ".staged" / self.name

    def begin(self) -> None:
        """Make room for a run; files that were published and never noted are staged again."""
        self.staged.parent.mkdir(parents=True, exist_ok=True)
        if self.final.exists() and not self.staged.exists():
            self.final.rename(self.staged)
        self.staged.mkdir(exist_ok=True)

    def publish(self, steps: set[str]) -> None:
        """Give the staged files of these steps their final names, in one rename."""
        for each in self.staged.iterdir():
            if each.name not in steps:
                shutil.rmtree(each)
        shutil.rmtree(self.final, ignore_errors=True)
        self.staged.rename(self.final)
        link = self.around / f".latest.{os.getpid()}"
        link.symlink_to(self.name)
        link.replace(self.around / "latest")

    def delete(self) -> None:
        """Delete every file of a run."""
        for folder in (self.final, self.failed, self.staged):
            shutil.rmtree(folder, ignore_errors=True)


@dataclass
class LeaseHolder:
    """Renews a lease in a thread; a timer stops this process by SIGTERM when the lease or the time is up."""

    renew: Callable[[], None]
    lease: timedelta
    timeout: timedelta
    cause: str | None = None
    """The code of the reason why this process stopped the run, if it did."""
    _ended: threading.Event = field(default_factory=threading.Event)
    _started: float = field(default_factory=time.monotonic)

    @property
    def remaining(self) -> float:
        """Seconds until the run has to end."""
        return self.timeout.total_seconds() - (time.monotonic() - self._started)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the run during the block."""
        signal.signal(signal.SIGALRM, self._stop)
        self._wind(time.monotonic())
        threading.Thread(target=self._renew, name="lease", daemon=True).start()
        try:
            yield
        finally:
            self._ended.set()
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_IGN)  # one may be on its way

    def _wind(self, asked: float) -> None:
        """Let the timer go off when seven tenths of the lease that was asked for are over, or the time is up."""
        left = min(asked + self.lease.total_seconds() * 0.7 - time.monotonic(), self.remaining)
        if self.cause is None and not self._ended.is_set():
            signal.setitimer(signal.ITIMER_REAL, max(left, 0.01))

    def _renew(self) -> None:
        while not self._ended.wait(self.lease.total_seconds() / 4):
            asked = time.monotonic()
            with suppress(ToolkitError):  # where the database is away for too long, the timer goes off
                try:
                    self.renew()
                except LeaseLost:
                    self.cause = "LEASE_LOST"
                    return os.kill(os.getpid(), signal.SIGALRM)
                self._wind(asked)
        return None

    def _stop(self, *_: object) -> None:
        if self._ended.is_set():
            return
        if self.cause is not None and self.cause != "LEASE_LOST":  # told before
            os.kill(os.getpid(), signal.SIGKILL)  # the next start notes that the run died
        self.cause = self.cause or ("TIMED_OUT" if self.remaining <= 0 else "DATABASE_UNAVAILABLE")
        signal.setitimer(signal.ITIMER_REAL, _TO_END)
        os.kill(os.getpid(), signal.SIGTERM)


@dataclass(frozen=True)
class Ended:
    """The outcome of a start: of a failure with its code and reason."""

    outcome: Outcome
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    code: str | None = None
    reason: str = ""


@dataclass
class JobRun:
    """One start of a job for a logical date; ``base`` is where relative paths of the jobs file start."""

    job: Job
    date: datetime
    base: Path
    out: Path
    commands: Commands
    notices: NoticeSettings
    environ: Mapping[str, str]
    clock: Clock
    log: Log
    lease: timedelta = LEASE
    _steps: list[dict[str, Any]] = field(default_factory=list)
    _failed: dict[str, Any] = field(default_factory=dict)
    _publishing: bool = False

    def __post_init__(self) -> None:
        self.folder = RunFolder(self.out, self.job, self.date)

    def check(self) -> dict[str, dict[str, Any]]:
        """Return what each step is to run: nothing starts while one of them is wrong.

        Raises:
            SettingsError: naming the step and what is wrong about it.
        """
        checked = {}
        for step in self.job.steps:
            try:
                checked[step.name] = filled = self._filled(step, self.folder.final)
                if step.command:
                    self.commands.check(filled["words"])
                else:
                    from toolkit.notebooks.running import checked_parameters  # papermill takes a second to load

                    checked_parameters(self._notebook(step), filled["parameters"])
            except (NotebookFailed, SettingsError) as error:
                raise SettingsError("job {}, step {}: {}", self.job.name, step.name, error) from None
        return checked

    def _filled(self, step: Step, folder: Path) -> dict[str, Any]:
        return step.filled(named_values(self.date, self.job.schedule.zone, folder / step.name))

    def _notebook(self, step: Step) -> Path:
        with chdir(self.base):
            return find_notebook(step.notebook).absolute()

    def start(self, *, late: bool = False, wait: float = 0) -> Ended:
        """Take the run and do it; while another process holds it, wait up to ``wait`` seconds for its end."""
        deadline, claim, holder = time.monotonic() + wait, None, None
        with stop_signals_handled(self._stop):
            try:
                with self._application() as application:
                    database = application.database
                    while True:
                        claim = take_run(database, self.job, self.date, self.clock, late=late, lease=self.lease)
                        if claim.outcome is not Outcome.RUNNING or time.monotonic() >= deadline:
                            break
                        time.sleep(min(_POLL, max(deadline - time.monotonic(), 0)))
                    if claim.outcome is not Outcome.TAKEN:
                        return Ended(claim.outcome, counts_of(claim.run.steps) if claim.run is not None else {})
                    renew = partial(renew_lease, database, claim, self.lease)
                    holder = LeaseHolder(renew, self.lease, self.job.timeout)
                    with holder.held():
                        self._do(database, claim, holder)
            except BaseException as error:  # however it ended, the history has to tell
                code, reason = failure_of(error)
                if holder is not None and holder.cause is not None:
                    code, reason = holder.cause, f"The run was stopped: {holder.cause}."
                return self._fail(claim, code, reason)
        return Ended(Outcome.DONE, counts_of(self._steps))

    def _stop(self, number: int, _frame: object) -> None:
        if not self._publishing:
            raise SystemExit(128 + number)

    def _application(self) -> closing[ApplicationContext]:
        return closing(ApplicationContext(Settings.from_environment(self.environ)))

    def _do(self, database: Database, claim: Claim, holder: LeaseHolder) -> None:
        assert claim.run is not None
        self.folder.begin()
        before = {step["name"]: step for step in claim.run.steps if step["status"] == RunStatus.DONE}
        for step in self.job.steps:
            made = {"target": step.target, "parameters": self._filled(step, self.folder.final)}
            done = before.get(step.name)
            there = done and all((self.folder.staged / file["name"]).is_file() for file in done["files"])
            if done and there and made.items() <= done.items():
                self.log("done before", step=step.name)
                self._steps.append(done)
            else:
                before = {}  # what follows may rest on it
                self._steps.append(self._step(database, claim, holder, step, made))
        seal, folder = newest_seal(database), str(self.folder.final)
        versions = {
            "toolkit": toolkit_version(),
            "rules": rules_fingerprint(),
            "python": platform.python_version(),
        }
        values = {"folder": folder, "seal": seal and seal.hash, "versions": versions}
        notices = self._good_news(database, folder)
        self._publishing = True
        with holding(database, claim) as connection:
            self.folder.publish({step["name"] for step in self._steps})
            end_run(connection, claim, RunStatus.DONE, self.clock, **values)
            put_notices(connection, notices, self.clock)

    def _step(
        self, database: Database, claim: Claim, holder: LeaseHolder, step: Step, made: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Do one step in a folder that no other start knows, and note how it ended."""
        started, part = self.clock(), self.folder.staged / f".{claim.holder}" / step.name
        part.mkdir(parents=True)
        begun = {"name": step.name, **made, "startedAt": started.isoformat(), "counts": {}, "files": []}
        self._failed = begun | {"status": RunStatus.FAILED, "part": part}
        self.log(f"{step.target} starts", step=step.name)
        counts = self._run(step, part, holder)
        now, files = self.clock(), _finished(part, self.folder.final / step.name)
        ended = {**begun, "status": RunStatus.DONE, "endedAt": now.isoformat(), "counts": counts, "files": files}
        with holding(database, claim) as connection:
            shutil.rmtree(self.folder.staged / step.name, ignore_errors=True)
            part.rename(self.folder.staged / step.name)
            write_run(connection, claim, steps=[*self._steps, ended])
        self._failed = {}
        told = ", ".join(f"{number} {name}" for name, number in counts.items() if "." not in name)
        self.log(f"done in {(now - started).total_seconds():.1f} s" + f": {told}" * bool(told), step=step.name)
        return ended

    def _run(self, step: Step, part: Path, holder: LeaseHolder) -> dict[str, int]:
        filled = self._filled(step, part.parent)
        if step.command:
            return _numbers(self.commands.run(filled["words"], self.environ, partial(self.log, step=step.name)))
        from toolkit.notebooks.running import run_notebook  # papermill takes a second to load

        notebook, seconds = self._notebook(step), max(holder.remaining - _MARGIN, 0.1)
        environ = {name: text for name, text in self.environ.items() if not name.startswith(_NOT_FOR_KERNELS)}
        target = part / notebook.name
        done = run_notebook(notebook, filled["parameters"], target, timeout=seconds, environ=environ)
        return {name: number for result in done.results for name, number in _numbers(result).items()}

    def _good_news(self, database: Database, folder: str) -> list[Notice]:
        """Return the notices about a run that is done: what needs attention, or that all is well again."""
        found, notify = open_sales(counts_of(self._steps)), self.job.notify
        content: dict[str, Any] = {**found, "folder": folder}
        attention = notify.findings is not None and found.get("open", 0) > notify.findings
        if notify.new_critical:
            content["critical"], content["new"] = critical_findings(database, self.job.name)
            attention = attention or content["new"] > 0
        kind = NoticeKind.ATTENTION if attention else NoticeKind.RECOVERED
        return self.notices.notices(self.job.name, self.date, kind, content)

    def _fail(self, claim: Claim | None, code: str, reason: str) -> Ended:
        """End a run that failed; where the database cannot be told, people are told at once."""
        self._publishing = True  # a second signal changes nothing
        part, step, kept = (
            self._failed.pop("part", None),
            self._failed.get("name", ""),
            self.folder.failed,
        )
        if part is not None:
            reason = reason.replace(str(part), str(kept))
        self.log(f"{code}: {reason}", level="error", step=step)
        notices = self.notices.notices(self.job.name, self.date, NoticeKind.FAILED, {"code": code, "step": step})
        steps = [*self._steps]
        if step:
            noted = {"failure": code, "reason": reason, "endedAt": self.clock().isoformat()}
            steps.append(self._failed | noted)
        try:
            if claim is None:
                raise DatabaseUnavailable
            with self._application() as application, holding(application.database, claim) as connection:
                end_run(connection, claim, RunStatus.FAILED, self.clock, failure=code, reason=reason, steps=steps)
                put_notices(connection, notices, self.clock)
        except LeaseLost:
            return Ended(Outcome.FAILED, {}, "LEASE_LOST", str(LeaseLost.__doc__))
        except ToolkitError:
            self.log("The history could not be told; the next start notes how this run ended.", level="warning")
            for notice in notices:
                if problem := self.notices.deliver(notice, UUID(int=0)):
                    self.log(f"The notice by {notice.channel} could not be delivered: {problem}.", level="warning")
        with suppress(OSError):
            for notebook in part.glob("*.failed.ipynb") if part is not None else ():
                kept.mkdir(parents=True, exist_ok=True)
                notebook.replace(kept / notebook.name)
        return Ended(Outcome.FAILED, {}, code, reason)


def failure_of(error: BaseException) -> tuple[str, str]:
    """Return a code, and a reason for people: our own errors' words, of any other error only its kind."""
    cause: BaseException | None = error
    while cause is not None:
        told = str(cause) if isinstance(cause, ToolkitError) else ""  # of an error in a cell only words are known
        number = cause.errno if isinstance(cause, OSError) else None
        if any(full == number or os.strerror(full) in told for full in (ENOSPC, EDQUOT)):
            return "DISK_FULL", "The disk is full."
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, (SystemExit, KeyboardInterrupt)):
        return "STOPPED", "The run was stopped by a signal."
    if isinstance(error, ToolkitError):
        raised = getattr(error, "cell_error", None)  # what a notebook's cell raised
        name = raised if raised is not None and hasattr(errors, raised) else type(error).__name__
        return sub(r"(?<!^)(?=[A-Z])", "_", name).upper(), str(error)
    return "UNEXPECTED", f"An error that the toolkit does not know: {type(error).__name__}."


def _finished(part: Path, final: Path) -> list[dict[str, Any]]:
    """Return the files of a step by their final names, which replace the staged ones in executed notebooks."""
    around = os.path.commonpath((part, final))
    staged, named = (path.relative_to(around).as_posix() for path in (part, final))
    for notebook in part.glob("*.ipynb"):
        text = notebook.read_text(encoding="utf-8")
        for written in (str, quote):  # as a path, and in a link, which may be a relative one
            text = text.replace(written(staged), written(named))
        notebook.write_text(text, encoding="utf-8")
    paths = [path for path in sorted(part.rglob("*")) if path.is_file()]
    return [{"name": str(path.relative_to(part.parent)), "bytes": path.stat().st_size} for path in paths]


def _numbers(document: Mapping[str, Any]) -> dict[str, int]:
    """Return the numbers of a result, and how many findings it lists; no text of it is kept."""
    counts: dict[str, int] = {}
    for name, value in document.items():
        if isinstance(value, int) and not isinstance(value, bool):
            counts[name] = value
        elif isinstance(value, list) and name.lower().endswith("findings"):
            counts[name] = len(value)
        elif isinstance(value, Mapping):
            counts |= {f"{name}.{inner}": each for inner, each in _numbers(value).items()}
    return counts


def look_around(
    database: Database, jobs: Mapping[str, Job], out: Path, notices: NoticeSettings, clock: Clock, log: Log
) -> None:
    """Do what every start does beside its run: note what was missed or died, deliver notices, delete old files."""
    for job in jobs.values():
        missed, died = watch_job(database, job, clock, notices)
        for dates, how in ((missed, "was missed: nobody started it"), (died, "failed: its process was killed")):
            for date in dates:
                log(f"{job.name}, due {RunFolder(out, job, date).name}, {how}", level="warning")
        delete_old_files(database, job, clock, lambda date, job=job: RunFolder(out, job, date).delete())  # type: ignore[misc]
    deliver_notices(database, notices, clock, partial(log, level="warning"))
