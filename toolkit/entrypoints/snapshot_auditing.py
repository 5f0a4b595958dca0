"""Run an audit of a snapshot, on the chosen engine."""

from contextlib import AbstractContextManager
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from toolkit.entrypoints.application_context import ApplicationContext
from toolkit.errors import SettingsError
from toolkit.extras import require
from toolkit.operations.judge.audit import AuditResult
from toolkit.operations.judge.audit.engines import Engine, duckdb_engine, spark_engine
from toolkit.operations.judge.audit.from_snapshot import audit_snapshot
from toolkit.operations.private_folder import PrivateFolder
from toolkit.operations.snapshot import checked_file, open_snapshot
from toolkit.operations.snapshot.manifest import File
from toolkit.storage.file_store import FileStore


class EngineName(StrEnum):
    """The engines that judge."""

    POSTGRES = "postgres"
    DUCKDB = "duckdb"
    SPARK = "spark"


def engine_of(name: str | None, snapshot: str | None) -> EngineName | None:
    """Return the engine that judges ``snapshot``, ``None`` where the database is judged.

    Raises:
        SettingsError: there is no such engine, or it judges a snapshot and none is named.
    """
    try:
        engine = EngineName(name) if name else None
    except ValueError:
        raise SettingsError(f"An engine is one of {', '.join(EngineName)}, not {name!r}.") from None
    if snapshot:
        return engine or EngineName.DUCKDB
    if engine in {None, EngineName.POSTGRES}:
        return None
    raise SettingsError(
        f"The engine {engine} judges a snapshot, and none is named. To make one: toolkit snapshot export TARGET"
    )


def audit_of_snapshot(
    application: ApplicationContext, target: str, engine: EngineName, *, as_of: datetime | None = None
) -> AuditResult:
    """Judge all sales of the snapshot in ``target`` as of a moment, its own by default.

    Raises:
        SettingsError: the engine cannot read a snapshot, or ``TOOLKIT_SPARK_URL`` is not set.
    """
    if engine is EngineName.SPARK:
        require("spark", "Audits on Spark")
    store = application.file_store(target)
    snapshot = open_snapshot(store, as_of)
    cache = application.settings.home / "snapshots" / "cache"
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (
        PrivateFolder(cache.parent) as scratch,
        _opened(application, engine, scratch) as opened,
    ):
        return audit_snapshot(
            snapshot, lambda file: _path(store, file, cache, engine), opened, clock=application.clock, as_of=as_of
        )


def _opened(application: ApplicationContext, engine: EngineName, scratch: Path) -> AbstractContextManager[Engine]:
    settings = application.settings
    if engine is EngineName.POSTGRES:
        raise SettingsError("PostgreSQL judges its own tables; for a snapshot take --engine duckdb or spark.")
    if engine is EngineName.DUCKDB:
        return duckdb_engine(scratch, settings.engine_memory)
    if settings.spark_url is None:
        raise SettingsError(
            "TOOLKIT_SPARK_URL must name the server of Spark Connect, such as sc://localhost:15002"
        )
    return spark_engine(settings.spark_url)


def _path(store: FileStore, file: File, cache: Path, engine: EngineName) -> str:
    """Return the place where the engine reads the file: this machine's copy, or, for Spark, the store itself.

    What is read here is compared with its SHA-256; what a cluster reads by itself is not.
    """
    if engine is EngineName.SPARK and "://" in store.address:
        return f"{store.address.rstrip('/')}/{file.name}"
    return str(checked_file(store, file, cache))
