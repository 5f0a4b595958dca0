"""States of a run of a job, and the codes of its failures."""

from enum import StrEnum
from typing import Final

from toolkit.domain.worded import Worded


class RunStatus(StrEnum):
    """The stage that the run of a slot has reached."""

    RUNNING = "running"
    """Somebody holds it, or held it and died; the lease tells which."""
    PUBLISHING = "publishing"
    """It succeeded, and its files are being moved to their final names."""
    DONE = "done"
    FAILED = "failed"
    MISSED = "missed"


class FailureCode(Worded):
    """The reason why a run, or one of its steps, did not succeed."""

    CELL_FAILED = "CELL_FAILED", "A cell of the notebook failed."
    CELL_TIMED_OUT = "CELL_TIMED_OUT", "A cell of the notebook took longer than cell-timeout allows."
    COMMAND_FAILED = "COMMAND_FAILED", "A command could not do its work."
    BUCKET_REFUSED = "BUCKET_REFUSED", "The bucket refused a request."
    BUCKET_UNAVAILABLE = "BUCKET_UNAVAILABLE", "The bucket did not answer."
    DATABASE_REFUSED = "DATABASE_REFUSED", "The database refused a statement."
    DATABASE_UNAVAILABLE = "DATABASE_UNAVAILABLE", "The database did not answer."
    DISK_FULL = "DISK_FULL", "The disk is full."
    KERNEL_DIED = "KERNEL_DIED", "The kernel of the notebook died."
    KERNEL_OUT_OF_MEMORY = "KERNEL_OUT_OF_MEMORY", "The kernel of the notebook ran out of memory."
    LEASE_LOST = "LEASE_LOST", "Another start took the run over, because this one had not been heard of."
    NOTHING_EVALUATED = "NOTHING_EVALUATED", "There was no sale to judge."
    RUNNER_DIED = "RUNNER_DIED", "The process that ran the job ended without a word."
    SERVICE_UNAVAILABLE = "SERVICE_UNAVAILABLE", "A service did not answer."
    STOPPED = "STOPPED", "The run was stopped by a signal."
    TIMED_OUT = "TIMED_OUT", "The run took longer than its timeout allows."
    UNEXPECTED = "UNEXPECTED", "An error came that the toolkit does not know."
    WRONG_SETTINGS = "WRONG_SETTINGS", "A setting, a parameter or a notebook is wrong."


RETRIED: Final = frozenset(
    {
        FailureCode.BUCKET_UNAVAILABLE,
        FailureCode.DATABASE_UNAVAILABLE,
        FailureCode.KERNEL_DIED,
        FailureCode.SERVICE_UNAVAILABLE,
    }
)
"""Failures that may pass, so that another attempt is worth while; all others would only be repeated."""
