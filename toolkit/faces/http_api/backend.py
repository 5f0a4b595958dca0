"""The database and the bucket behind the interface: opened when they answer, and asked how they are."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from toolkit.errors import BucketUnavailable, DatabaseUnavailable, ToolkitError
from toolkit.faces.workspace import Workspace
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database

T = TypeVar("T")

BELIEVED: Final = 2.0
"""Seconds for which the last look at the database or the bucket is believed."""


class Backend:
    """What operations are given, for as long as the server runs.

    A service that is away when the server starts, or later, is found again without a restart.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.settings = workspace.settings
        self.clock = workspace.clock
        self._database = _Opened(lambda: workspace.database, DatabaseUnavailable)
        self._bucket = _Opened(lambda: workspace.bucket, BucketUnavailable)
        self._database_look = _Look(self._ask_database)
        self._bucket_look = _Look(lambda: self._bucket.get().check())

    def open(self) -> list[ToolkitError]:
        """Open both, and tell which of them is away.

        Raises:
            ToolkitError: waiting would not help, such as a schema of another version.
        """
        away: list[ToolkitError] = []
        for opened in (self._database, self._bucket):
            try:
                opened.get()
            except (DatabaseUnavailable, BucketUnavailable) as error:
                away.append(error)
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
        self._bucket_look.require()
        return self._bucket.get()

    def check(self) -> dict[str, ToolkitError | None]:
        """How the database and the bucket are: ``None``, or why they cannot be used."""
        return {"database": self._database_look.outcome(), "bucket": self._bucket_look.outcome()}

    def _ask_database(self) -> None:
        with self._database.get().transaction():
            pass  # a pooled connection is tried before it is handed out


class _Opened(Generic[T]):
    """Opened at the first success; while one thread tries, the others are told that it is away."""

    def __init__(self, open_it: Callable[[], T], away: type[ToolkitError]) -> None:
        self._open = open_it
        self._away = away
        self._trying = threading.Lock()
        self._value: T | None = None

    def get(self) -> T:
        if self._value is None:
            if not self._trying.acquire(blocking=False):
                raise self._away
            try:
                self._value = self._open()
            finally:
                self._trying.release()
        return self._value


class _Look:
    """The outcome of a check, renewed by one thread at a time when it is older than ``BELIEVED``."""

    def __init__(self, check: Callable[[], object]) -> None:
        self._check = check
        self._looking = threading.Lock()
        self._error: ToolkitError | None = None
        self._renew_at = 0.0

    def outcome(self) -> ToolkitError | None:
        # Only before the very first outcome is there nothing to believe meanwhile, so only then others wait.
        if time.monotonic() >= self._renew_at and self._looking.acquire(blocking=not self._renew_at):
            try:
                if time.monotonic() >= self._renew_at:
                    self._error = self._looked()
                    self._renew_at = time.monotonic() + BELIEVED
            finally:
                self._looking.release()
        return self._error

    def require(self) -> None:
        error = self.outcome()
        if error is not None:
            raise type(error)(str(error))

    def _looked(self) -> ToolkitError | None:
        try:
            self._check()
        except ToolkitError as error:
            return error
        return None
