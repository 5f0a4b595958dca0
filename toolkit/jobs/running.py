"""Run a job for one logical date: once, from where an earlier start stopped, each step whole or not at all.

::

    OUT/JOB/2026-11-21T0200-0300/STEP/          the files of a step that is done
    OUT/JOB/2026-11-21T0200-0300/STEP.failed/   what a step that failed had made, such as its notebook
    OUT/JOB/latest                              a link to the newest run that is done

Everything is checked before anything starts. The files of a step get their names in the transaction that notes it,
while the row of the run is locked: a start that lost its lease can do neither.
"""

import math
import os
import shutil
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from errno import EDQUOT, ENOSPC
from functools import cached_property, partial
from pathlib import Path
from re import sub
from typing import Any, Final
from uuid import UUID

import click

from toolkit import errors
from toolkit.contract.rules import rules_fingerprint, toolkit_version
from toolkit.errors import DatabaseUnavailable, LeaseLost, NoAudit, NotebookFailed, SettingsError, ToolkitError
from toolkit.jobs.definitions import PACKAGED, Job, Step, load_jobs, named_values
from toolkit.jobs.notices import Notice, NoticeKind, NoticeSettings, deliver_notices, put_notices
from toolkit.jobs.runs import (
    LEASE,
    Outcome,
    RunRow,
    RunStatus,
    counts_of,
    critical_findings,
    ended,
    holding,
    open_sales,
    renew_lease,
    take_run,
    watch_job,
)
from toolkit.kit.process import stop_signals_handled
from toolkit.kit.services import Services
from toolkit.log.sealing import newest_checkpoint
from toolkit.settings import Environment

Log = Callable[..., None]  # writes a line about a run: a message, and by name a ``level`` and the ``step``

_NOT_FOR_STEPS: Final = ("TOOLKIT_SMTP_", "TOOLKIT_WEBHOOK_", "TOOLKIT_JWT_SECRET")
"""Variables that no step and no kernel gets; the step that mails partners gets those of the mail server."""
_TO_END: Final = 60.0
"""Seconds that a run has to end itself after it was told to stop; then the process ends as a whole."""
_POLL: Final = 2.0  # seconds between two looks at a run that another process holds


def run_folder(out: Path, job: Job, date: datetime) -> Path:
    """Return the folder of one run; its name is its logical date in the zone of the office."""
    return out / job.name / date.astimezone(job.schedule.zone).strftime("%Y-%m-%dT%H%M%z")


@dataclass
class LeaseHolder:
    """Renews a lease, and stops this process by SIGTERM when the lease, or the time of the run, is up."""

    renew: Callable[[], None]
    lease: timedelta
    timeout: timedelta
    cause: str | None = None
    """The code of the reason why this process stopped the run, if it did."""
    _over: threading.Event = field(default_factory=threading.Event)
    _ends: dict[str, float] = field(default_factory=lambda: {"LEASE_LOST": math.inf})
    """The moment from which each code is a reason to stop."""

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the run during the block."""
        now = time.monotonic()
        self._ends["TIMED_OUT"] = now + self.timeout.total_seconds()
        self._hold_from(now)
        for work in (self._renew, self._watch):  # a renewal may wait long for a database that is away
            threading.Thread(target=work, daemon=True).start()
        try:
            yield
        finally:
            self._over.set()

    def _hold_from(self, asked: float) -> None:
        self._ends["DATABASE_UNAVAILABLE"] = asked + self.lease.total_seconds() * 0.7

    def _renew(self) -> None:
        while not self._over.wait(self.lease.total_seconds() / 4):
            asked = time.monotonic()
            try:
                self.renew()
                self._hold_from(asked)
            except LeaseLost:
                self._ends["LEASE_LOST"] = asked
            except ToolkitError:
                continue

    def _watch(self) -> None:
        while self.cause is None and not self._over.wait(0.2):
            self.cause = next((code for code, end in self._ends.items() if end <= time.monotonic()), None)
        if not self._over.is_set():  # else a run that is done no longer holds what was to be renewed
            os.kill(os.getpid(), signal.SIGTERM)
            if not self._over.wait(_TO_END):
                os.kill(os.getpid(), signal.SIGKILL)  # the next start notes that the run died


@dataclass(frozen=True)
class Ended:
    """The outcome of a start: of a failure with its code and reason."""

    outcome: Outcome
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    code: str | None = None
    reason: str = ""


class Runner(ABC):
    """Runs the jobs of ``TOOLKIT_JOBS``, else of ``jobs.toml`` in the current folder, else of the package.

    Their steps are commands, which the command line checks and runs.
    """

    def __init__(self, kit: Services) -> None:
        environ, here = Environment(kit.environ), Path.cwd() / "jobs.toml"
        self.kit = kit
        self.file = environ.path("TOOLKIT_JOBS") or (here if here.is_file() else PACKAGED)
        self.out = environ.path("TOOLKIT_JOBS_OUT") or kit.settings.home / "jobs"
        self.jobs = load_jobs(self.file, kit.settings.timezone)

    @cached_property
    def notices(self) -> NoticeSettings:
        """The channels of notices."""
        return NoticeSettings.from_environment(self.kit.environ, self.kit.settings.timezone)

    def job(self, name: str) -> Job:
        """Return the job of this name."""
        if name not in self.jobs:
            raise SettingsError("There is no job {!r}. There are: {}", name, ", ".join(self.jobs))
        return self.jobs[name]

    @abstractmethod
    def check(self, words: Sequence[str]) -> object:
        """Raise SettingsError where there is no such command or it refuses its options."""

    @abstractmethod
    def run(self, words: Sequence[str], environ: Mapping[str, str], log: Log) -> Mapping[str, Any]:
        """Run a command, and return the JSON document that it prints, if any."""

    def look_around(self) -> None:
        """Do what every start does beside its run; where that fails, the run goes on."""
        try:
            self.watch()
        except (ToolkitError, OSError) as error:
            self.log(str(error), level="warning")

    def watch(self) -> None:
        """Note what was missed or died, deliver notices, delete old files."""
        database = self.kit.database
        for job in self.jobs.values():
            troubles = "was missed: nobody started it", "failed: its process was killed"
            for how, dates in zip(troubles, watch_job(database, job, self.notices), strict=True):
                for date in dates:
                    self.log(f"{job.name}, due {run_folder(self.out, job, date).name}, {how}", level="warning")
            oldest = database.clock() - timedelta(days=job.keep_days)
            for folder in (self.out / job.name).glob("2*"):
                with suppress(FileNotFoundError):  # another start deletes it, too
                    if folder.stat().st_mtime < oldest.timestamp():  # by its name a late run would be old at once
                        shutil.rmtree(folder, ignore_errors=True)
        deliver_notices(database, self.notices, partial(self.log, level="warning"))

    def log(self, message: str, *, level: str = "", place: str = "", step: str = "") -> None:
        """Write one line on stderr."""
        prefix = " ".join(each for each in (f"{self.kit.clock():%Y-%m-%dT%H:%M:%SZ}", place, step) if each)
        mark = f"{level}: " if level else ""
        click.echo(f"{prefix}: {mark}{' '.join(message.split())}", err=True)


@dataclass
class JobRun:
    """One start of a job for a logical date."""

    runner: Runner
    job: Job
    date: datetime
    lease: timedelta = LEASE
    _steps: list[dict[str, Any]] = field(default_factory=list)
    """Those that ended, as the history keeps them; the last one may be under way."""
    _ending: bool = False

    def __post_init__(self) -> None:
        runner, due = self.runner, self.date.astimezone(self.job.schedule.zone).isoformat(timespec="minutes")
        self.kit, self.notices = runner.kit, partial(runner.notices.notices, self.job.name, self.date)
        self.log = partial(runner.log, place=f"{self.job.name} {due}")
        self.folder = run_folder(runner.out, self.job, self.date)

    def check(self) -> dict[str, list[str]]:
        """Return the words of each step's command: nothing starts while one of them is wrong.

        Raises:
            SettingsError: naming the step and what is wrong about it.
        """
        checked = {}
        for step in self.job.steps:
            try:
                checked[step.name] = words = self._words(step, step.name)
                self.runner.check(words)
            except (NotebookFailed, SettingsError) as error:
                raise SettingsError("job {}, step {}: {}", self.job.name, step.name, error) from None
        return checked

    def _words(self, step: Step, folder: str) -> list[str]:
        return step.words(named_values(self.date, self.job.schedule.zone, self.folder / folder))

    def start(self, *, late: bool = False, wait: float = 0) -> Ended:
        """Take the run and do it; while another process holds it, wait up to ``wait`` seconds for its end."""
        deadline, outcome, run, holder = time.monotonic() + wait, None, None, None
        with stop_signals_handled(self._stop):
            try:
                while True:
                    outcome, run = take_run(self.kit.database, self.job, self.date, late=late, lease=self.lease)
                    if outcome is not Outcome.RUNNING or time.monotonic() >= deadline:
                        break
                    time.sleep(min(_POLL, max(deadline - time.monotonic(), 0)))
                if run is None or outcome is not Outcome.TAKEN:
                    return Ended(outcome, {} if run is None else counts_of(run.steps))
                renew = partial(renew_lease, self.kit.database, run, self.lease)
                holder = LeaseHolder(renew, self.lease, self.job.timeout)
                with holder.held():
                    self._do(run)
            except BaseException as error:  # however it ended, the history has to tell
                code, reason = failure_of(error)
                if holder is not None and holder.cause is not None:
                    code, reason = holder.cause, f"The run was stopped: {holder.cause}."
                return self._fail(outcome, run, code, reason)
        return Ended(Outcome.DONE, counts_of(self._steps))

    def _stop(self, number: int, _frame: object) -> None:
        if not self._ending:
            raise SystemExit(128 + number)

    def _do(self, run: RunRow) -> None:
        before = {step["name"]: step for step in run.steps if step["status"] == RunStatus.DONE}
        for step in self.job.steps:
            words, done = self._words(step, step.name), before.get(step.name)
            there = done and all((self.folder / file["name"]).is_file() for file in done["files"])
            if done and there and done.get("words") == words:
                self.log("done before", step=step.name)
                self._steps.append(done)
            else:
                before = {}  # what follows may rest on it
                self._do_step(run, step, words)
        signed = self.kit.database.run(newest_checkpoint)
        versions = {"toolkit": toolkit_version(), "rules": rules_fingerprint()}
        seal = signed.root if signed is not None else None
        notices = self._good_news()
        self._ending = True
        values = ended(RunStatus.DONE, self.kit.clock(), folder=str(self.folder), seal=seal, versions=versions)
        with holding(self.kit.database, run, **values) as connection:
            for leftover in self.folder.glob(".*"):  # of starts that were killed
                shutil.rmtree(leftover, ignore_errors=True)
            latest, link = (self.folder.with_name(name) for name in ("latest", f".latest.{run.holder}"))
            self.folder.mkdir(parents=True, exist_ok=True)
            if not latest.exists() or latest.resolve().name < self.folder.name:
                link.symlink_to(self.folder.name)
                link.replace(latest)
            put_notices(connection, notices)

    def _do_step(self, run: RunRow, step: Step, words: list[str]) -> None:
        """Do one step in a folder that no other start knows, and note how it ended."""
        started, part = self.kit.clock(), self.folder / f".{step.name}-{run.holder}"
        final, log = self.folder / step.name, partial(self.log, step=step.name)
        try:
            part.mkdir(parents=True)
        except OSError as error:
            raise SettingsError("{} cannot be written: {}.", self.folder, error.strerror) from error
        begun = {"name": step.name, "words": words, "startedAt": started.isoformat(), "counts": {}, "files": []}
        self._part = part
        self._steps.append(begun | {"status": RunStatus.FAILED})
        log(f"toolkit {words[0]} starts")
        own = "TOOLKIT_SMTP_" if words[:2] == ["partner", "notify"] else ()
        environ = {
            name: text
            for name, text in self.kit.environ.items()
            if name.startswith(own) or not name.startswith(_NOT_FOR_STEPS)
        }
        counts = _numbers(self.runner.run(self._words(step, part.name), environ, log))
        for notebook in part.glob("*.ipynb"):
            notebook.write_text(notebook.read_text("utf-8").replace(part.name, step.name), "utf-8")
        paths = [path for path in sorted(part.rglob("*")) if path.is_file()]
        files = [{"name": f"{step.name}/{path.relative_to(part)}", "bytes": path.stat().st_size} for path in paths]
        now = self.kit.clock()
        done = {**begun, "status": RunStatus.DONE, "endedAt": now.isoformat(), "counts": counts, "files": files}
        with holding(self.kit.database, run, steps=[*self._steps[:-1], done]):
            for earlier in (final, final.with_suffix(".failed")):
                shutil.rmtree(earlier, ignore_errors=True)
            part.rename(final)
        self._steps[-1] = done
        numbers = ", ".join(f"{number} {name}" for name, number in counts.items() if "." not in name)
        log(f"done in {(now - started).total_seconds():.1f} s" + f": {numbers}" * bool(numbers))

    def _good_news(self) -> list[Notice]:
        """Return the notices about a run that is done: what needs attention, or that all is well again."""
        counts, notify = counts_of(self._steps), self.job.notify
        found, untold = open_sales(counts), sum(step.get("untold", 0) for step in counts.values())
        content: dict[str, Any] = {**found, "untold": untold or None, "folder": str(self.folder)}
        attention = untold > 0 or (notify.findings is not None and found.get("open", 0) > notify.findings)
        with suppress(NoAudit):
            if notify.new_critical:
                content["critical"], content["new"] = critical_findings(self.kit, self.job.name)
                attention = attention or content["new"] > 0
        return self.notices(NoticeKind.ATTENTION if attention else NoticeKind.RECOVERED, content)

    def _fail(self, outcome: Outcome | None, run: RunRow | None, code: str, reason: str) -> Ended:
        """End a run that failed; where the database cannot be told, people are told at once."""
        self._ending = True  # a second signal changes nothing
        failed = next((each for each in self._steps[-1:] if each["status"] == RunStatus.FAILED), None)
        step = failed["name"] if failed else ""
        kept, now = self.folder / f"{step}.failed", self.kit.clock()
        if failed:
            reason = reason.replace(str(self._part), str(kept))
            failed |= {"failure": code, "reason": reason, "endedAt": now.isoformat()}
        self.log(f"{code}: {reason}", level="error", step=step)
        if outcome not in {None, Outcome.TAKEN}:  # stopped while another start had the run
            return Ended(Outcome.FAILED, {}, code, reason)
        notices = self.notices(NoticeKind.FAILED, {"code": code, "step": step})
        try:
            if run is None:
                raise DatabaseUnavailable
            values = ended(RunStatus.FAILED, now, failure=code, reason=reason, steps=self._steps)
            with holding(self.kit.database, run, **values) as connection:
                put_notices(connection, notices)
        except LeaseLost:
            return Ended(Outcome.FAILED, {}, "LEASE_LOST", str(LeaseLost.__doc__))
        except ToolkitError:
            self.log("The history could not be told; the next start notes how this run ended.", level="warning")
            for notice in notices:
                if problem := self.runner.notices.deliver(notice, UUID(int=0)):
                    self.log(f"The notice by {notice.channel} could not be delivered: {problem}.", level="warning")
        if failed:
            with suppress(OSError):
                shutil.rmtree(kept, ignore_errors=True)
                self._part.rename(kept)
        return Ended(Outcome.FAILED, {}, code, reason)


def failure_of(error: BaseException) -> tuple[str, str]:
    """Return a code, and a reason for people: our own errors' words, of any other error only its kind."""
    cause: BaseException | None = error
    while cause is not None:
        if any(os.strerror(full) in str(cause) for full in (ENOSPC, EDQUOT)):
            return "DISK_FULL", "The disk is full."
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, (SystemExit, KeyboardInterrupt)) or errors.INTERRUPTED.search(str(error)):
        return "STOPPED", "The run was stopped by a signal."
    if isinstance(error, ToolkitError):
        raised = getattr(error, "cell_error", None)  # what a notebook's cell raised
        name = raised if raised is not None and hasattr(errors, raised) else type(error).__name__
        return sub(r"(?<!^)(?=[A-Z])", "_", name).upper(), str(error)
    kind = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else type(error).__name__
    return "UNEXPECTED", f"An error that the toolkit does not know: {kind}."


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
        elif name == "results":  # of a notebook
            for result in value:
                counts |= _numbers(result)
    return counts
