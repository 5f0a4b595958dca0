"""Run an audit of a snapshot, on the chosen engine."""

from contextlib import AbstractContextManager, suppress
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from toolkit.entrypoints.application_context import ApplicationContext
from toolkit.errors import BucketError, InvalidInput, SettingsError, ToolkitError, UnreadableFile
from toolkit.extras import require
from toolkit.operations.judge.audit import AuditResult
from toolkit.operations.judge.audit.engines import Engine, duckdb_engine, spark_engine
from toolkit.operations.judge.audit.from_snapshot import audit_snapshot
from toolkit.operations.judge.audit.snapshot_tables import SnapshotTables
from toolkit.operations.private_folder import PrivateFolder
from toolkit.operations.snapshot.export import is_of
from toolkit.operations.snapshot.manifest import Manifest, name_of
from toolkit.operations.snapshot.moved import snapshot_of
from toolkit.operations.snapshot.reading import checked_file, open_snapshot, prune_copies
from toolkit.operations.snapshot.secret import known_secret
from toolkit.storage.database import Database
from toolkit.storage.partitions import Moved, moved


class EngineName(StrEnum):
    """The engines that judge."""

    POSTGRES = "postgres"
    DUCKDB = "duckdb"
    SPARK = "spark"


def engine_of(name: str | None, snapshot: str | None) -> EngineName | None:
    """Return the engine that judges ``snapshot``, ``None`` where the database is judged.

    Raises:
        SettingsError: there is no such engine, it cannot read a snapshot, or it judges one and none is named.
    """
    try:
        engine = EngineName(name) if name else None
    except ValueError:
        raise SettingsError(f"An engine is one of {', '.join(EngineName)}, not {name!r}.") from None
    if snapshot and engine is EngineName.POSTGRES:
        raise SettingsError("PostgreSQL judges its own tables; for a snapshot take the engine duckdb or spark.")
    if snapshot:
        return engine or EngineName.DUCKDB
    if engine in {None, EngineName.POSTGRES}:
        return None
    raise SettingsError(
        f"The engine {engine} judges a snapshot, and none is named. To make one: toolkit snapshot export TARGET"
    )


def audit_of_snapshot(
    application: ApplicationContext,
    target: str,
    engine: EngineName,
    *,
    as_of: datetime | None = None,
    with_file_findings: bool = False,
) -> AuditResult:
    """Judge all sales of the snapshot in ``target`` as of a moment, its own by default.

    What a snapshot does not hold (CPFs, names, reasons) is asked of the database that it is of, where it can be.

    Raises:
        SettingsError: ``TOOLKIT_SPARK_URL`` is not set.
    """
    if engine is EngineName.SPARK:
        require("spark", "Audits on Spark")
    store = application.file_store(target)
    snapshot = open_snapshot(store, as_of)
    cache = application.settings.home / "snapshots" / "cache"
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    prune_copies(cache, 2 * sum(file.bytes for manifest in snapshot.manifests for file in manifest.files))
    checked = lru_cache(None)(lambda file: str(checked_file(store, file, cache)))
    remote = None
    if engine is EngineName.SPARK and "://" in store.address:
        remote = (
            f"s3a{store.address.removeprefix('s3').rstrip('/')}/"  # Spark knows no other name of S3, Sail does
        )
    people = _database_of(application, snapshot.manifests[-1])
    if people is not None and (last := _moved(people)) is not None and name_of(last.exported_at) in store.names():
        # Only later observations are left in the database to tell the keys of those that were moved.
        snapshot = open_snapshot(store, max(snapshot.moment, last.exported_at))
    tables = SnapshotTables(snapshot, checked, cache.parent, application.settings.engine_memory, people)
    with PrivateFolder(cache.parent) as scratch, _opened(application, engine, scratch) as opened:
        return audit_snapshot(
            tables,
            opened,
            clock=application.clock,
            path_of=checked if remote is None else lambda file: f"{remote}{file.name}",
            as_of=as_of,
            deadlines=application.deadlines,
            with_file_findings=with_file_findings,
        )


def audit_of_moved(
    application: ApplicationContext, as_of: datetime, *, with_file_findings: bool = False
) -> AuditResult:
    """Judge all sales as of a moment whose observations were moved to a snapshot: by that one, as it was then.

    Raises:
        UnreadableFile: it cannot be read, or is not the one that they were moved to.
    """
    last = _moved(application.database)
    assert last is not None
    try:
        snapshot_of(application.file_store(last.target), last)
        return audit_of_snapshot(
            application, last.target, EngineName.DUCKDB, as_of=as_of, with_file_findings=with_file_findings
        )
    except (InvalidInput, SettingsError, BucketError) as error:
        raise UnreadableFile(
            f"Observations that ended before {last.over_at:%Y-%m} are in the snapshot {last.target} alone, which "
            f"cannot be read: {error} What held at {as_of.isoformat(timespec='seconds')} is not told without it."
        ) from None


def _moved(database: Database) -> Moved | None:
    with database.transaction() as connection:
        return moved(connection)


def _database_of(application: ApplicationContext, exported: Manifest) -> Database | None:
    """Return the database that the export was made of, ``None`` where it cannot be asked."""
    if exported.embedded is not (application.settings.database_url is None):
        return None
    with suppress(ToolkitError), application.database.transaction() as connection:
        secret = known_secret(application.settings.home) or b""
        return application.database if is_of(connection, application.database, exported, secret) else None
    return None


def _opened(application: ApplicationContext, engine: EngineName, scratch: Path) -> AbstractContextManager[Engine]:
    settings = application.settings
    if engine is EngineName.DUCKDB:
        return duckdb_engine(scratch, settings.engine_memory)
    if settings.spark_url is None:
        raise SettingsError(
            "TOOLKIT_SPARK_URL must name the server of Spark Connect, such as sc://localhost:15002"
        )
    return spark_engine(settings.spark_url)
