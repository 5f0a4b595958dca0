"""Hold a run by renewing its lease, and stop it when its time is up or its lease is lost.

A thread renews the lease. Where it cannot, because the database is away, this process stops the run before the
lease ends, so that no two processes work on one slot. Stopping is a SIGTERM to ourselves: whatever is running
handles it as it handles one from outside.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from types import FrameType
from typing import Final

from toolkit.domain.jobs.outcomes import FailureCode
from toolkit.errors import ToolkitError

_LAST_ANSWER: Final = 5.0
"""Seconds that a renewal on its way may still take when the run is at its end."""

GRACE: Final = 60.0
"""Seconds that a run has to end itself after it was told to stop; then the process ends as a whole."""


@dataclass
class Holding:
    """A run that this process holds; ``renew`` tells whether it is still ours, and raises where nobody answers."""

    renew: Callable[[], bool]
    lease: timedelta
    timeout: timedelta
    cause: FailureCode | None = None
    """The reason why this process stopped the run, if it did."""
    _ended: threading.Event = field(default_factory=threading.Event)
    _started: float = field(default_factory=time.monotonic)
    _renewed: float = field(default_factory=time.monotonic)

    @property
    def remaining(self) -> float:
        """Seconds until the run has to end."""
        return max(self.timeout.total_seconds() - (time.monotonic() - self._started), 0.0)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the run during the block."""
        workers = [threading.Thread(target=work, name="lease", daemon=True) for work in (self._renew, self._watch)]
        for worker in workers:
            worker.start()
        try:
            yield
        finally:
            self._ended.set()
            for worker in workers:
                worker.join(_LAST_ANSWER)

    def _renew(self) -> None:
        while not self._ended.wait(self.lease.total_seconds() / 4):
            asked = time.monotonic()
            # While the database is away there is nothing to renew; that this lasts too long is seen by _watch,
            # which does not wait for an answer as we may do here.
            with suppress(ToolkitError):
                if not self.renew():
                    return self._stop(FailureCode.LEASE_LOST)
                self._renewed = asked
        return None

    def _watch(self) -> None:
        longest = self.lease.total_seconds() * 0.7
        while not self._ended.wait(min(longest / 4, max(self.remaining, 0.05))):
            if self.remaining == 0:
                return self._stop(FailureCode.TIMED_OUT)
            if time.monotonic() - self._renewed > longest:
                return self._stop(FailureCode.DATABASE_UNAVAILABLE)
        return None

    def _stop(self, cause: FailureCode) -> None:
        if self._ended.is_set():
            return
        self.cause = self.cause or cause
        os.kill(os.getpid(), signal.SIGTERM)
        if not self._ended.wait(GRACE):
            os.kill(os.getpid(), signal.SIGKILL)  # the next start notes that the run died


class Stops:
    """Turns signals into an exception, at once or after a block that must not be interrupted."""

    def __init__(self) -> None:
        self._shielded = False
        self._waiting: int | None = None

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal."""
        if self._shielded:
            self._waiting = number
        else:
            raise SystemExit(128 + number)

    @contextmanager
    def later(self) -> Iterator[None]:
        """Let signals wait for the end of the block."""
        self._shielded = True
        try:
            yield
        finally:
            self._shielded = False
        if self._waiting is not None:
            raise SystemExit(128 + self._waiting)
