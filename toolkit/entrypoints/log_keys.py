"""The keys of the custody log: those of ``TOOLKIT_LOG_KEY``, else of a file in ``TOOLKIT_HOME``.

With the embedded database, which lies in the same folder, the file is made at its first use. For a shared database
nobody makes a key by itself: one that is lost with this machine would leave a log that nobody can write out again.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

from toolkit.domain.log_keys import LogKeys
from toolkit.settings import Settings

FILE: Final = "custody-log.key"


def log_keys(settings: Settings) -> LogKeys:
    """Return the keys that these settings lead to."""
    if settings.log_keys:
        return LogKeys(settings.log_keys)
    path = settings.home / FILE
    if settings.database_url is None and not path.exists():
        _make(path)
    with suppress(FileNotFoundError):
        return LogKeys(tuple(path.read_text("ascii").split()))
    return LogKeys()


def _make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):  # another process was first
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(32) + "\n")
        try:
            os.link(draft, path)  # whole, and only where there is none yet
        finally:
            draft.unlink()
