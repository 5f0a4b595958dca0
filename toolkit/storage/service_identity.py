"""The identity of the service in a database: its cluster, its database, and the tables that sales are read from.

The number of a cluster is made with it and stays; a dump that is restored in another one, or under another name,
gives another identity. A mapping that only reads one table more, or one less, does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.storage.tables import OWN_TABLES, SERVICE

_RELATIONS: Final = ("sales", "evidences")
"""The facts by which a service is recognised."""


@dataclass(frozen=True, slots=True)
class ServiceIdentity:
    """``cluster`` and ``database`` are PostgreSQL's own numbers; ``cluster`` is ``None`` where it is kept secret.

    ``relations`` holds the names of the tables that the sales and the evidence records come from.
    """

    cluster: int | None
    database: int
    name: str
    relations: Mapping[str, Sequence[str]]

    def __str__(self) -> str:
        sources = sorted({source for each in self.relations.values() for source in each})
        cluster = "an unknown cluster" if self.cluster is None else f"cluster {self.cluster}"
        return f"{self.name} (number {self.database}) in {cluster}, tables {', '.join(sources)}"

    def is_same_database(self, other: ServiceIdentity) -> bool:
        """Tell whether both are the same database of the same cluster, or a replica of it."""
        if self.cluster is None or other.cluster is None:
            return (self.database, self.name) == (other.database, other.name)
        return (self.cluster, self.database) == (other.cluster, other.database)

    def is_same(self, other: ServiceIdentity) -> bool:
        """Tell whether both are the same service."""
        pairs = ((set(self.relations[name]), set(other.relations[name])) for name in _RELATIONS)
        return self.is_same_database(other) and all(one <= two or two <= one for one, two in pairs)


def service_identity(connection: Connection, *, mapped: bool) -> ServiceIdentity:
    """Return the identity of the service that this connection reads; ``mapped`` says through views."""
    cluster, database, name = connection.execute(sa.text(_DATABASE)).one()
    relations = {each: [f"{OWN_TABLES}.{each}"] for each in _RELATIONS}
    if mapped:
        views = {each: f"{SERVICE}.{each}" for each in _RELATIONS}
        relations = {
            each: list(connection.scalars(sa.text(_SOURCES), {"view": view})) for each, view in views.items()
        }
    return ServiceIdentity(cluster, database, name, relations)


_DATABASE: Final = """
    SELECT audit.cluster(), oid::bigint, datname FROM pg_database WHERE datname = current_database()
"""

_SOURCES: Final = """
    SELECT DISTINCT format('%I.%I', nspname, source.relname)
    FROM pg_rewrite AS rule
    JOIN pg_depend AS needed ON needed.classid = 'pg_rewrite'::regclass AND needed.objid = rule.oid
    JOIN pg_class AS source ON needed.refclassid = 'pg_class'::regclass AND source.oid = needed.refobjid
    JOIN pg_namespace AS place ON place.oid = source.relnamespace
    WHERE rule.ev_class = CAST(:view AS regclass) AND source.oid <> rule.ev_class
    ORDER BY 1
"""
