"""The schemas of the tables, and the parts that their definitions share."""

from collections.abc import Iterator
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Column, Index, MetaData, Table, text
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine

AUDIT: Final = "audit"

SERVICE: Final = "audit_service"
"""The schema that every statement names for the service's relations."""

OWN_TABLES: Final = "public"
"""The schema of the service's relations without a mapping, where they are tables as the contract has them."""

_names = {
    "pk": "%(table_name)s_pkey",
    "fk": "%(table_name)s_%(column_0_name)s_fkey",
    "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    "uq": "%(table_name)s_%(column_0_N_name)s_key",
}

service = MetaData(schema=SERVICE, naming_convention=_names)
"""Tables of the sales service; on a shared database the toolkit only checks and uses them."""

toolkit = MetaData(schema=AUDIT, naming_convention=_names)
"""Tables of the toolkit."""

moment = TIMESTAMP(timezone=True)
"""The type of a time with its zone."""


def table(name: str, *parts: SchemaItem, **options: Any) -> Table:
    """Return a table of the toolkit."""
    return Table(name, toolkit, *parts, **options)


def numbered() -> Column[int]:
    """Return a primary key that PostgreSQL counts up."""
    return Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True)


def columns(*parts: str | type[TypeEngine[Any]] | TypeEngine[Any]) -> Iterator[Column[Any]]:
    """Yield columns: a type, their names, the next type, and so on; a name ends with ? where a row may lack it."""
    kind: Any = None
    for part in parts:
        if isinstance(part, str):
            yield Column(part.removesuffix("?"), kind, nullable=part.endswith("?"))
        else:
            kind = part


def life(table: str, key: str) -> tuple[Column[Any] | Index, ...]:
    """Return the columns of observations, one open row for each ``key``, with indexes by beginning and end."""
    return (
        *columns(moment, "seen_at", "gone_at?"),
        Index(None, "seen_at"),
        Index(None, "gone_at", postgresql_where=text("gone_at IS NOT NULL")),
        Index(f"{table}_current_idx", key, unique=True, postgresql_where=text("gone_at IS NULL")),
    )
