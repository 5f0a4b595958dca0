"""Send the files of a credentials file: JSON Lines, one upload form a line.

What was sent is noted beside it, in ``<credentials file>.done``, so that the same call goes on where it was ended.
"""

import errno
import fcntl
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Final
from unicodedata import normalize
from urllib.parse import urlsplit
from uuid import UUID

import urllib3
from pydantic import AfterValidator, Field, ValidationError

from toolkit.bucket.client import form_address
from toolkit.contract.evidence import KIND_OF, EvidenceType, FileKind, kind_of_media_type
from toolkit.contract.fields import RequestModel, invalid, invalid_fields
from toolkit.errors import (
    BucketUnavailable,
    CredentialsExpired,
    InvalidFields,
    InvalidInput,
    ToolkitError,
    UnreadableFile,
)
from toolkit.evidence.kinds import SIGNATURE_BYTES, media_type_of_bytes
from toolkit.message import Message
from toolkit.partner import FormPolicy, post_file
from toolkit.progress import Progress
from toolkit.settings import Settings


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        if parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0:
            return url
    except ValueError:
        pass
    raise invalid("Must be an http or https address")


def _with_policy(fields: dict[str, str]) -> dict[str, str]:
    try:
        FormPolicy.of(fields)
    except InvalidInput as error:
        raise invalid("{}", error.args[0]) from None
    return fields


_Text = Annotated[str, Field(min_length=1)]


class CredentialsLine(RequestModel):
    """One upload form and the file that it is for."""

    id: UUID
    sale_id: _Text
    file_name: _Text
    evidence_type: EvidenceType | None = None
    url: Annotated[str, AfterValidator(_address)]
    fields: Annotated[dict[str, str], AfterValidator(_with_policy)] = Field(repr=False)

    @property
    def host(self) -> str:
        """The host of ``url``."""
        return urlsplit(self.url).hostname or ""

    @property
    def policy(self) -> FormPolicy:
        """The limits of the form."""
        return FormPolicy.of(self.fields)


Numbered = tuple[int, CredentialsLine]  # a line and its number in the credentials file, from 1

_NO_OBJECT: Final = InvalidInput(
    "this is not JSON; the file holds one JSON object a line, see: toolkit credentials request"
)


def read_credentials(path: Path) -> Iterator[Numbered]:
    """Read the lines of a credentials file one after the other; blank ones are passed over.

    Raises:
        UnreadableFile: the file is missing, or a line is not what it should be; the text names the line.
    """
    if path.exists() and not path.is_file():  # a pipe could be read only once
        raise UnreadableFile("{}: is not a file; save the contents into one first.", path)
    try:
        with path.open("rb") as file:
            for number, text in enumerate(file, start=1):
                if text.strip():
                    try:
                        yield number, CredentialsLine.model_validate_json(text, by_alias=True, by_name=False)
                    except ValidationError as error:
                        reason = InvalidFields(invalid_fields(error)) if error.errors()[0]["loc"] else _NO_OBJECT
                        raise UnreadableFile("{}, line {}: {}", path, number, reason.args[0]) from None
    except OSError as error:
        raise UnreadableFile("{} cannot be read: {}.", path, error.strerror) from None


def remove_expired(folder: Path, now: datetime) -> None:
    """Remove the credentials files in ``folder`` of which every form has run out, with their journals."""
    for path in folder.glob("*.jsonl"):
        with suppress(UnreadableFile, OSError):  # what cannot be read is somebody else's
            if all(line.policy.expires_at < now for _, line in read_credentials(path)):
                path.unlink()
                journal_of(path).unlink(missing_ok=True)


def journal_of(credentials: Path) -> Path:
    """Return the file in which uploads with a credentials file note the lines that were sent."""
    credentials = credentials.resolve()  # beside the file itself, of which /dev/stdin may be another name
    return credentials.with_name(credentials.name + ".done")


@contextmanager
def journal(credentials: Path) -> Iterator[tuple[frozenset[str], Callable[[UUID], None]]]:
    """Yield the ids of the records whose files the bucket took, and how to note one; on the disk when it returns.

    A kill between the bucket's answer and the note makes that one file go out again, to the same key and with the
    same bytes. One upload of a credentials file at a time: the journal is locked while it is open.
    """
    descriptor = os.open(journal_of(credentials), os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InvalidInput("Another upload with this credentials file is under way.") from None

        def note(evidence_id: UUID) -> None:
            file.write(f"\n{evidence_id}".encode())  # it begins a line: a kill may have torn the one before
            os.fsync(file)

        yield frozenset(file.read().decode(errors="replace").split()), note


class UploadProblem(StrEnum):
    """The reason why a file was not uploaded."""

    NOT_FOUND = "NOT_FOUND"
    AMBIGUOUS = "AMBIGUOUS"
    OUTSIDE = "OUTSIDE"
    UNREADABLE = "UNREADABLE"
    EMPTY = "EMPTY"
    TOO_LARGE = "TOO_LARGE"
    WRONG_KIND = "WRONG_KIND"
    EXPIRED = "EXPIRED"
    REFUSED = "REFUSED"
    UNAVAILABLE = "UNAVAILABLE"


class NotSent(Exception):
    """The file of a line was not sent; a value to report, kept within this module."""

    def __init__(self, problem: UploadProblem, text: str, /, *values: object) -> None:
        self.problem, self.message = problem, Message(text, *values)
        super().__init__(self.message)


def sendable(line: CredentialsLine, root: Path, uses: Mapping[str, int]) -> Path:
    """Return the file of a line: ``root/saleId/fileName``, or ``root/fileName`` where only one line has that name.

    ``uses`` counts the lines by the names of their files. A name that is no plain file name, and a link that leads
    out of ``root``, are never followed: credentials files come from elsewhere.

    Raises:
        NotSent: with the reason, after every check that can be made on this side.
    """
    try:
        path = _find(line, root, uses)
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(SIGNATURE_BYTES)
    except OSError as error:
        raise NotSent(UploadProblem.UNREADABLE, "The file cannot be read: {}.", error.strerror) from None
    most = line.policy.max_bytes
    if size == 0:
        raise NotSent(UploadProblem.EMPTY, "The file is empty.")
    if most is not None and size > most:
        raise NotSent(UploadProblem.TOO_LARGE, "The file has {:,} bytes; at most {:,} are allowed.", size, most)
    is_type, needed = media_type_of_bytes(head), Message("Evidence is a PDF or a recording")
    kind = kind_of_media_type(is_type)
    fits = kind is not FileKind.OTHER
    if line.evidence_type is not None:
        wanted = KIND_OF[line.evidence_type]
        fits, needed = kind is wanted, Message("{} needs {}", line.evidence_type, wanted)
    if not fits:
        raise NotSent(UploadProblem.WRONG_KIND, "{}; by its bytes this is {}.", needed, is_type)
    return path


def _find(line: CredentialsLine, root: Path, uses: Mapping[str, int]) -> Path:
    name, composed = line.file_name, normalize("NFC", line.file_name)
    if not _plain(name):
        raise NotSent(UploadProblem.OUTSIDE, "fileName is a path, not a plain file name.")
    folders = [*([root / line.sale_id] if _plain(line.sale_id) else []), root]
    spellings = (name, composed, normalize("NFD", name))  # a Mac writes é as e and its accent
    candidates = [folder / each for folder in folders for each in spellings]
    found = next((path for path in candidates if _is_file(path)), None)
    if found is None:
        place = f"{line.sale_id}/{name}"
        raise NotSent(UploadProblem.NOT_FOUND, "There is no file {}, and none that is called {}.", place, name)
    if found.parent == root and uses[composed] > 1:
        raise NotSent(
            UploadProblem.AMBIGUOUS,
            "{} lines have this name: each belongs in a folder named as its sale.",
            uses[composed],
        )
    if not found.resolve().is_relative_to(root):
        raise NotSent(UploadProblem.OUTSIDE, "The file is a link that leads out of the folder.")
    return found


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # no file can be called so
            return False
        raise


def _plain(name: str) -> bool:
    return name not in {"", ".", ".."} and not any(character in name for character in "/\\\0")


_LOOPBACK: Final = frozenset(("localhost", "127.0.0.1", "::1"))


def destinations(settings: Settings) -> Callable[[CredentialsLine], bool]:
    """Return what tells whether a line sends its file to the bucket that is set, to this machine where none is."""
    if settings.evidence_bucket is None:
        return lambda line: line.host in _LOOPBACK
    bucket = form_address(settings.evidence_bucket, settings.aws)
    return lambda line: line.url == bucket


CONCURRENCY: Final = 8  # files that are sent at the same time


@dataclass(frozen=True, slots=True)
class FailedUpload:
    """A line of the credentials file whose file is not in the bucket, and why."""

    line: int
    sale_id: str
    file_name: str
    problem: UploadProblem
    message: str


@dataclass(frozen=True, slots=True)
class Uploaded:
    """The result for the lines of a credentials file; ``skipped`` were sent by an earlier call."""

    files: int
    sent: int
    skipped: int
    failures: tuple[FailedUpload, ...]


def upload_files(
    credentials: Path,
    folder: Path,
    *,
    progress: Progress | None = None,
    may_go: Callable[[CredentialsLine], bool] | None = None,
) -> Uploaded:
    """Send the files of a credentials file from ``folder``; the failure of one does not stop the others.

    The whole credentials file is read and checked first. Memory holds what is under way, whatever the number
    and the size of the files. Killed and called again, it goes on with what is not in its journal.
    ``may_go`` bounds the addresses that it may name, see ``destinations``.

    Raises:
        UnreadableFile: the credentials file, with the line at fault; nothing was sent.
        InvalidInput: there is no such folder, another upload of this file is under way, or a line names an
            address that files may not be sent to; nothing was sent.
    """
    progress = progress or Progress()
    if not folder.is_dir():
        raise InvalidInput("There is no folder {}.", folder)
    uses = Counter[str]()
    for _, line in read_credentials(credentials):
        uses[normalize("NFC", line.file_name)] += 1
        if may_go is not None and not may_go(line):
            raise InvalidInput(
                "{} sends files to {}, not to the bucket that is set; nothing was sent. If they are meant to go "
                "there, set EVIDENCE_BUCKET and AWS_ENDPOINT_URL.",
                *(credentials.name, line.host),
            )
    files, tried, failures = uses.total(), 0, list[FailedUpload]()
    find = partial(sendable, root=folder.resolve(), uses=uses)
    with (
        journal(credentials) as (done, note),
        urllib3.PoolManager(maxsize=CONCURRENCY) as connections,
        ThreadPoolExecutor(CONCURRENCY, thread_name_prefix="upload") as threads,
    ):
        progress.begin("Uploading", files, "files")
        lines = (each for each in read_credentials(credentials) if str(each[1].id) not in done)
        send = _sender(find, note, connections)
        while some := list(islice(lines, 16 * CONCURRENCY)):
            for failure in threads.map(send, some):
                failures += [] if failure is None else [failure]
                tried += 1
                progress.advance(1)
        progress.end()
    return Uploaded(files, tried - len(failures), files - tried, tuple(failures))


def _sender(
    find: Callable[[CredentialsLine], Path], note: Callable[[UUID], None], connections: urllib3.PoolManager
) -> Callable[[Numbered], FailedUpload | None]:
    """Return what sends the file of a line, several at the same time, and notes it, or tells why it did not."""
    away_in_a_row = 0

    def send(numbered: Numbered) -> FailedUpload | None:
        nonlocal away_in_a_row
        number, line = numbered
        try:
            # The remaining files are given up soon where the bucket does not answer, not after half a minute each.
            if away_in_a_row >= CONCURRENCY:
                raise BucketUnavailable("Not tried: the bucket did not answer for the files before.")
            post_file(line.url, line.fields, find(line), pool=connections)
        except (NotSent, ToolkitError) as error:
            away_in_a_row += isinstance(error, BucketUnavailable)
            named = _PROBLEM_OF.get(type(error), UploadProblem.REFUSED)
            problem = error.problem if isinstance(error, NotSent) else named
            return FailedUpload(number, line.sale_id, line.file_name, problem, error.message)
        note(line.id)
        away_in_a_row = 0
        return None

    return send


_PROBLEM_OF: Final[dict[type[Exception], UploadProblem]] = {
    CredentialsExpired: UploadProblem.EXPIRED,
    BucketUnavailable: UploadProblem.UNAVAILABLE,
    UnreadableFile: UploadProblem.UNREADABLE,
}
