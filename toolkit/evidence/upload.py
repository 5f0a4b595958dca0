"""Send many files at once."""

import errno
import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit

import urllib3

from toolkit.contract.evidence import KIND_OF, FileKind
from toolkit.errors import (
    BucketUnavailable,
    CredentialsExpired,
    InvalidInput,
    ToolkitError,
    UnreadableFile,
)
from toolkit.evidence.credentials_file import CredentialsLine, Journal, read_credentials
from toolkit.evidence.kinds import SIGNATURE_BYTES, kind_of_bytes, media_type_of_bytes
from toolkit.partner import post_file
from toolkit.progress import Progress, Quiet
from toolkit.settings import Settings


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
    """The file of a line was not sent; a value to report, kept within this package."""

    def __init__(self, problem: UploadProblem, message: str) -> None:
        self.problem = problem
        super().__init__(message)


_NO_COMPONENT: Final = frozenset(("", ".", ".."))


class LocalFiles:
    """The files below ``root``: ``root/saleId/fileName``, or ``root/fileName`` where only one line has that name.

    ``uses`` counts the lines by the names of their files.

    A name that is no plain file name, and a link that leads out of ``root``, are never followed: credentials
    files come from elsewhere.
    """

    def __init__(self, root: Path, uses: Counter[str]) -> None:
        self._root = root.resolve()
        self._uses = uses

    def __len__(self) -> int:
        return self._uses.total()

    def sendable(self, line: CredentialsLine) -> Path:
        """Return the path of the line's file, after every check that can be made on this side.

        Raises:
            NotSent: with the reason.
        """
        try:
            path = self._find(line)
            size = path.stat().st_size
            with path.open("rb") as file:
                head = file.read(SIGNATURE_BYTES)
        except OSError as error:
            raise NotSent(UploadProblem.UNREADABLE, f"The file cannot be read: {error.strerror}.") from None
        _check_size(line, size)
        _check_kind(line, head)
        return path

    def _find(self, line: CredentialsLine) -> Path:
        if not _plain(line.file_name):
            raise NotSent(UploadProblem.OUTSIDE, "fileName is a path, not a plain file name.")
        candidates = [self._root / line.sale_id / line.file_name] if _plain(line.sale_id) else []
        candidates.append(self._root / line.file_name)
        found = next((path for path in candidates if _is_file(path)), None)
        if found is None:
            why = f"There is no file {line.sale_id}/{line.file_name}, and none that is called {line.file_name}."
            raise NotSent(UploadProblem.NOT_FOUND, why)
        if found == self._root / line.file_name and (uses := self._uses[line.file_name]) > 1:
            why = f"{uses} lines have this name: each belongs in a folder named as its sale."
            raise NotSent(UploadProblem.AMBIGUOUS, why)
        if not found.resolve().is_relative_to(self._root):
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
    return name not in _NO_COMPONENT and not any(character in name for character in "/\\\0")


def _check_size(line: CredentialsLine, size: int) -> None:
    most = line.policy.max_bytes
    if size == 0:
        raise NotSent(UploadProblem.EMPTY, "The file is empty.")
    if most is not None and size > most:
        raise NotSent(UploadProblem.TOO_LARGE, f"The file has {size} bytes; at most {most} are allowed.")


def _check_kind(line: CredentialsLine, head: bytes) -> None:
    kind = kind_of_bytes(head)
    if line.evidence_type is None:
        fits, needed = kind is not FileKind.OTHER, "Evidence is a PDF or a recording"
    else:
        wanted = KIND_OF[line.evidence_type]
        fits, needed = kind is wanted, f"{line.evidence_type} needs {wanted}"
    if not fits:
        is_type = media_type_of_bytes(head)
        raise NotSent(UploadProblem.WRONG_KIND, f"{needed}; by its bytes this is {is_type}.")


_LOOPBACK: Final = frozenset(("localhost", "127.0.0.1", "::1"))

_AMAZON: Final = r"s3(?:[.-](?:accelerate|dualstack|fips|[a-z]{2}(?:-[a-z]+)+-\d))*\.amazonaws\.com(?:\.cn)?"
"""The hosts of Amazon S3. Whatever stands before may be anybody's bucket."""

_USUAL_PORT: Final = re.compile(r"(?<=^http)(://[^/]*):80(?=/|$)|(?<=^https)(://[^/]*):443(?=/|$)")


@dataclass(frozen=True, slots=True)
class Destinations:
    """Whole hosts, and the addresses of the one bucket that is set."""

    hosts: frozenset[str]
    bucket: re.Pattern[str] | None = None

    @classmethod
    def of(cls, settings: Settings, allowed: Iterable[str] = ()) -> Self:
        """Return the bucket that is set (this machine where none is), and the hosts ``allowed``."""
        also = frozenset(host.strip().strip("[]").lower() for host in allowed)
        if settings.evidence_bucket is None:
            return cls(_LOOPBACK | also)
        scheme, server, folder = "https", _AMAZON, ""
        if settings.aws.s3_endpoint is not None:
            endpoint = urlsplit(_told(settings.aws.s3_endpoint))
            scheme, server, folder = endpoint.scheme, re.escape(endpoint.netloc), re.escape(endpoint.path)
        name = re.escape(settings.evidence_bucket)
        return cls(also, re.compile(f"{scheme}://(?:{server}{folder}/{name}|{name.lower()}\\.{server}{folder})"))

    def allow(self, url: str) -> bool:
        """Tell whether files may go there."""
        host = (urlsplit(url).hostname or "").lower()
        return host in self.hosts or (self.bucket is not None and bool(self.bucket.fullmatch(_told(url))))


def _told(url: str) -> str:
    """Return the address without what may be left out or written in two ways."""
    parts = urlsplit(url)
    netloc = parts.netloc.rpartition("@")[2].lower()
    return _USUAL_PORT.sub(r"\1\2", f"{parts.scheme}://{netloc}{parts.path.rstrip('/')}")


CONCURRENCY: Final = 8
"""Files that are sent at the same time."""

_PROBLEM_OF: Final[tuple[tuple[type[ToolkitError], UploadProblem], ...]] = (
    (CredentialsExpired, UploadProblem.EXPIRED),
    (BucketUnavailable, UploadProblem.UNAVAILABLE),
    (UnreadableFile, UploadProblem.UNREADABLE),
)


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
    concurrency: int = CONCURRENCY,
    progress: Progress | None = None,
    destinations: Destinations | None = None,
) -> Uploaded:
    """Send the files of a credentials file from ``folder``; the failure of one does not stop the others.

    The whole credentials file is read and checked first. Memory holds what is under way, whatever the number
    and the size of the files. Killed and called again, it goes on with what is not in its journal.
    ``destinations`` bounds the addresses that it may name.

    Raises:
        UnreadableFile: the credentials file, with the line at fault; nothing was sent.
        InvalidInput: there is no such folder, another upload of this file is under way, or a line names an
            address that files may not be sent to; nothing was sent.
    """
    progress = progress or Quiet()
    if not folder.is_dir():
        raise InvalidInput("There is no folder {}.", folder)
    strange: set[str] = set()
    uses = Counter[str]()
    for line in read_credentials(credentials):
        uses[line.file_name] += 1
        if destinations is not None and not destinations.allow(line.url):
            strange.add(line.host)
    files = LocalFiles(folder, uses)
    if strange:
        raise InvalidInput(_strange_hosts(credentials, sorted(strange)))
    with Journal(credentials) as journal, _Sender(files, concurrency) as sender:
        progress.begin("Uploading", len(files), "files")
        lines = (line for line in read_credentials(credentials) if line.id not in journal)
        tried, failures = 0, []
        for finished in sender.send_all(lines):
            journal.add(line.id for line, failure in finished if failure is None)
            failures += [failure for _, failure in finished if failure is not None]
            tried += len(finished)
            progress.advance(len(finished))
        progress.end()
    failures.sort(key=lambda failure: failure.line)
    return Uploaded(len(files), tried - len(failures), len(files) - tried, tuple(failures))


def _strange_hosts(credentials: Path, hosts: Sequence[str]) -> str:
    named = ", ".join(hosts[:3]) + (f" and {len(hosts) - 3} more" if len(hosts) > 3 else "")
    return (
        f"{credentials.name} sends files to {named}, not to the bucket that is set; nothing was sent. "
        f"If they are meant to go there: --allow-host {hosts[0]}"
    )


class _Stopped(Exception):
    """The upload was stopped; nobody waits for this file any more."""


_Outcome = tuple[CredentialsLine, FailedUpload | None]


class _Sender:
    """A few threads with connections that stay open; leaving the block stops what is under way."""

    def __init__(self, files: LocalFiles, concurrency: int) -> None:
        self._files = files
        self._concurrency = concurrency
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="upload")
        self._connections = urllib3.PoolManager(maxsize=concurrency)
        self._away_in_a_row = 0
        self._stopped = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._threads.shutdown(cancel_futures=True)
        self._connections.clear()

    def send_all(self, lines: Iterator[CredentialsLine]) -> Iterator[list[_Outcome]]:
        """Send the lines, some at a time; yield each outcome in the order in which they end."""
        under_way: set[Future[_Outcome]] = set()
        while True:
            wanted = 2 * self._concurrency - len(under_way)
            under_way |= {self._threads.submit(self._send, line) for line in islice(lines, wanted)}
            if not under_way:
                return
            finished, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            yield [future.result() for future in finished]

    def _send(self, line: CredentialsLine) -> _Outcome:
        try:
            # The remaining files are given up soon where the bucket does not answer, not after half a minute each.
            if self._away_in_a_row >= self._concurrency:
                raise BucketUnavailable("Not tried: the bucket did not answer for the files before.")
            path = self._files.sendable(line)
            post_file(line.url, line.fields, path, progress=self._check_stopped, pool=self._connections)
        except (NotSent, ToolkitError) as error:
            self._away_in_a_row += isinstance(error, BucketUnavailable)
            problem = next((each for kind, each in _PROBLEM_OF if isinstance(error, kind)), UploadProblem.REFUSED)
            problem = error.problem if isinstance(error, NotSent) else problem
            return line, FailedUpload(line.line, line.sale_id, line.file_name, problem, str(error))
        self._away_in_a_row = 0
        return line, None

    def _check_stopped(self, _: int) -> None:
        if self._stopped.is_set():
            raise _Stopped
