"""States of a run of a job, and the codes of its failures."""

from enum import StrEnum
from typing import Final


class RunStatus(StrEnum):
    """The stage that the run of a slot has reached."""

    RUNNING = "running"
    """Somebody holds it, or held it and died; the lease tells which."""
    PUBLISHING = "publishing"
    """It succeeded, and its files are being moved to their final names."""
    DONE = "done"
    FAILED = "failed"
    MISSED = "missed"


class FailureCode(StrEnum):
    """The reason why a run, or one of its steps, did not succeed."""

    CELL_FAILED = "CELL_FAILED"
    CELL_TIMED_OUT = "CELL_TIMED_OUT"
    COMMAND_FAILED = "COMMAND_FAILED"
    BUCKET_REFUSED = "BUCKET_REFUSED"
    BUCKET_UNAVAILABLE = "BUCKET_UNAVAILABLE"
    DATABASE_REFUSED = "DATABASE_REFUSED"
    DATABASE_UNAVAILABLE = "DATABASE_UNAVAILABLE"
    DISK_FULL = "DISK_FULL"
    KERNEL_DIED = "KERNEL_DIED"
    KERNEL_OUT_OF_MEMORY = "KERNEL_OUT_OF_MEMORY"
    LEASE_LOST = "LEASE_LOST"
    NOTHING_EVALUATED = "NOTHING_EVALUATED"
    RUNNER_DIED = "RUNNER_DIED"
    SERVICE_UNAVAILABLE = "SERVICE_UNAVAILABLE"
    STOPPED = "STOPPED"
    TIMED_OUT = "TIMED_OUT"
    UNEXPECTED = "UNEXPECTED"
    WRONG_SETTINGS = "WRONG_SETTINGS"


RETRIED: Final = frozenset(
    {
        FailureCode.BUCKET_UNAVAILABLE,
        FailureCode.DATABASE_UNAVAILABLE,
        FailureCode.KERNEL_DIED,
        FailureCode.SERVICE_UNAVAILABLE,
    }
)
"""Failures that may pass, so that another attempt is worth while; all others would only be repeated."""

FAILURE_TEXTS: Final = {
    FailureCode.CELL_FAILED: "A cell of the notebook failed.",
    FailureCode.CELL_TIMED_OUT: "A cell of the notebook took longer than cell-timeout allows.",
    FailureCode.COMMAND_FAILED: "A command could not do its work.",
    FailureCode.BUCKET_REFUSED: "The bucket refused a request.",
    FailureCode.BUCKET_UNAVAILABLE: "The bucket did not answer.",
    FailureCode.DATABASE_REFUSED: "The database refused a statement.",
    FailureCode.DATABASE_UNAVAILABLE: "The database did not answer.",
    FailureCode.DISK_FULL: "The disk is full.",
    FailureCode.KERNEL_DIED: "The kernel of the notebook died.",
    FailureCode.KERNEL_OUT_OF_MEMORY: "The kernel of the notebook ran out of memory.",
    FailureCode.LEASE_LOST: "Another start took the run over, because this one had not been heard of.",
    FailureCode.NOTHING_EVALUATED: "There was no sale to judge.",
    FailureCode.RUNNER_DIED: "The process that ran the job ended without a word.",
    FailureCode.SERVICE_UNAVAILABLE: "A service did not answer.",
    FailureCode.STOPPED: "The run was stopped by a signal.",
    FailureCode.TIMED_OUT: "The run took longer than its timeout allows.",
    FailureCode.UNEXPECTED: "An error came that the toolkit does not know.",
    FailureCode.WRONG_SETTINGS: "A setting, a parameter or a notebook is wrong.",
}
"""The meaning of each code, for people."""
