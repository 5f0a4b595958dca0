"""Write the rights that each role needs as SQL, for the owner of the database.

::

    owner       makes and upgrades the toolkit's schemas; used by hand, for ``toolkit db upgrade``
    operator    audits, syncs, registers, requests and completes; used by the server and by nightly jobs
    reader      reads the toolkit's tables and the service's, and writes nothing

The operator does not own schema ``audit``: an owner could switch the triggers off that keep history.
"""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final

from sqlalchemy.dialects import postgresql

from toolkit.storage import tables
from toolkit.storage.service_map.row_versions import touched

_preparer = postgresql.dialect().identifier_preparer  # type: ignore[no-untyped-call]

_WRITTEN: Final = {"clients": "INSERT", "addresses": "INSERT", "sales": "INSERT, UPDATE", "evidences": "INSERT"}
"""The rights to write the service's relations; a withdrawal locks its sale, which takes UPDATE."""


class As(StrEnum):
    """The purpose of a role."""

    OWNER = "owner"
    OPERATOR = "operator"
    READER = "reader"


def grants(
    role: str,
    purpose: As,
    *,
    database: str,
    sources: Sequence[str] | None = None,
    written: Sequence[str] = (),
) -> list[str]:
    """Return the statements that give ``role`` all that it needs for ``purpose``, and nothing else.

    ``sources`` are the service's tables (quoted SQL names) that a service map reads, and ``written`` those that
    are written through its views, with the rights of their owner; ``None`` stands for the contract's own tables in
    ``public``. Run them again after each upgrade: it may have made new tables.
    """
    grantee = _quote(role)
    given = _owner(database, sources, written) if purpose is As.OWNER else _user(database, purpose, sources)
    return [f"GRANT {right} TO {grantee};" for right in given]


def _owner(database: str, sources: Sequence[str] | None, written: Sequence[str]) -> Iterator[str]:
    yield f"CREATE, CONNECT ON DATABASE {_quote(database)}"
    schemas = dict.fromkeys(_schema_of(source) for source in sources or ())
    for schema in schemas:
        yield f"USAGE ON SCHEMA {schema}"
    if written:
        yield f"INSERT, UPDATE ON {', '.join(written)}"
        for schema in dict.fromkeys(map(_schema_of, written)):
            yield f"USAGE ON ALL SEQUENCES IN SCHEMA {schema}"
    own = [f"{tables.OWN_TABLES}.{table.name}" for table in tables.service.sorted_tables]
    yield f"SELECT ON {', '.join(own if sources is None else sources)}"


def _user(database: str, purpose: As, sources: Sequence[str] | None) -> Iterator[str]:
    yield f"CONNECT{', TEMPORARY' if purpose is As.OPERATOR else ''} ON DATABASE {_quote(database)}"
    yield f"USAGE ON SCHEMA {tables.AUDIT}"
    yield f"SELECT ON ALL TABLES IN SCHEMA {tables.AUDIT}"
    schema = tables.OWN_TABLES
    if sources is not None:
        schema = tables.SERVICE
        yield f"USAGE ON SCHEMA {schema}"
    yield f"SELECT ON {', '.join(f'{schema}.{table.name}' for table in tables.service.sorted_tables)}"
    if purpose is As.OPERATOR:
        if sources is not None:
            yield f"SELECT ON {', '.join(map(touched, tables.OBSERVED_RELATIONS))}"
        for name, rights in _WRITTEN.items():
            yield f"{rights} ON {schema}.{name}"
        yield from _history()


def _history() -> Iterator[str]:
    """Yield the rights to write the toolkit's own tables: the least that keeps them append-only."""
    for table in tables.toolkit.sorted_tables:
        if table is tables.moved_partitions:
            continue  # only the owner can remove what it tells of
        if table in tables.APPEND_ONLY:
            yield f"INSERT ON {table.fullname}"
        elif table in tables.CLOSED_ONCE:
            ends = ", ".join(name for name in ("gone_at", "gone_how") if name in table.columns)
            yield f"INSERT, UPDATE ({ends}) ON {table.fullname}"
        elif table is tables.partner_subjects:
            yield f"INSERT, UPDATE (revoked_at, revoked_by) ON {table.fullname}"
        else:
            yield f"INSERT, UPDATE, DELETE ON {table.fullname}"


def _quote(name: str) -> str:
    """Return the name as SQL writes it, quoted where need be; SQLAlchemy doubles its per cents for drivers."""
    return str(_preparer.quote(name)).replace("%%", "%")


def _schema_of(source: str) -> str:
    """Return the schema of a table by its SQL name; one that names none is in ``public``."""
    quoted = re.match(r'("(?:[^"]|"")*"|[^".]+)\.', source)
    return quoted[1] if quoted else tables.OWN_TABLES
