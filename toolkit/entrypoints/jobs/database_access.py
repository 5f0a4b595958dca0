"""Open the database of a job when it is needed, and again after it did not answer."""

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TypeVar

from toolkit.entrypoints.application_context import ApplicationContext
from toolkit.entrypoints.jobs.job_log import JobLog
from toolkit.errors import DatabaseUnavailable
from toolkit.settings import Settings
from toolkit.storage.database import Database

T = TypeVar("T")


class DatabaseAccess:
    """Opens the application of the environment; an embedded database starts again by being opened."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._settings = Settings.from_environment(environ)
        self._application: ApplicationContext | None = None

    def once(self, call: Callable[[Database], T]) -> T:
        """Return what ``call`` returns; after a failure the database is opened anew the next time."""
        self._application = self._application or ApplicationContext(self._settings)
        try:
            return call(self._application.database)
        except DatabaseUnavailable:
            self.close()
            raise

    def with_retries(
        self, call: Callable[[Database], T], tries: int, pause: Callable[[int], timedelta], log: JobLog
    ) -> T:
        """Return what ``call`` returns, with up to ``tries`` further attempts while no database answers."""
        for failed in range(1, tries + 1):
            try:
                return self.once(call)
            except DatabaseUnavailable as error:
                seconds = pause(failed).total_seconds()
                log.warn(f"{error} Trying again in {seconds:g} s.")
                time.sleep(seconds)
        return self.once(call)

    def close(self) -> None:
        """Close what was opened."""
        if self._application is not None:
            self._application.close()
            self._application = None
