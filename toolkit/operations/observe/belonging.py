"""The one bucket and the one service that a database belongs to.

Both are taken for granted the first time that they are read. Another one is refused before anything is written,
until somebody confirms it: what is not there would stand in the history as deleted, for ever.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.errors import WrongBucket, WrongService
from toolkit.operations import Clock
from toolkit.storage.database import Database
from toolkit.storage.observation_clock import stamp
from toolkit.storage.service_identity import ServiceIdentity, service_identity
from toolkit.storage.tables import adopted_buckets, adopted_services

if TYPE_CHECKING:
    from toolkit.storage.bucket import Bucket

BUCKET_OF_DATABASE: Final = """
    coalesce((SELECT bucket FROM audit.adopted_buckets ORDER BY id DESC LIMIT 1),
             (SELECT bucket FROM audit.bucket_syncs ORDER BY id DESC LIMIT 1))
"""
"""The address of the bucket, null where the database has none yet."""


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
    known, this = _service_of(connection), service_identity(connection, mapped=mapped)
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
        _keep(connection, service_identity(connection, mapped=mapped), now)


def check_replica(database: Database, replica: Database) -> None:
    """Make sure that a replica is one of this database.

    Raises:
        WrongService: it is another database.
    """
    with database.transaction() as here, replica.transaction() as there:
        this, other = (service_identity(each, mapped=database.mapped) for each in (here, there))
    if not other.is_same_database(this):
        raise WrongService(
            f"The database at {replica.address} is not a replica of the one at {database.address}; check "
            "DATABASE_READ_URL."
        )


def adopt_service(database: Database, clock: Clock) -> tuple[ServiceIdentity | None, ServiceIdentity]:
    """Let the database belong to the service that is read now: the former one and this one."""
    with database.transaction() as connection:
        former, this = _service_of(connection), service_identity(connection, mapped=database.mapped)
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
    row = {
        "cluster": service.cluster,
        "database": service.database,
        "name": service.name,
        "relations": dict(service.relations),
        "adopted_at": now,
    }
    connection.execute(sa.insert(adopted_services), row)
