"""Open the database and the bucket of the interface when they answer, check their health, and run operations."""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

from toolkit import embedded
from toolkit.bucket.client import Bucket
from toolkit.database import schema
from toolkit.database.belonging import check_bucket, check_service
from toolkit.database.connection import Database
from toolkit.errors import BucketUnavailable, DatabaseError, DatabaseUnavailable, SchemaMismatch, ToolkitError
from toolkit.kit.context import ApplicationContext

T = TypeVar("T")

BELIEVED: Final = 2.0
"""Seconds for which a check of the database or the bucket holds."""

PATIENCE: Final = 5.0
"""Seconds after which a check that has not ended counts as failed."""


class Backend:
    """The database, bucket and clock that operations receive while the server runs.

    A service that is away when the server starts, or later, is found again without a restart.
    """

    def __init__(self, application: ApplicationContext) -> None:
        self.settings = application.settings
        self.clock = application.clock
        self._database = _Opened(lambda: application.database, DatabaseUnavailable)
        self._bucket = _Opened(lambda: Bucket.open(application.settings), BucketUnavailable)
        self._database_look = _Look(self._ask_database, DatabaseUnavailable)
        self._bucket_look = _Look(self._ask_bucket, BucketUnavailable)

    def open(self) -> list[ToolkitError]:
        """Open both, and return the errors of those that do not answer.

        Raises:
            ToolkitError: waiting would not help, such as a schema of another version or a wrong bucket.
        """
        away: list[ToolkitError] = []
        for opened in (self._database, self._bucket):
            try:
                opened.get()
            except (DatabaseUnavailable, BucketUnavailable) as error:
                away.append(error)
        if not away:
            self._check_belonging()
        return away

    @property
    def database(self) -> Database:
        """The database.

        Raises:
            DatabaseUnavailable: it has not answered yet since the server started.
        """
        return self._database.get()

    @property
    def bucket(self) -> Bucket:
        """The bucket, which answered a moment ago: a form for a bucket that is away would be of no use.

        Raises:
            BucketUnavailable: it is away.
        """
        error = self._bucket_look.outcome()
        if isinstance(error, BucketUnavailable):
            raise BucketUnavailable(str(error))
        return self._bucket.get()  # one that answers no to looking at it may still take what is signed

    def check(self) -> Mapping[str, Exception | None]:
        """Check the database and the bucket: ``None`` where they work, else the reason."""
        return {"database": self._database_look.outcome(), "bucket": self._bucket_look.outcome()}

    def _ask_database(self) -> None:
        database = self._database.get()
        if not schema.is_current(database):
            raise SchemaMismatch
        with database.transaction() as connection:
            check_service(connection)

    def _ask_bucket(self) -> None:
        bucket = self._bucket.get()
        try:
            bucket.check()
        except BucketUnavailable:
            # Started again, the embedded one listens at another port. It is found again, but not started from
            # here: whoever stopped it meant it.
            if bucket.embedded and embedded.statuses(self.settings.home)[1].pid is not None:
                self._bucket.forget()
            raise
        with suppress(DatabaseError):  # which the look at the database tells
            self._check_belonging()

    def _check_belonging(self) -> None:
        with self._database.get().transaction() as connection:
            check_bucket(connection, self._bucket.get())


class _Opened(Generic[T]):
    """Opened at the first success; while one thread tries, the others are told that it is away."""

    def __init__(self, open_it: Callable[[], T], away: type[ToolkitError]) -> None:
        self._open = open_it
        self._away = away
        self._trying = threading.Lock()
        self._value: T | None = None

    def get(self) -> T:
        value = self._value
        if value is None:
            if not self._trying.acquire(blocking=False):
                raise self._away
            try:
                value = self._value = self._open()
            finally:
                self._trying.release()
        return value

    def forget(self) -> None:
        self._value = None


class _Look:
    """The outcome of a check, renewed by one thread at a time when it is older than ``BELIEVED``."""

    def __init__(self, check: Callable[[], object], away: type[ToolkitError]) -> None:
        self._check = check
        self._away = away
        self._looking = threading.Lock()
        self._began = 0.0
        self._error: ToolkitError | None = None
        self._renew_at = 0.0

    def outcome(self) -> ToolkitError | None:
        if time.monotonic() < self._renew_at:
            return self._error
        # Only before the very first outcome is there nothing to believe meanwhile, so only then others wait.
        if self._looking.acquire(blocking=not self._renew_at):
            try:
                self._look()
            finally:
                self._looking.release()
        elif time.monotonic() - self._began > PATIENCE:
            return self._away()
        return self._error

    def _look(self) -> None:
        self._began = time.monotonic()
        if self._began < self._renew_at:
            return  # another thread did, while this one waited
        try:
            self._check()
        except ToolkitError as error:
            self._error = error
        else:
            self._error = None
        self._renew_at = time.monotonic() + BELIEVED


class Busy(Exception):
    """The operation did not end in time, or too many callers are waiting already."""


class Workers:
    """Runs operations, which are synchronous, in ``threads`` threads and keeps at most ``waiting`` more in line.

    One that is still in line when its ``seconds`` are over never runs. One that has begun is left to its end: a
    database that hangs holds these threads and no others.
    """

    def __init__(self, *, threads: int, waiting: int, seconds: float) -> None:
        self._threads = ThreadPoolExecutor(threads)
        self._room = threads + waiting
        self._seconds = seconds
        self._jobs: set[Future[Any]] = set()

    async def run(self, job: Callable[[], T]) -> T:
        """Run ``job`` in a thread; return its result or raise its error.

        Raises:
            Busy: the job did not run, or did not end in time.
        """
        if len(self._jobs) >= self._room:
            raise Busy
        future = self._threads.submit(job)
        self._jobs.add(future)
        future.add_done_callback(self._jobs.discard)
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise Busy from None
