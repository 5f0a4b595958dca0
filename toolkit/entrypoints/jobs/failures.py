"""Map the error that was raised to the code of a failure."""

import errno
import os
from collections.abc import Iterator
from typing import Final

from toolkit import errors
from toolkit.domain.jobs.outcomes import FailureCode

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)

_CODES: Final[tuple[tuple[type[errors.ToolkitError], FailureCode], ...]] = (
    (errors.KernelOutOfMemory, FailureCode.KERNEL_OUT_OF_MEMORY),
    (errors.KernelDied, FailureCode.KERNEL_DIED),
    (errors.CellTimedOut, FailureCode.CELL_TIMED_OUT),
    (errors.NotebookTimedOut, FailureCode.TIMED_OUT),
    (errors.LeaseLost, FailureCode.LEASE_LOST),
    (errors.DatabaseUnavailable, FailureCode.DATABASE_UNAVAILABLE),
    (errors.BucketUnavailable, FailureCode.BUCKET_UNAVAILABLE),
    (errors.ServiceUnavailable, FailureCode.SERVICE_UNAVAILABLE),
    (errors.EmbeddedServiceError, FailureCode.SERVICE_UNAVAILABLE),
    (errors.DatabaseError, FailureCode.DATABASE_REFUSED),
    (errors.BucketError, FailureCode.BUCKET_REFUSED),
    (errors.SettingsError, FailureCode.WRONG_SETTINGS),
    (errors.NothingEvaluated, FailureCode.NOTHING_EVALUATED),
    (errors.NotebookFailed, FailureCode.CELL_FAILED),
    (errors.ToolkitError, FailureCode.COMMAND_FAILED),
)
"""The code of each kind of error; the first that fits decides."""


def failure_of(error: BaseException) -> tuple[FailureCode, str]:
    """Return the code, and a reason for people: our own errors' words, of any other error only its kind."""
    if _disk_is_full(error):
        return FailureCode.DISK_FULL, FailureCode.DISK_FULL.text
    if isinstance(error, (SystemExit, KeyboardInterrupt)):
        return FailureCode.STOPPED, FailureCode.STOPPED.text
    if isinstance(error, errors.ToolkitError):
        return _code(error), str(error)
    if isinstance(error, MemoryError):
        return FailureCode.COMMAND_FAILED, "The memory ran out."
    if isinstance(error, OSError):
        return FailureCode.COMMAND_FAILED, error.strerror or type(error).__name__
    return FailureCode.UNEXPECTED, f"{FailureCode.UNEXPECTED.text} It is a {type(error).__name__}."


def _code(error: errors.ToolkitError) -> FailureCode:
    kind: type[BaseException] = type(error)
    if isinstance(error, errors.NotebookFailed) and error.cell_error is not None:
        named = vars(errors).get(error.cell_error)
        kind = named if isinstance(named, type) else kind
    return next((code for known, code in _CODES if issubclass(kind, known)), FailureCode.CELL_FAILED)


def _disk_is_full(error: BaseException) -> bool:
    """Tell whether a full disk is the cause; of an error in a notebook's cell only its words are known."""
    for each in _causes(error):
        if isinstance(each, OSError) and each.errno in _FULL:
            return True
        if isinstance(each, errors.ToolkitError) and any(os.strerror(number) in str(each) for number in _FULL):
            return True
    return False


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
