"""Keep the newest seal of each custody log in the home, outside of the database: a log cut off later shows.

The seal of a log that lacks the one kept before is not kept: nothing that is sealed after a cut hides the cut.
"""

from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from toolkit.entrypoints.application_context import ApplicationContext
from toolkit.errors import InvalidInput
from toolkit.operations.atomic_file import atomic_file
from toolkit.operations.prove.custody_log.sealing import has_seal


def kept_seal(application: ApplicationContext) -> str | None:
    """Return the hash of the newest seal that was kept here of the log in this database, if any was."""
    try:
        return _file(application).read_text(encoding="ascii").strip()
    except OSError:
        return None


def keep_seal(application: ApplicationContext, newest: str | None, *, compared: bool = False) -> None:
    """Keep the hash of a seal of the log in this database; a home that cannot be written keeps none.

    ``compared`` says that the log holds a seal that was kept elsewhere.
    """
    before = kept_seal(application)
    if newest is None or newest == before:
        return
    if before is not None and not compared:
        with application.any_service.transaction() as connection:
            if not has_seal(connection, before):
                return
    file = _file(application)
    with suppress(OSError, InvalidInput):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with atomic_file(file) as draft:
            draft.file.write(f"{newest}\n")
            draft.finish()


def _file(application: ApplicationContext) -> Path:
    url = application.any_service.engine.url
    named = (
        f"{url.host}:{url.port}/{url.database}" if application.settings.database_url is not None else "embedded"
    )
    return application.settings.home / "custody-seals" / sha256(named.encode()).hexdigest()[:16]
