"""Run a job for one slot, from its start to its end.

Everything is checked before anything starts. Then the run of the slot is taken, its steps are done in their order,
each in a staged folder; a success is entered into the history, and its files get their final names. A process that
dies between two of these leaves what the next start goes on with.
"""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeVar

from toolkit.domain.jobs.definitions import Job
from toolkit.domain.jobs.outcomes import RETRIED, FailureCode
from toolkit.domain.versions import rules_fingerprint, toolkit_version
from toolkit.entrypoints.jobs.database_access import DatabaseAccess
from toolkit.entrypoints.jobs.failures import failure_of
from toolkit.entrypoints.jobs.folders import JobFolder, Staging, holds_all
from toolkit.entrypoints.jobs.holding import Holding, Stops
from toolkit.entrypoints.jobs.job_log import JobLog
from toolkit.entrypoints.jobs.steps import Commands, Limits, PreparedStep
from toolkit.entrypoints.jobs.telling import Tell, open_sales
from toolkit.entrypoints.stop_signals import stop_signals_handled
from toolkit.errors import LeaseLost, ToolkitError
from toolkit.operations import Clock
from toolkit.operations.jobs.history import RunRow
from toolkit.operations.jobs.notices import NoticeKind
from toolkit.operations.jobs.runs import (
    LEASE,
    Answer,
    Claim,
    StepEnd,
    decide_success,
    end_failure,
    end_success,
    note_step,
    release,
    renew_lease,
    steps_done,
    take_run,
)
from toolkit.operations.prove.custody_log.sealing import newest_seal
from toolkit.storage.database import Database

T = TypeVar("T")


class Outcome(StrEnum):
    """The end of a start."""

    DONE = "done"
    DONE_BEFORE = "done before"
    RUNNING = "running"
    TOO_LATE = "too late"
    FAILED = "failed"


@dataclass(frozen=True)
class Ended:
    """The outcome of a start: of a failure with its code and reason."""

    outcome: Outcome
    run: RunRow | None = None
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    code: FailureCode | None = None
    reason: str = ""


class _StepFailed(Exception):
    """A step failed; the run ends with its code."""

    def __init__(self, step: str, code: FailureCode, reason: str, notebooks: Sequence[Path]) -> None:
        super().__init__(reason)
        self.step = step
        self.code = code
        self.notebooks = notebooks


_OUTCOMES: Final = {
    Answer.DONE: Outcome.DONE_BEFORE,
    Answer.HELD: Outcome.RUNNING,
    Answer.TOO_LATE: Outcome.TOO_LATE,
}
_MARGIN: Final = 2.0
"""Seconds by which a notebook's time is up before that of the run, so that what ran of it is kept."""
_POLL: Final = 2.0
"""Seconds between two looks at a run that another process holds."""


@dataclass
class JobRun:
    """One start of a job for a slot."""

    job: Job
    slot: datetime
    steps: Sequence[PreparedStep]
    access: DatabaseAccess
    folder: JobFolder
    commands: Commands
    environ: Mapping[str, str]
    clock: Clock
    log: JobLog
    tell: Tell
    lease: timedelta = LEASE
    _decided: bool = False
    _ended: bool = False

    def start(self, *, late: bool = False, wait: float = 0) -> Ended:
        """Take the run and do it; while another process holds it, wait up to ``wait`` seconds for its end."""
        stops = Stops()
        with stop_signals_handled(stops):
            try:
                claim = self._claim(late, wait)
            except SystemExit as error:  # nobody needs to be told: the run, if there is one, is another start's
                return Ended(Outcome.FAILED, None, {}, *failure_of(error))
            except ToolkitError as error:
                return self._unrecorded(*failure_of(error))
            if claim.answer is not Answer.TAKEN:
                return Ended(_OUTCOMES[claim.answer], claim.run)
            renewing = DatabaseAccess(self.environ)
            holding = Holding(
                lambda: renewing.once(lambda each: renew_lease(each, claim, self.lease)),
                self.lease,
                self.job.timeout,
            )
            counts: dict[str, Mapping[str, int]] = {}
            try:
                with holding.held():
                    self._do(claim, holding, stops, counts)
            except BaseException as error:  # however it ended, the history has to tell
                if not self._ended:
                    return self._failed(claim, holding, error)
            finally:
                renewing.close()
        return Ended(Outcome.DONE, claim.run, counts)

    def _claim(self, late: bool, wait: float) -> Claim:
        deadline = time.monotonic() + wait
        while True:
            claim = self._ask(
                lambda each: take_run(each, self.job, self.slot, self.clock, late=late, lease=self.lease)
            )
            if claim.answer is not Answer.HELD or time.monotonic() >= deadline:
                return claim
            time.sleep(min(_POLL, max(deadline - time.monotonic(), 0)))

    def _do(self, claim: Claim, holding: Holding, stops: Stops, counts: dict[str, Mapping[str, int]]) -> None:
        done = self._ask(lambda each: steps_done(each, claim))
        assert claim.holder is not None
        staging = self.folder.begin(self.slot, claim.holder, {name: row.files for name, row in done.items()})
        files: list[Mapping[str, Any]] = []
        afresh = False
        for position, step in enumerate(self.steps):
            name, log = step.step.name, replace(self.log, step=step.step.name)
            row = done.get(name)
            if not afresh and row is not None and self._is_same(row, step, staging):
                log.say("done before")
                counts[name], written = row.counts, row.files
            else:
                afresh = True  # what follows may rest on it
                counts[name], written = self._step(claim, holding, staging, step, position, log)
            files += written
        with stops.later():
            self._succeed(claim, counts, files)

    def _is_same(self, row: RunRow, step: PreparedStep, staging: Staging) -> bool:
        same = (row.target, row.parameters) == (step.step.target, self._kept_parameters(step))
        return same and holds_all(staging.path, row.files)

    def _kept_parameters(self, step: PreparedStep) -> dict[str, Any]:
        """Return the parameters as the history tells them: files under their final names."""
        return step.filled(self.folder.final(self.slot) / step.step.name)

    def _step(
        self, claim: Claim, holding: Holding, staging: Staging, step: PreparedStep, position: int, log: JobLog
    ) -> tuple[Mapping[str, int], list[dict[str, Any]]]:
        started = self.clock()
        kept = self._kept_parameters(step)
        for tries in itertools.count(1):
            part = staging.begin(step.step.name)
            log.say(f"{step.step.target} starts")
            try:
                counts = step.run(part, self.commands, self.environ, self._limits(holding), log)
                files = staging.end(step.step.name)
                break
            except (Exception, SystemExit, KeyboardInterrupt) as error:
                code, reason = self._cause(holding, error)
                reason = reason.replace(str(part), str(self.folder.failed(self.slot)))  # where it is kept
                if code not in RETRIED or tries > self.job.retries or holding.cause is not None:
                    end = StepEnd(step.step, position, kept, tries, started, self.clock(), {}, (), code, reason)
                    with suppress(ToolkitError):
                        self.access.once(lambda each: note_step(each, claim, end))  # noqa: B023  # it is called here
                    raise _StepFailed(step.step.name, code, reason, sorted(part.glob("*.failed.ipynb"))) from None
                seconds = self.job.pause(tries).total_seconds()
                log.warn(f"{code}: {reason} Trying again in {seconds:g} s, {tries} of {self.job.retries}.")
                self.access.close()
                time.sleep(seconds)
        end = StepEnd(step.step, position, kept, tries, started, self.clock(), counts, files)
        self._ask(lambda each: note_step(each, claim, end))
        told = ", ".join(f"{number} {name}" for name, number in counts.items() if "." not in name)
        log.say(f"done in {(end.ended_at - started).total_seconds():.1f} s" + f": {told}" * bool(told))
        return counts, files

    def _limits(self, holding: Holding) -> Limits:
        cell = self.job.cell_timeout
        return Limits(max(holding.remaining - _MARGIN, 0.1), cell.total_seconds() if cell is not None else None)

    def _succeed(
        self, claim: Claim, counts: Mapping[str, Mapping[str, int]], files: Sequence[Mapping[str, Any]]
    ) -> None:
        folder = str(self.folder.final(self.slot)) if files else ""

        def decide(database: Database) -> None:
            seal = newest_seal(database)
            decide_success(
                database,
                claim,
                self.clock,
                counts=counts,
                files=files,
                folder=folder,
                seal=seal.hash if seal is not None else None,
                versions={"toolkit": toolkit_version(), "rules": rules_fingerprint()},
            )

        self._ask(decide)
        # From here on the run has succeeded: if this process dies, the next start does what is left.
        self._decided = True
        if self.job.findings_above is not None and not open_sales(counts):
            self.log.warn("No step counted open sales, so nobody can be told of them; add a step with: audit")
        self.folder.publish(self.slot, files)
        self._ask(
            lambda each: end_success(
                each, claim.id, self.tell.success(each, self.job, self.slot, counts, folder), self.clock
            )
        )
        self._ended = True

    def _cause(self, holding: Holding, error: BaseException) -> tuple[FailureCode, str]:
        if holding.cause is not None:
            return holding.cause, holding.cause.text
        return failure_of(error)

    def _failed(self, claim: Claim, holding: Holding, error: BaseException) -> Ended:
        step = ""
        notebooks: Sequence[Path] = ()
        if isinstance(error, _StepFailed):
            code, reason, step, notebooks = error.code, str(error), error.step, error.notebooks
        else:
            code, reason = self._cause(holding, error)
        if self._decided:
            with suppress(ToolkitError):
                self.access.once(lambda each: release(each, claim))
            self.log.say(f"{code}: {reason} The next start gives the files their final names.", level="error")
            return Ended(Outcome.FAILED, None, {}, code, reason)
        notices = self.tell.notices(self.job.name, self.slot, NoticeKind.FAILED, {"code": code, "step": step})
        try:
            self.access.once(lambda each: end_failure(each, claim, code, reason, notices, self.clock))
        except LeaseLost:
            self.folder.forget(self.slot, claim.holder)
            code, reason = FailureCode.LEASE_LOST, FailureCode.LEASE_LOST.text
            self.log.say(f"{code}: {reason}", level="error")
            return Ended(Outcome.FAILED, None, {}, code, reason)
        except ToolkitError:
            return self._unrecorded(code, reason, step, notebooks)
        return self._told(code, reason, step, notebooks)

    def _unrecorded(self, code: FailureCode, reason: str, step: str = "", notebooks: Sequence[Path] = ()) -> Ended:
        """End a run that failed where the database cannot be told: people are told at once."""
        self.log.warn("The history could not be told; the next start notes what became of this slot.")
        content = {"code": code, "step": step}
        self.tell.at_once(self.tell.notices(self.job.name, self.slot, NoticeKind.FAILED, content), self.log)
        return self._told(code, reason, step, notebooks)

    def _told(self, code: FailureCode, reason: str, step: str, notebooks: Sequence[Path]) -> Ended:
        told = {
            "job": self.job.name,
            "slot": self.slot.isoformat(),
            "step": step,
            "code": code,
            "reason": reason,
            "at": self.clock().isoformat(),
        }
        replace(self.log, step=step).say(f"{code}: {reason}", level="error")
        try:
            self.log.say(f"kept apart: {self.folder.keep_failure(self.slot, told, notebooks)}")
        except OSError as error:
            self.log.warn(f"The reason could not be kept: {error.strerror}.")
        return Ended(Outcome.FAILED, None, {}, code, reason)

    def _ask(self, call: Callable[[Database], T]) -> T:
        return self.access.with_retries(call, self.job.retries, self.job.pause, self.log)
