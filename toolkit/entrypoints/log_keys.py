"""The keys of the custody log: those of ``TOOLKIT_LOG_KEY``, else of a file in ``TOOLKIT_HOME``.

With the embedded database, which lies in the same folder, the file is made at its first use. For a shared database
nobody makes a key by itself: one that is lost with this machine would leave a log that nobody can write out again.
"""

import secrets
from contextlib import suppress
from typing import Final

from toolkit.domain.log_keys import LogKeys
from toolkit.settings import Settings
from toolkit.storage.embedded.home import make_once

FILE: Final = "custody-log.key"


def log_keys(settings: Settings) -> LogKeys:
    """Return the keys that these settings lead to."""
    if settings.log_keys:
        return LogKeys(settings.log_keys)
    path = settings.home / FILE
    if settings.database_url is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        make_once(path, f"{secrets.token_hex(32)}\n".encode())
    with suppress(FileNotFoundError):
        return LogKeys(tuple(path.read_text("ascii").split()))
    return LogKeys()
