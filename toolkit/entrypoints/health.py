"""The health of the database and the bucket: address, answer, and fitness. Starts nothing."""

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from toolkit.errors import (
    BucketError,
    DatabaseError,
    EmbeddedServiceError,
    NotInstalled,
    SchemaMismatch,
    SettingsError,
    WrongService,
)
from toolkit.operations.observe.belonging import check_service
from toolkit.operations.prove.custody_log.sealing import newest_epoch
from toolkit.settings import Settings
from toolkit.storage import embedded, schema
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database
from toolkit.storage.embedded import ServiceStatus
from toolkit.storage.embedded.home import explained
from toolkit.storage.partitions import months_left
from toolkit.storage.service_map import load_map


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
    data_bytes: int | None = None
    log: Path | None = None
    schema: str | None = None
    """The version of the toolkit's schema in the database, where there is one."""
    newest_schema: str | None = None
    """The version that this toolkit needs; ``None`` for a bucket."""
    epoch: int | None = None
    """The epoch of the custody log in the database; above 1 it was restored in another cluster."""
    epoch_since: datetime | None = None
    months_left: int | None = None
    """The months to come that have a partition; ``None`` where observations are not partitioned."""


def service_health(settings: Settings) -> Sequence[ServiceHealth]:
    """Return the database and the bucket that ``settings`` name, each asked once."""
    postgres, s3 = embedded.statuses(settings.home)
    return _database(settings, postgres), _bucket(settings, s3)


_FACTS: Final = ("name", "version", "address", "pid", "data", "data_bytes", "log")
"""The facts that the status of an embedded service tells under the same names."""


def _embedded(service: str, status: ServiceStatus, home: Path) -> ServiceHealth:
    facts = {name: getattr(status, name) for name in _FACTS}
    problem = None if status.running else _unusable(home)
    return ServiceHealth(service=service, embedded=True, answers=status.running, problem=problem, **facts)


def _unusable(home: Path) -> str | None:
    """Return the reason why no service could start in ``home``, which may not exist yet."""
    try:
        embedded.require_installed()
    except NotInstalled as error:
        return str(error)
    nearest = next(folder for folder in (home, *home.parents) if os.path.lexists(folder))
    try:
        with explained(home):
            if not nearest.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, "", str(nearest))
            if not os.access(nearest, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, "", str(nearest))
    except EmbeddedServiceError as error:
        return str(error)
    return None


def _database(settings: Settings, status: ServiceStatus) -> ServiceHealth:
    shared, described = settings.database_url, settings.service_map is not None
    url = shared or status.url
    database = None if url is None else Database(url, embedded=shared is None, mapped=described)
    if shared is None:
        health = _embedded("database", status, settings.home)
    else:
        health = ServiceHealth(service="database", embedded=False, name="PostgreSQL", answers=False)
    health = replace(health, newest_schema=schema.newest_revision())
    return health if database is None else _asked(health, database, settings)


def _asked(health: ServiceHealth, database: Database, settings: Settings) -> ServiceHealth:
    """Return the health with what the database itself says."""
    found: str | None = None
    health = replace(health, address=health.address or database.address)
    try:
        with database.transaction() as connection:
            found = schema.revision(connection)
            server = connection.dialect.server_version_info or ()
        schema.check(database, None if settings.service_map is None else load_map(settings.service_map))
        with database.transaction() as connection:
            epoch = newest_epoch(connection)
            left = months_left(connection)
            health = replace(health, epoch=epoch.number, epoch_since=epoch.opened_at, months_left=left)
            check_service(connection, mapped=database.mapped)
    except (SchemaMismatch, SettingsError, WrongService) as error:
        health = replace(health, problem=str(error))
    except DatabaseError as error:
        return replace(health, answers=False, problem=str(error))
    finally:
        database.dispose()
    return replace(health, answers=True, version=".".join(map(str, server)), schema=found)


def _bucket(settings: Settings, status: ServiceStatus) -> ServiceHealth:
    if settings.evidence_bucket is None:
        return _embedded("bucket", status, settings.home)
    address, problem = settings.evidence_bucket, None
    try:
        bucket = Bucket.open(settings)
        address = f"{bucket.name} at {bucket.endpoint}"
        bucket.check()
        bucket.check_reading()
    except BucketError as error:
        problem = str(error)
    return ServiceHealth(
        service="bucket",
        embedded=False,
        name="S3 server",
        answers=problem is None,
        address=address,
        problem=problem,
    )
