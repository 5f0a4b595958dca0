"""Keep the newest seal of each custody log in the home, outside of the database: a log cut off later shows.

Seals are filed by the database's own numbers, not by its address: after a failover it is compared, too. The seal
of a log that lacks the one kept before is not kept: nothing that is sealed after a cut hides the cut. The cut is
noticed in the database (``toolkit.database.belonging``), and every audit says so until two people confirm it.
"""

from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from toolkit.atomic_files import atomic_file
from toolkit.database.belonging import identity_of, notice_restore, pending_restore
from toolkit.errors import InvalidInput
from toolkit.kit.context import ApplicationContext
from toolkit.log.sealing import has_seal


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
                notice_restore(connection, before, application.clock)
                if pending_restore(connection) is not None:
                    return
    file = _file(application)
    with suppress(OSError, InvalidInput):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with atomic_file(file) as draft:
            draft.file.write(f"{newest}\n")
            draft.finish()


def _file(application: ApplicationContext) -> Path:
    with application.any_service.transaction() as connection:
        identity = identity_of(connection)
    named = f"{identity.cluster or application.any_service.address}/{identity.database}/{identity.name}"
    return application.settings.home / "custody-seals" / sha256(named.encode()).hexdigest()[:16]
