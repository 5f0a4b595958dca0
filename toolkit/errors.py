"""The exceptions of the toolkit, which mean that it could not do its job, as one tree.

Broken business rules are values, not exceptions: a rejected row, a missing document, a conflict.

The text of an error is shown to people in their language: it says what happened and what to do. It never holds
personal data, secrets or upload credentials.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Final

from toolkit.message import Message, listed

INTERRUPTED: Final = re.compile("^Query interrupted$|failed: (KeyboardInterrupt|SystemExit): ")
"""The words of DuckDB about a signal that came while it worked, in errors of two kinds."""


class ToolkitError(Exception):
    """The toolkit could not do its job.

    ``raise InvalidInput("{} is empty.", path)``: the sentence is a template, which can be translated.
    """

    worded: ClassVar[Callable[[Exception], str]] = str
    """Words an error for people; ``toolkit.kit`` puts in one that knows their language."""

    def __init__(self, message: str | None = None, /, *values: Any) -> None:
        text = message or type(self).__doc__ or ""
        self.message = text if isinstance(text, Message) else Message(text, *values)
        super().__init__(self.message)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what ``pickle`` makes it of again, in a pool of processes, without the arguments of its kind."""
        return type(self).__new__, (type(self), *self.args), vars(self)

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows in place of a traceback: the sentence, in the reader's language."""
        return [f"{type(self).__name__}: {type(self).worded(self)}"]


class SettingsError(ToolkitError):
    """A setting is wrong."""


class LogKeyMissing(SettingsError):
    """The key that signs the custody log is not here."""


class LogDiffers(ToolkitError):
    """The custody log is not what was signed."""


class NotInstalled(ToolkitError):
    """An optional part of the toolkit is not installed."""


class InvalidInput(ToolkitError):
    """The input cannot be used."""


@dataclass(frozen=True, slots=True)
class InvalidField:
    """One field that breaks a rule: its dotted name in the request, and the reason for people."""

    field: str
    message: str


class InvalidFields(InvalidInput):
    """The request does not pass validation.

    ``invalid`` lists every invalid field of the request in the contract's order; the values themselves
    are left out on purpose. ``summary`` says in a sentence what the contract has a case of its own for.
    """

    def __init__(self, invalid: Sequence[InvalidField], summary: str | None = None) -> None:
        self.invalid = tuple(invalid)
        self.summary = summary
        super().__init__(listed(Message("{}: {}", item.field, item.message) for item in self.invalid))


class UnreadableFile(InvalidInput):
    """The file cannot be read."""


class AlreadyThere(ToolkitError):
    """The service keeps this only once, and has it already."""


class SaleNotFound(ToolkitError):
    """There is no sale with this id."""

    def __init__(self, sale_id: str | None = None) -> None:
        super().__init__(None if sale_id is None else Message("There is no sale with the id {!r}.", sale_id))


class TooManyForms(ToolkitError):
    """The sale has as many valid upload credentials of this type as are allowed.

    ``wait`` is the time until the first of them runs out.
    """

    def __init__(self, wait: timedelta) -> None:
        self.wait = wait
        super().__init__(
            Message("The sale has too many valid upload credentials of this type; use those, or wait.")
        )


class NoAudit(ToolkitError):
    """No audit has been made yet."""


class FindingNotFound(ToolkitError):
    """There is no finding with this id."""


class EvidenceNotFound(ToolkitError):
    """No evidence record has this id."""


class WithdrawalRefused(ToolkitError):
    """The evidence record cannot be withdrawn."""


class WaiverRefused(ToolkitError):
    """The waiver cannot be added or revoked."""


class ReviewRefused(ToolkitError):
    """The answers of a reviewer cannot be kept."""


class PrivacyRefused(ToolkitError):
    """A request about personal data is refused: the data are held, or something is missing."""


class CredentialsExpired(ToolkitError):
    """The upload credentials ran out; request new ones."""


class UploadRefused(ToolkitError):
    """The bucket refused the upload."""


class VerificationFailed(ToolkitError):
    """The process that looks at evidence files cannot be started; reinstall the toolkit."""


class NotInspected(VerificationFailed):
    """The toolkit failed or was ended while it looked at an evidence file, which says nothing about the file."""


class ServiceError(ToolkitError):
    """The sales service refused or failed."""


class ServiceUnavailable(ServiceError):
    """The sales service does not answer."""


class DatabaseError(ToolkitError):
    """The database refused or failed."""


class DatabaseUnavailable(DatabaseError):
    """The database does not answer."""


class LoginRefused(DatabaseUnavailable):
    """The database refused the login, or is not there."""


class WrongService(DatabaseError):
    """The toolkit's data in this database are about another service's tables."""


class SchemaMismatch(DatabaseError):
    """The database schema does not fit this version of the toolkit."""


class WriteRefused(DatabaseError):
    """The service's tables cannot be written."""


class MassDisappearance(ToolkitError):
    """Most of what was known is gone at once."""


class NothingEvaluated(ToolkitError):
    """There is no sale that could be judged."""


class BucketError(ToolkitError):
    """The bucket refused or failed."""


class WrongBucket(BucketError):
    """The database belongs to another bucket."""


class ObjectArchived(BucketError):
    """The object is archived and must be restored before it can be read."""


class ObjectDenied(BucketError):
    """The credentials may not read the object."""


class BucketUnavailable(BucketError):
    """The bucket does not answer."""


class EmbeddedServiceError(ToolkitError):
    """An embedded service cannot be started or stopped."""


class NotebookFailed(ToolkitError):
    """The notebook did not run to its end.

    ``cell_error`` is the name of the error that a cell ended with, where that is the reason.
    """

    def __init__(self, message: str | None = None, /, *values: Any, cell_error: str | None = None) -> None:
        super().__init__(message, *values)
        self.cell_error = cell_error


class NotebookTimedOut(NotebookFailed):
    """The notebook took longer than it may."""


class KernelDied(NotebookFailed):
    """The kernel of the notebook died."""


class JobFailed(ToolkitError):
    """The job could not do its work."""


class LeaseLost(JobFailed):
    """Another start took this run over, because nothing had been heard of it; nothing more was written."""


class EngineUnavailable(ToolkitError):
    """The engine that should judge does not answer, or failed."""


class ReportError(ToolkitError):
    """The report cannot be written or verified."""
