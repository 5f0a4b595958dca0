"""The one bucket and the one service that a database belongs to.

Both are taken for granted the first time that they are read. Another one is refused before anything is written,
until somebody confirms it: what is not there would stand in the history as deleted, for ever.

A service is known by its cluster, its database, and the tables that sales are read from. The number of a cluster
is made with it and stays; a dump that is restored in another one, or under another name, gives another identity. A
mapping that only reads one table more, or one less, does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.errors import WrongBucket, WrongService
from toolkit.operations import Clock
from toolkit.storage.database import Database
from toolkit.storage.observation_clock import stamp
from toolkit.storage.tables import OWN_TABLES, SERVICE, adopted_buckets, adopted_services

if TYPE_CHECKING:
    from toolkit.storage.bucket import Bucket

BUCKET_OF_DATABASE: Final = """
    coalesce((SELECT bucket FROM audit.adopted_buckets ORDER BY id DESC LIMIT 1),
             (SELECT bucket FROM audit.bucket_syncs ORDER BY id DESC LIMIT 1))
"""
"""The address of the bucket, null where the database has none yet."""


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


def check_bucket(connection: Connection, bucket: Bucket) -> None:
    """Make sure that the database belongs to this bucket, or to none yet.

    Raises:
        WrongBucket: it belongs to another one; nothing was written.
    """
    known = _bucket_of(connection)
    if known not in (None, bucket.address):
        raise WrongBucket(
            f"This database belongs to the bucket {known}, and this is {bucket.address}. Nothing was read. Check "
            "EVIDENCE_BUCKET and the AWS_* variables; if the evidence has really moved, run: toolkit bucket adopt"
        )


def adopt_bucket(database: Database, bucket: Bucket, clock: Clock) -> tuple[str | None, str]:
    """Let the database belong to this bucket from now on: the addresses of the former one and of this one."""
    bucket.check()
    with database.transaction() as connection:
        former = _bucket_of(connection)
        adopted_at = stamp(connection, clock)
        connection.execute(sa.insert(adopted_buckets), {"bucket": bucket.address, "adopted_at": adopted_at})
    return former, bucket.address


def check_service(connection: Connection, *, mapped: bool) -> bool:
    """Make sure that the database belongs to the service that is read; ``False`` where to none yet.

    Raises:
        WrongService: it belongs to another one; nothing was written.
    """
    known, this = _service_of(connection), _service_identity(connection, mapped=mapped)
    if known is not None and not known.is_same(this):
        raise WrongService(
            f"What the toolkit keeps here is about the service in {known}, and this is {this}. Nothing was "
            "written. Check DATABASE_URL and TOOLKIT_SERVICE_MAP; if the database was restored or its tables have "
            "really moved, run: toolkit db adopt"
        )
    return known is not None


def belong_to_service(connection: Connection, now: datetime, *, mapped: bool) -> None:
    """Let the database belong to the service that is read, where it belongs to none yet.

    Raises:
        WrongService: it belongs to another one.
    """
    if not check_service(connection, mapped=mapped):
        _keep(connection, _service_identity(connection, mapped=mapped), now)


def check_replica(database: Database, replica: Database) -> None:
    """Make sure that a replica is one of this database.

    Raises:
        WrongService: it is another database.
    """
    with database.transaction() as here, replica.transaction() as there:
        this, other = (_service_identity(each, mapped=database.mapped) for each in (here, there))
    if not other.is_same_database(this):
        raise WrongService(
            f"The database at {replica.address} is not a replica of the one at {database.address}; check "
            "DATABASE_READ_URL."
        )


def adopt_service(database: Database, clock: Clock) -> tuple[ServiceIdentity | None, ServiceIdentity]:
    """Let the database belong to the service that is read now: the former one and this one."""
    with database.transaction() as connection:
        former, this = _service_of(connection), _service_identity(connection, mapped=database.mapped)
        _keep(connection, this, stamp(connection, clock))
    return former, this


def _bucket_of(connection: Connection) -> str | None:
    found: str | None = connection.scalar(sa.text(f"SELECT {BUCKET_OF_DATABASE}"))  # a constant
    return found


def _service_of(connection: Connection) -> ServiceIdentity | None:
    kept = adopted_services.c
    query = sa.select(kept.cluster, kept.database, kept.name, kept.relations).order_by(kept.id.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    return None if row is None else ServiceIdentity(*row)


def _keep(connection: Connection, service: ServiceIdentity, now: datetime) -> None:
    connection.execute(sa.insert(adopted_services), asdict(service) | {"adopted_at": now})


def _service_identity(connection: Connection, *, mapped: bool) -> ServiceIdentity:
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
