"""Lock a service's data directory; the server inherits the lock from the process that starts it.

It is held as long as any process of the server lives, in whatever container, so that no second server is ever
started on the same data: a pid file tells nothing about processes that cannot be seen from here.
"""

import fcntl
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil

from toolkit.errors import EmbeddedServiceError
from toolkit.storage.embedded.home import adopt
from toolkit.storage.embedded.processes import end, found, wait_until

_NAME: Final = "serving.lock"
_SECONDS: Final = 5


@contextmanager
def claim(folder: Path, *, leftover: Callable[[psutil.Process], bool]) -> Iterator[int]:
    """Hold the claim on ``folder`` by the descriptor that is handed out, for a server to inherit.

    The processes that a killed server left behind, known by ``leftover``, get a moment to end, and are ended.

    Raises:
        EmbeddedServiceError: somebody else holds it.
    """
    path = folder / _NAME
    with path.open("a") as file:
        path.chmod(0o600)
        adopt(path)
        if not wait_until(lambda: _lock(file.fileno()), _SECONDS):
            for process in found(leftover):
                end(process, signal.SIGQUIT, within=_SECONDS, firmly=signal.SIGKILL)
            if not wait_until(lambda: _lock(file.fileno()), _SECONDS):
                raise EmbeddedServiceError(
                    f"{folder} is in use by a server that cannot be seen from here, maybe in another container. "
                    "Stop it there (toolkit down), or set TOOLKIT_HOME to another folder."
                )
        yield file.fileno()


def is_claimed(folder: Path) -> bool:
    """Tell whether a server lives; not for the process that holds the lock itself."""
    try:
        with (folder / _NAME).open("a") as file:
            return not _lock(file.fileno())
    except FileNotFoundError:
        return False


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
