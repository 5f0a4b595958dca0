"""The health of the database and the bucket: address, answer, and fitness. Starts nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from toolkit import embedded
from toolkit.bucket.client import Bucket
from toolkit.database import schema
from toolkit.database.belonging import check_bucket, check_service, pending_restore
from toolkit.database.connection import Database
from toolkit.database.service import load_service
from toolkit.embedded import ServiceStatus
from toolkit.errors import (
    BucketError,
    DatabaseError,
    NotInstalled,
    SchemaMismatch,
    SettingsError,
    WrongService,
)
from toolkit.log.sealing import newest_epoch
from toolkit.message import Message
from toolkit.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceHealth:
    """The health of one service. Fields of an embedded service are ``None`` for a shared one, and vice versa."""

    service: str
    """``database`` or ``bucket``."""
    embedded: bool
    name: str
    version: str | None = None
    """The version of the server, where it tells."""
    answers: bool
    """For an embedded one: whether it runs. It starts at its first use, so ``False`` is no problem."""
    address: str | None = None
    """Its address without user and password; ``None`` for an embedded one that does not run."""
    problem: str | None = None
    """The reason why the toolkit cannot work with it, and what to do."""
    pid: int | None = None
    data: Path | None = None
    log: Path | None = None
    schema: str | None = None
    """The version of the toolkit's schema in the database, where there is one."""
    newest_schema: str | None = None
    """The version that this toolkit needs; ``None`` for a bucket."""
    epoch: int | None = None
    """The epoch of the custody log in the database; above 1 it was restored in another cluster."""
    epoch_since: datetime | None = None
    replica: str | None = None
    """The replica of ``DATABASE_READ_URL``, and how far it is behind; ``None`` where there is none."""


def service_health(settings: Settings) -> Sequence[ServiceHealth]:
    """Return the database and the bucket that ``settings`` name, each asked once."""
    postgres, s3 = embedded.statuses(settings.home)
    return _database(settings, postgres), _bucket(settings, s3)


_FACTS: Final = ("name", "version", "address", "pid", "data", "log")
"""The facts that the status of an embedded service tells under the same names."""


def _embedded(service: str, status: ServiceStatus) -> ServiceHealth:
    facts = {name: getattr(status, name) for name in _FACTS}
    problem = None
    try:
        embedded.require_installed()
    except NotInstalled as error:
        problem = error.message
    return ServiceHealth(service=service, embedded=True, answers=status.running, problem=problem, **facts)


def _database(settings: Settings, status: ServiceStatus) -> ServiceHealth:
    shared = settings.database_url
    url = shared or status.url
    if shared is None:
        health = _embedded("database", status)
    else:
        health = ServiceHealth(service="database", embedded=False, name="PostgreSQL", answers=False)
    health = replace(health, newest_schema=schema.newest_revision())
    if url is None:
        return health
    try:
        service = load_service(settings.service_sql)
    except SettingsError as error:
        return replace(health, problem=error.message)
    health = _asked(health, Database(url, embedded=shared is None, service=service))
    if shared is None or settings.database_read_url is None or health.problem is not None:
        return health
    return _with_replica(health, Database(settings.database_read_url, variable="DATABASE_READ_URL"))


def _with_replica(health: ServiceHealth, replica: Database) -> ServiceHealth:
    """Return the health with the state of the replica that audits are made on."""
    try:
        with replica.transaction() as connection:
            behind = connection.scalar(sa.text(_BEHIND))
    except DatabaseError as error:
        return replace(health, problem=Message("The replica of DATABASE_READ_URL cannot be read: {}", error))
    finally:
        replica.dispose()
    if behind is None:
        return replace(health, problem=Message("{} is no replica; check DATABASE_READ_URL.", replica.address))
    return replace(health, replica=Message("{}, {:.1f} s behind", replica.address, behind))


_BEHIND: Final = """
    SELECT CASE
        WHEN NOT pg_is_in_recovery() THEN NULL
        WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0.0
        ELSE coalesce(CAST(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) AS float), 0.0)
    END
"""


def _asked(health: ServiceHealth, database: Database) -> ServiceHealth:
    """Return the health with what the database itself says."""
    found: str | None = None
    server: tuple[object, ...] = ()
    health = replace(health, address=health.address or database.address)
    try:
        with database.transaction() as connection:
            found = schema.revision(connection)
            server = connection.dialect.server_version_info or ()
        schema.check(database)
        with database.transaction() as connection:
            epoch = newest_epoch(connection)
            health = replace(health, epoch=epoch.number, epoch_since=epoch.opened_at)
            check_service(connection)
            health = replace(health, problem=pending_restore(connection))
    except (SchemaMismatch, WrongService) as error:
        health = replace(health, problem=error.message)
    except DatabaseError as error:
        return replace(health, answers=False, problem=error.message)
    finally:
        database.dispose()
    return replace(health, answers=True, version=".".join(map(str, server)), schema=found)


def _bucket(settings: Settings, status: ServiceStatus) -> ServiceHealth:
    if settings.evidence_bucket is None:
        return _embedded("bucket", status)
    address, answers, problem = settings.evidence_bucket, False, None
    try:
        bucket = Bucket.open(settings)
        address = f"{bucket.name} at {bucket.endpoint}"
        bucket.check()
        bucket.check_reading()
        answers = True
        _check_belonging(settings, bucket)
    except BucketError as error:
        problem = error.message
    return ServiceHealth(
        service="bucket",
        embedded=False,
        name="S3 server",
        answers=answers,
        address=address,
        problem=problem,
    )


def _check_belonging(settings: Settings, bucket: Bucket) -> None:
    """Make sure that a shared database does not belong to another bucket.

    Raises:
        WrongBucket: it does.
    """
    if settings.database_url is None:
        return
    database = Database(settings.database_url)
    try:
        with database.transaction() as connection:
            check_bucket(connection, bucket)
    except DatabaseError:  # which is told of the database
        return
    finally:
        database.dispose()
