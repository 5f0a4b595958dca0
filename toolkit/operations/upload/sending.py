"""Send many files at once."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, Self

import urllib3

from toolkit.errors import (
    BucketUnavailable,
    CredentialsExpired,
    InvalidInput,
    ToolkitError,
    UnreadableFile,
    UploadRefused,
)
from toolkit.operations.progress import Progress, Quiet
from toolkit.operations.upload.credentials_file import CredentialsLine, Journal, read_credentials
from toolkit.operations.upload.destinations import Destinations
from toolkit.operations.upload.local_files import LocalFiles, NotSendable, UploadProblem
from toolkit.operations.upload.renewal import Renewal
from toolkit.partner import post_file

CONCURRENCY: Final = 8
"""Files that are sent at the same time."""

_PROBLEM_OF: Final[tuple[tuple[type[ToolkitError], UploadProblem], ...]] = (
    (CredentialsExpired, UploadProblem.EXPIRED),
    (UploadRefused, UploadProblem.REFUSED),
    (BucketUnavailable, UploadProblem.UNAVAILABLE),
    (UnreadableFile, UploadProblem.UNREADABLE),
    (ToolkitError, UploadProblem.REFUSED),
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
    renewal: Renewal | None = None,
    progress: Progress | None = None,
    announce: Callable[[Sequence[str]], None] | None = None,
    destinations: Destinations | None = None,
) -> Uploaded:
    """Send the files of a credentials file from ``folder``; the failure of one does not stop the others.

    The whole credentials file is read and checked first. Memory holds what is under way, whatever the number
    and the size of the files. Killed and called again, it goes on with what is not in its journal. With a
    ``renewal``, new credentials are asked for where those of a line ran out. ``announce`` is told the addresses
    that the file names, before anything goes there; ``destinations`` bounds them.

    Raises:
        UnreadableFile: the credentials file, with the line at fault; nothing was sent.
        InvalidInput: there is no such folder, another upload of this file is under way, or a line names an
            address that files may not be sent to; nothing was sent.
    """
    progress = progress or Quiet()
    if not folder.is_dir():
        raise InvalidInput(f"There is no folder {folder}.")
    addresses: dict[str, None] = {}
    strange: set[str] = set()
    uses = Counter[str]()
    for line in read_credentials(credentials):
        uses[line.file_name] += 1
        addresses[line.address] = None
        if destinations is not None and not destinations.allow(line.url):
            strange.add(line.host)
    files = LocalFiles(folder, uses)
    if strange:
        raise InvalidInput(_strange_hosts(credentials, sorted(strange)))
    if announce is not None:
        announce(list(addresses))
    with Journal(credentials) as journal, _Sender(files, concurrency, renewal) as sender:
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

    def __init__(self, files: LocalFiles, concurrency: int, renewal: Renewal | None) -> None:
        self._files = files
        self._renewal = renewal
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
            self._post(line, self._files.sendable(line))
        except NotSendable as error:
            return line, self._failure(line, error.problem, error)
        except BucketUnavailable as error:
            self._away_in_a_row += 1
            return line, self._failure(line, UploadProblem.UNAVAILABLE, error)
        except ToolkitError as error:
            problem = next(problem for kind, problem in _PROBLEM_OF if isinstance(error, kind))
            return line, self._failure(line, problem, error)
        self._away_in_a_row = 0
        return line, None

    def _post(self, line: CredentialsLine, path: Path) -> None:
        try:
            post_file(line.url, line.fields, path, progress=self._check_stopped, pool=self._connections)
        except CredentialsExpired:
            if self._renewal is None:
                raise
            form = self._renewal.renewed(line)
            if form is not None:
                post_file(form.url, form.fields, path, progress=self._check_stopped, pool=self._connections)

    def _check_stopped(self, _: int) -> None:
        if self._stopped.is_set():
            raise _Stopped

    def _failure(self, line: CredentialsLine, problem: UploadProblem, error: Exception) -> FailedUpload:
        return FailedUpload(line.line, line.sale_id, line.file_name, problem, str(error))
