"""Write the rights that each role needs as SQL, for the owner of the database.

::

    owner       makes and upgrades the toolkit's schemas; used by hand, for ``toolkit db upgrade``
    operator    audits, syncs, registers, requests and completes; used by the server and by nightly jobs
    reader      reads the toolkit's tables and the service's, and writes nothing

The operator does not own schema ``audit``: an owner could switch the triggers off that keep history.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum

from sqlalchemy.dialects import postgresql

from toolkit.database import tables

_preparer = postgresql.dialect().identifier_preparer  # type: ignore[no-untyped-call]


class As(StrEnum):
    """The purpose of a role."""

    OWNER = "owner"
    OPERATOR = "operator"
    READER = "reader"


def grants(role: str, purpose: As, *, database: str, reads: Sequence[str], writes: Sequence[str]) -> list[str]:
    """Return the statements that give ``role`` all that it needs for ``purpose``, and nothing else.

    ``reads`` and ``writes`` are the rights that the statements of ``service.sql`` need, without and with those
    that write (``toolkit.database.service_tables.rights``). Run them again after each upgrade: it may have made
    new tables.
    """
    grantee = _quote(role)
    rights = [f"CONNECT{', TEMPORARY' if purpose is As.OPERATOR else ''} ON DATABASE {_quote(database)}"]
    if purpose is As.OWNER:
        rights = [f"CREATE, CONNECT ON DATABASE {_quote(database)}", *reads]
    else:
        rights += [f"USAGE ON SCHEMA {tables.AUDIT}", f"SELECT ON ALL TABLES IN SCHEMA {tables.AUDIT}"]
        rights += writes if purpose is As.OPERATOR else reads
    if purpose is As.OPERATOR:
        rights += _history()
    return [f"GRANT {right} TO {grantee};" for right in rights]


def _history() -> Iterator[str]:
    """Yield the rights to write the toolkit's own tables: the least that keeps them append-only."""
    for table in tables.toolkit.sorted_tables:
        if table in tables.APPEND_ONLY:
            yield f"INSERT ON {table.fullname}"
        elif table in tables.CLOSED_ONCE:
            ends = ", ".join(name for name in ("gone_at", "gone_how") if name in table.columns)
            yield f"INSERT, UPDATE ({ends}) ON {table.fullname}"
        else:
            yield f"INSERT, UPDATE, DELETE ON {table.fullname}"


def _quote(name: str) -> str:
    """Return the name as SQL writes it, quoted where need be; SQLAlchemy doubles its per cents for drivers."""
    return str(_preparer.quote(name)).replace("%%", "%")
