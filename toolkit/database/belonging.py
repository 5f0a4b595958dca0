"""The one bucket and the one service that a database belongs to.

Both are taken for granted the first time that they are read. Another one is refused before anything is written,
until somebody confirms it: what is not there would stand in the history as deleted, for ever.

A service is known by its cluster and its database, not by an address. The number of a cluster is made with it and
stays; a dump that is restored in another one, or under another name, gives another identity. Which tables are read
does not belong to it: a change of those is a note in the next audit (``toolkit.database.observations``).

A restore in place, from an older dump, leaves the identity as it is. A checkpoint of the custody log that was kept
outside tells of it, and of an older dump that was adopted: the log lacks it since. Until two people have confirmed
what happened, every audit says so.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.contract.events import CustodyEvent
from toolkit.contract.fields import stated
from toolkit.contract.service_rows import ServiceChange
from toolkit.database.connection import Database
from toolkit.database.observation_clock import stamp
from toolkit.database.tables import (
    adopted_buckets,
    adopted_services,
    audit_runs,
    custody_events,
    restore_confirmations,
    restores,
)
from toolkit.errors import InvalidInput, WrongBucket, WrongService
from toolkit.message import Message

if TYPE_CHECKING:
    from toolkit.bucket.client import Bucket

BUCKET_OF_DATABASE: Final = """
    coalesce((SELECT bucket FROM audit.adopted_buckets ORDER BY id DESC LIMIT 1),
             (SELECT bucket FROM audit.bucket_syncs ORDER BY id DESC LIMIT 1))
"""
"""The address of the bucket, null where the database has none yet."""


@dataclass(frozen=True, slots=True)
class ServiceIdentity:
    """The database by PostgreSQL's own numbers; that of the cluster is ``None`` where it is kept secret."""

    cluster: int | None
    database: int
    name: str

    def __str__(self) -> str:
        if self.cluster is None:
            return Message("{} (number {}) in an unknown cluster", self.name, self.database)
        return Message("{} (number {}) in cluster {}", self.name, self.database, self.cluster)

    def is_same(self, other: ServiceIdentity) -> bool:
        """Tell whether both are the same database of the same cluster, or a replica of it."""
        if self.cluster is None or other.cluster is None:
            return (self.database, self.name) == (other.database, other.name)
        return (self.cluster, self.database) == (other.cluster, other.database)


def check_bucket(connection: Connection, bucket: Bucket) -> None:
    """Make sure that the database belongs to this bucket, or to none yet.

    Raises:
        WrongBucket: it belongs to another one; nothing was written.
    """
    known = _bucket_of(connection)
    if known not in (None, bucket.address):
        raise WrongBucket(
            "This database belongs to the bucket {}, and this is {}. Nothing was read. Check EVIDENCE_BUCKET "
            "and the AWS_* variables; if the evidence has really moved, run: toolkit bucket adopt",
            known,
            bucket.address,
        )


def adopt_bucket(database: Database, bucket: Bucket) -> tuple[str | None, str]:
    """Let the database belong to this bucket from now on: the addresses of the former one and of this one."""
    bucket.check()
    with database.transaction() as connection:
        former = _bucket_of(connection)
        adopted_at = stamp(connection)
        connection.execute(sa.insert(adopted_buckets), {"bucket": bucket.address, "adopted_at": adopted_at})
    return former, bucket.address


def check_service(connection: Connection) -> bool:
    """Make sure that the database belongs to the service that is read; ``False`` where to none yet.

    Raises:
        WrongService: it belongs to another one; nothing was written.
    """
    this, *known = identities_of(connection)
    if known and not known[0].is_same(this):
        raise WrongService(
            "The toolkit's tables here were recorded for the service in {}, and this is {}. Nothing was written. "
            "Check DATABASE_URL; if the database was restored in another place, or has really moved, run: "
            "toolkit db adopt",
            known[0],
            this,
        )
    return bool(known)


def belong_to_service(connection: Connection, now: datetime) -> None:
    """Let the database belong to the service that is read, where it belongs to none yet.

    Raises:
        WrongService: it belongs to another one.
    """
    if not check_service(connection):
        _keep(connection, identity_of(connection), now)


def check_replica(database: Database, replica: Database) -> None:
    """Make sure that a replica is one of this database, or this database itself.

    Raises:
        WrongService: it is another database, or was promoted: it has a history of its own since.
    """
    with database.transaction() as here, replica.transaction() as there:
        this, other = (identity_of(each) for each in (here, there))
        started = {"at": here.scalar(sa.text("SELECT pg_postmaster_start_time()"))}
        follows = there.scalar(sa.text("SELECT pg_is_in_recovery() OR pg_postmaster_start_time() = :at"), started)
    if not (follows and other.is_same(this)):
        raise WrongService(
            "The database at {} is not a replica of the one at {}, or no more; check DATABASE_READ_URL.",
            replica.address,
            database.address,
        )


def adopt_service(database: Database) -> tuple[ServiceIdentity | None, ServiceIdentity]:
    """Let the database belong to the service that is read now: the former one and this one."""
    with database.transaction() as connection:
        this, *former = identities_of(connection)
        _keep(connection, this, stamp(connection))
    return former[0] if former else None, this


def _bucket_of(connection: Connection) -> str | None:
    found: str | None = connection.scalar(sa.text(f"SELECT {BUCKET_OF_DATABASE}"))  # a constant
    return found


def identities_of(connection: Connection) -> list[ServiceIdentity]:
    """Return the identity of the database, and those that it had before it was adopted, the newest first."""
    kept = adopted_services.c
    query = sa.select(kept.cluster, kept.database, kept.name).order_by(kept.id.desc())
    return [identity_of(connection), *(ServiceIdentity(*row) for row in connection.execute(query))]


def _keep(connection: Connection, service: ServiceIdentity, now: datetime) -> None:
    connection.execute(sa.insert(adopted_services), asdict(service) | {"adopted_at": now})


def identity_of(connection: Connection) -> ServiceIdentity:
    """Return the identity of the database that the connection leads to, whatever its address is."""
    return ServiceIdentity(*connection.execute(sa.text(_DATABASE)).one())


_DATABASE: Final = """
    SELECT audit.cluster(), oid::bigint, datname FROM pg_database WHERE datname = current_database()
"""


def notice_restore(connection: Connection, lost_seal: str) -> None:
    """Note that the custody log lacks a seal that was kept of it; once for each seal."""
    known = sa.select(sa.exists().where(restores.c.lost_seal == lost_seal))
    if not connection.scalar(known):
        connection.execute(sa.insert(restores), {"lost_seal": lost_seal, "noticed_at": stamp(connection)})


def pending_restore(connection: Connection, moment: datetime | None = None) -> str | None:
    """Return the sentence about a restore that nobody had confirmed by the moment, or by now.

    After the last audit in the dump it is the sentence about the later restore, which took back what was known.
    """
    query = sa.select(restores.c.noticed_at).order_by(restores.c.id.desc()).limit(1)
    confirmed = sa.select(sa.func.max(restore_confirmations.c.confirmed_at))
    if moment is not None:
        query = query.where(restores.c.noticed_at <= moment)
        confirmed = confirmed.where(restore_confirmations.c.confirmed_at <= moment)
        later = (
            sa.select(sa.func.min(restores.c.noticed_at)).where(restores.c.noticed_at > moment).scalar_subquery()
        )
        kept = sa.exists().where(audit_runs.c.as_of >= moment, audit_runs.c.as_of < later)
        if (taken_back := connection.scalar(sa.select(later).where(~kept))) is not None:
            return Message(ServiceChange.TAKEN_BACK.value, f"{taken_back:%Y-%m-%d %H:%M}")
    noticed, last = connection.scalar(query), connection.scalar(confirmed)
    if noticed is None or (last is not None and last >= noticed):
        return None
    return Message(ServiceChange.RESTORED.value, f"{noticed:%Y-%m-%d %H:%M}")


def confirm_restore(database: Database, *, confirmed_by: str, approved_by: str, reason: str) -> None:
    """Keep that two people know of the restore and of what it took back.

    Raises:
        InvalidInput: there is none to confirm, a text is missing, or both are the same person.
    """
    reason, confirmed_by, approved_by = stated(InvalidInput, reason, confirmed_by, approved_by)
    with database.transaction() as connection:
        if pending_restore(connection) is None:
            raise InvalidInput("There is no restore to confirm.")
        now = stamp(connection)
        row = {"confirmed_by": confirmed_by, "approved_by": approved_by, "reason": reason, "confirmed_at": now}
        connection.execute(sa.insert(restore_confirmations), row | {"account": database.account})
        texts = {"by": confirmed_by, "approvedBy": approved_by, "reason": reason, "account": database.account}
        detail = {name: sha256(text.encode()).hexdigest() for name, text in texts.items() if text}
        event = {"kind": CustodyEvent.RESTORE_CONFIRMED, "happened_at": now, "detail": detail}
        connection.execute(sa.insert(custody_events), event)
