"""Watch the database, the bucket and the revocations while the server runs, and run operations in threads."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from toolkit import embedded
from toolkit.bucket.client import Bucket
from toolkit.database import schema
from toolkit.database.belonging import check_bucket, check_service
from toolkit.database.connection import Database
from toolkit.errors import (
    BucketError,
    BucketUnavailable,
    DatabaseError,
    DatabaseUnavailable,
    FindingNotFound,
    SaleNotFound,
    ToolkitError,
    WrongService,
)
from toolkit.evidence.access import revoked_tokens
from toolkit.extras import require
from toolkit.http import logs
from toolkit.kit.services import Services

if TYPE_CHECKING:
    from toolkit.audit.folder import Audit

T = TypeVar("T")

NOT_FOUND_SECONDS: Final = 0.02
"""The seconds that it takes to say that something is not there; a multiple of them where looking took longer."""

CHECK_SECONDS: Final = 2.0  # seconds between two checks of the database or the bucket

REVOCATIONS_SECONDS: Final = 4.0
"""Seconds after which the revocations are read again: so long a revoked token may still be taken."""

AUDIT_SECONDS: Final = 10.0  # seconds after which it is looked for a newer audit
PATIENCE: Final = 5.0  # seconds after which a check that has not ended counts as failed


class Watched(threading.Thread, Generic[T]):
    """The last answer of a check, and its last error; once started, it checks over and over until ``end``."""

    def __init__(self, check: Callable[[], T], seconds: float, away: type[ToolkitError]) -> None:
        super().__init__(daemon=True)
        self.value: T | None = None
        self._check, self._seconds, self._away = check, seconds, away
        self._error: ToolkitError | None = away()
        self._checked_at = time.monotonic()
        self._ended = threading.Event()

    def check(self) -> None:
        """Check once."""
        try:
            self.value, self._error = self._check(), None
        except ToolkitError as error:
            self._error = error
        except Exception as error:  # the thread goes on
            logs.write("fault", **logs.fault(error))
            self._error = self._away()
        self._checked_at = time.monotonic()

    def run(self) -> None:
        """Check over and over."""
        while not self._ended.wait(self._seconds):
            self.check()

    def end(self) -> None:
        """Check no more, and wait for a check that has begun; one that hangs is left alone."""
        self._ended.set()
        if self.is_alive():
            self.join(PATIENCE)

    @property
    def error(self) -> ToolkitError | None:
        """The error of the last check, ``None`` where it went well."""
        hangs = time.monotonic() - self._checked_at > self._seconds + PATIENCE
        return self._away() if hangs else self._error

    def get(self) -> T:
        """Return what a check returned last, whether or not a later one failed; raises where none went well."""
        if self.value is None:
            raise self._away
        return self.value


class Backend:
    """The database and the bucket that operations receive while the server runs.

    A service that is away when the server starts, or later, is found again without a restart.
    """

    def __init__(self, application: Services) -> None:
        self.settings = application.settings
        self._application = application
        self._opened_bucket: Bucket | None = None
        self._newest_audit: Audit | None = None
        self._audits_looked_at = 0.0
        self._looking = threading.Lock()
        self.database_watch = Watched(self._check_database, CHECK_SECONDS, DatabaseUnavailable)
        self.bucket_watch = Watched(self._check_bucket, CHECK_SECONDS, BucketUnavailable)
        self.revocations = Watched(lambda: revoked_tokens(self.database), REVOCATIONS_SECONDS, DatabaseUnavailable)
        self._watches: tuple[Watched[Any], ...] = (self.database_watch, self.bucket_watch, self.revocations)

    def open(self) -> list[ToolkitError]:
        """Open the database and the bucket, watch them until ``close``, and return the errors of what is away.

        Raises:
            ToolkitError: waiting would not help, such as a schema of another version or a wrong bucket.
        """
        for watch in self._watches:
            watch.check()
        away = [each for each in (self.database_watch.error, self.bucket_watch.error) if each is not None]
        for error in away:
            if type(error) not in (DatabaseUnavailable, BucketUnavailable, BucketError):
                raise error  # a bucket that refuses to be looked at is away, too
        for watch in self._watches:
            watch.start()
        return away

    def close(self) -> None:
        """Watch no more."""
        for watch in self._watches:
            watch.end()

    @property
    def database(self) -> Database:
        """The database.

        Raises:
            DatabaseUnavailable: it has not answered yet since the server started, or it is another one now, such
                as a restored copy, into which nothing is written.
        """
        if isinstance(self.database_watch.error, WrongService):
            raise DatabaseUnavailable(str(self.database_watch.error))
        return self.database_watch.get()

    @property
    def bucket(self) -> Bucket:
        """The bucket, which answered a moment ago: a form for a bucket that is away would be of no use.

        Raises:
            BucketUnavailable: it is away.
        """
        error = self.bucket_watch.error
        if self._opened_bucket is None or isinstance(error, BucketUnavailable):
            raise BucketUnavailable(str(error or ""))
        return self._opened_bucket  # one that refuses to be looked at may still take what is signed

    def newest_audit(self) -> Audit:
        """Return the newest audit of the database, as it was at most ``AUDIT_SECONDS`` ago.

        Raises:
            NoAudit: there is none yet.
            UnreadableFile: its findings are not what was written.
            NotInstalled: audits cannot be read in this installation.
        """
        with self._looking:
            if self._newest_audit is None or time.monotonic() >= self._audits_looked_at + AUDIT_SECONDS:
                require("audit", "Findings over HTTP")
                found = self._application.last_audit()
                if self._newest_audit is None or found.facts != self._newest_audit.facts:
                    found.verify("findings")
                    self._newest_audit = found
                self._audits_looked_at = time.monotonic()
            return self._newest_audit

    def _check_database(self) -> Database:
        database = self._application.database
        schema.check(database)
        database.run(check_service)
        return database

    def _check_bucket(self) -> Bucket:
        if self._opened_bucket is None:
            self._opened_bucket = Bucket.open(self.settings)
        bucket = self._opened_bucket
        try:
            bucket.check()
        except BucketUnavailable:
            # Started again, the embedded one listens at another port. It is found again, but not started from
            # here: whoever stopped it meant it.
            if bucket.embedded and embedded.running(self.settings.home)[1] is not None:
                self._opened_bucket = None
            raise
        if self.database_watch.value is not None:
            with suppress(DatabaseError):  # its own check names these
                self.database.run(check_bucket, bucket)
        return bucket


class Busy(Exception):
    """The operation did not end in time, or too many callers are waiting already."""


def _even(job: Callable[[], T]) -> T:
    """Run ``job``; where it finds nothing, its time does not tell whether another partner has it."""
    began = time.monotonic()
    try:
        return job()
    except (SaleNotFound, FindingNotFound):
        time.sleep(NOT_FOUND_SECONDS - (time.monotonic() - began) % NOT_FOUND_SECONDS)
        raise


class Workers:
    """Runs operations, which are synchronous, in ``threads`` threads and keeps at most ``waiting`` more in line.

    One that is still in line when its ``seconds`` are over never runs. One that has begun is left to its end: a
    database that hangs holds these threads and no others.
    """

    def __init__(self, *, threads: int, waiting: int, seconds: float) -> None:
        self._threads = ThreadPoolExecutor(threads)
        self._room = threading.Semaphore(threads + waiting)
        self._seconds = seconds

    async def run(self, job: Callable[[], T]) -> T:
        """Run ``job`` in a thread; return its result or raise its error.

        Raises:
            Busy: the job did not run, or did not end in time.
        """
        if not self._room.acquire(blocking=False):
            raise Busy
        future = self._threads.submit(_even, job)
        future.add_done_callback(lambda _: self._room.release())
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise Busy from None
