"""The health of the database and the bucket: address, answer, and fitness. Starts nothing."""

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from toolkit import embedded
from toolkit.bucket.client import Bucket
from toolkit.database import schema
from toolkit.database.belonging import check_bucket, check_replica, check_service, pending_restore
from toolkit.database.connection import Database
from toolkit.database.service import load_service
from toolkit.embedded.servers import EmbeddedServer, Running, server_account
from toolkit.errors import (
    BucketError,
    BucketUnavailable,
    DatabaseError,
    DatabaseUnavailable,
    EmbeddedServiceError,
    NotInstalled,
    SettingsError,
    WrongService,
)
from toolkit.kit.shown import Shown, say
from toolkit.kit.spoken import _
from toolkit.message import Message
from toolkit.settings import Settings

Facts = dict[str, Any]
"""The facts of one service under the names of ``status --json``; what is not known of it is ``None``."""

_NAMES: Final = (
    *("embedded", "name", "version", "answers", "address", "problem", "pid", "data", "log"),
    *("schema", "newestSchema", "replica"),
)


def service_health(settings: Settings) -> Shown[dict[str, Facts]]:
    """Ask the database and the bucket that ``settings`` name, each once; an embedded one is not started.

    ``answers`` tells of an embedded one whether it runs. ``problem`` says why the toolkit cannot work with it, and
    what to do.
    """
    postgres, s3 = embedded.running(settings.home)
    found = {"database": _database(settings, postgres), "bucket": _bucket(settings, s3)}
    parts = [say(f"{_('home'):<9} {settings.home}")]
    for service, facts in found.items():
        parts.append(say("{:<9} {}", _(service), _summary(facts)))
        parts += [say("{:<9} {:<7} {}", "", _(label), value) for label, value in _details(facts)]
    attention = any(facts["problem"] for facts in found.values())
    return Shown(found, parts, {"home": settings.home, **found}, attention)


def _summary(facts: Facts) -> Message:
    product = f"{facts['name']} {facts['version']}" if facts["version"] else facts["name"]
    answer = Message("answers" if facts["answers"] else "does not answer")
    if not facts["embedded"]:
        return Message("shared {}, {}", product, answer)
    if facts["pid"] is not None:
        return Message("embedded {}, process {}, {}", product, facts["pid"], answer)
    if facts["problem"] is None:
        return Message("embedded {}, does not run; it starts at its first use", product)
    return Message("embedded {}, does not answer", product)


def _details(facts: Facts) -> Iterator[tuple[str, object]]:
    known, newest = facts["schema"], facts["newestSchema"]
    schema = Message("{} (the newest)" if known == newest else "{} (needed: {})", known, newest)
    there = {name: facts[name] for name in ("data", "log") if facts[name] and os.access(facts[name], os.F_OK)}
    shown = {"at": facts["address"], **there, "schema": known and schema, "replica": facts["replica"]}
    yield from ((name, value) for name, value in (shown | {"problem": facts["problem"]}).items() if value)


def _embedded(settings: Settings, service: EmbeddedServer, running: Running | None) -> Facts:
    folder = settings.home.resolve() / service.folder
    facts = dict.fromkeys(_NAMES) | {"embedded": True, "name": service.name, "version": service.version}
    facts |= {"answers": running is not None, "data": folder / "data", "log": folder / "log"}
    if running is not None:
        facts["address"], facts["pid"] = running.address, running.process.pid
    try:
        embedded.require_installed()
        if folder.exists() and not os.access(folder, os.R_OK):
            server_account(folder)
    except (EmbeddedServiceError, NotInstalled) as error:
        facts["problem"] = error.message
    return facts


def _shared(name: str, address: str | None = None) -> Facts:
    return dict.fromkeys(_NAMES) | {"embedded": False, "name": name, "answers": False, "address": address}


def _database(settings: Settings, running: Running | None) -> Facts:
    shared = settings.database_url
    facts = _embedded(settings, embedded.SERVICES[0], running) if shared is None else _shared("PostgreSQL")
    facts["newestSchema"] = schema.newest_revision()
    url = shared or (running.url if running else None)
    if url is None:
        return facts
    try:
        with Database(url, embedded=shared is None, service=load_service(settings.service_sql)) as database:
            facts["address"] = facts["address"] or database.address
            with database.transaction() as connection:
                facts["schema"] = schema.revision(connection)
                facts["version"] = ".".join(map(str, connection.dialect.server_version_info or ()))
            facts["answers"] = True
            schema.check(database)
            database.run(check_service)
            facts["problem"] = database.run(pending_restore)
            if shared is not None and settings.database_read_url is not None and facts["problem"] is None:
                _ask_replica(facts, database, settings.database_read_url)
    except (SettingsError, DatabaseError) as error:
        facts["problem"] = error.message
        facts["answers"] &= not isinstance(error, DatabaseUnavailable)
    return facts


def _ask_replica(facts: Facts, database: Database, url: str) -> None:
    """Add the replica that audits are made on."""
    try:
        with Database(url, variable="DATABASE_READ_URL") as replica:
            check_replica(database, replica)
            facts["replica"] = replica.address
    except WrongService as error:
        facts["problem"] = error.message
    except DatabaseError as error:
        facts["problem"] = Message("The replica of DATABASE_READ_URL cannot be read: {}", error)


def _bucket(settings: Settings, running: Running | None) -> Facts:
    shared = settings.evidence_bucket
    facts = _shared("S3 server", shared) if shared else _embedded(settings, embedded.SERVICES[1], running)
    if shared is None and running is None:
        return facts
    try:
        bucket = Bucket.open(settings)
        if shared:
            facts["address"] = f"{bucket.name} at {bucket.endpoint}"
        bucket.check()
        facts["answers"] = True
        bucket.check_reading()
        if settings.database_url is not None:
            # A fault of the database itself is reported with the database.
            with suppress(DatabaseError), Database(settings.database_url) as database:
                database.run(check_bucket, bucket)
    except BucketError as error:
        facts["problem"] = error.message
        facts["answers"] &= not isinstance(error, BucketUnavailable)
    return facts
