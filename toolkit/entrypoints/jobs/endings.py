"""Name the ways in which a start of a job ends."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from toolkit.domain.jobs.outcomes import FailureCode
from toolkit.operations.jobs.history import RunRow


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
