"""Evidence records with their files, withdrawals and events: read them, open a file, withdraw a record."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql import distinct_on

from toolkit.bucket.client import Bucket, ObjectSeen
from toolkit.contract.codes import WRONG_KIND
from toolkit.contract.contents import Coverage
from toolkit.contract.events import Event
from toolkit.contract.evidence import KIND_OF, Withdrawal
from toolkit.contract.fields import stated
from toolkit.contract.findings import Reason
from toolkit.contract.rules import EvidenceState, evidence_state, ran_out
from toolkit.database.belonging import check_bucket
from toolkit.database.connection import Database, Lock, take
from toolkit.database.observation_clock import stamp
from toolkit.database.observations import first_fault, latest_look, observe, valid_at, withdrawal_of
from toolkit.database.service import evidences, same
from toolkit.database.tables import (
    evidence_observations,
    evidence_openings,
    evidence_requests,
    new_id,
    object_observations,
    sale_observations,
    verification_failures,
    withdrawals,
)
from toolkit.errors import DatabaseError, EvidenceNotFound, InvalidInput, WithdrawalRefused
from toolkit.evidence.access import one_sale, own_sales
from toolkit.evidence.kinds import Inspected


@dataclass(frozen=True, slots=True)
class StoredFile:
    """The object under the key of a record, by what was last seen of the bucket."""

    observation: int
    size: int
    etag: str
    seen_at: datetime
    coverage: Coverage
    media_type: str | None
    sha256: str | None
    seconds: float | None
    pages: int | None
    fault: str | None  # a fault of ``toolkit.contract.codes``, ``None`` where none was found
    depth: str | None = None  # the ``Depth`` to which its contents were looked at
    readers: Sequence[str] = ()  # the packages that read it, with their versions


@dataclass(frozen=True, slots=True)
class EvidenceRecord:
    """One record: the file that was last seen under its key, and its withdrawal, if it was withdrawn."""

    id: UUID
    sale_id: str
    evidence_type: str
    requested_by: str | None  # ``None`` where the service does not say
    account: str | None  # the signed-in identity behind ``requested_by``; ``None`` where it was not noted
    partner: str | None  # that it was requested for; ``None`` for an operator, and where it was not noted
    requested_at: datetime
    expires_at: datetime | None
    object_key: str
    expired: bool | None  # whether its credentials had run out when it was read
    seen_before: bool  # whether a file was ever seen under its key
    file: StoredFile | None
    withdrawal: Withdrawal | None

    def known_of(self, seen: ObjectSeen | StoredFile | None) -> StoredFile | None:
        """Return the file seen last where this object is it, so that what was found about it still holds."""
        known = self.file
        is_it = known is not None and seen is not None and (known.etag, known.size) == (seen.etag, seen.size)
        return known if is_it else None

    def state_by(self, seen: ObjectSeen | StoredFile | None, found: Inspected | None = None) -> EvidenceState:
        """Return its state by the object that lies there now, and by what was found in it, now or before."""
        known = self.known_of(seen)
        return evidence_state(
            self.evidence_type,
            size=None if seen is None else seen.size,
            kind=None if found is None else found.kind,
            damaged=bool((known and known.fault) or (found and found.problem)),
            expired=self.expired,
            vanished=self.seen_before,
            withdrawn=self.withdrawal is not None,
        )

    @property
    def state(self) -> EvidenceState:
        """The state by what was last seen of the bucket."""
        return self.state_by(self.file)

    @property
    def shown_state(self) -> str:
        """The state in words: a withdrawn record is withdrawn, whatever its file is."""
        known = self.withdrawal is not None or self.evidence_type in KIND_OF
        return str(self.state if known else Reason.TYPE_UNKNOWN)


def records_seen(connection: Connection, sale_id: str, now: datetime) -> list[EvidenceRecord]:
    """Return the records of a sale as the service has them, oldest first, without the names of their files.

    Raises:
        DatabaseError: one of them is set aside, so that the audit does not judge by it either.
    """
    by_indexes(connection)
    found = records_where(connection, same(connection, evidences, "sale_id", sale_id), now)
    of_them = (same(connection, evidences, "id", each.id) for each in found)
    repeated = sa.select(evidences.c.id).where(sa.or_(sa.false(), *of_them)).group_by(evidences.c.id)
    if any(each.id is None or each.requested_at is None for each in found) or connection.scalar(
        repeated.having(sa.func.count() > 1)
    ):
        raise _set_aside()
    return found


def _set_aside() -> DatabaseError:
    return DatabaseError(
        "A record of the sale is set aside: others have its id, or it has no id or no requested_at. "
        "See: toolkit db check"
    )


def _sale_and_key(connection: Connection, evidence_id: UUID, *, deleted: bool = False) -> sa.Row[Any, Any]:
    """Return the ``sale_id`` and the ``object_key`` of one record, of one that was ``deleted`` as seen last.

    Raises:
        EvidenceNotFound: no evidence record has this id.
        DatabaseError: several have it.
    """
    query = sa.select(evidences.c.sale_id, evidences.c.object_key)
    found = connection.execute(query.where(same(connection, evidences, "id", evidence_id))).fetchmany(2)
    if not found and deleted:
        seen = evidence_observations.c
        last = sa.select(seen.sale_id, seen.object_key).where(seen.evidence_id == evidence_id)
        found = connection.execute(last.order_by(seen.id.desc())).fetchmany(1)
    if not found:
        raise EvidenceNotFound("There is no evidence record with the id {}.", evidence_id)
    if len(found) > 1:
        raise _set_aside()
    return found[0]


def records_where(
    connection: Connection, chosen: sa.ColumnElement[bool] | sa.TextClause, now: datetime
) -> list[EvidenceRecord]:
    """Return the records of a condition on ``evidences``, as ``records_seen`` does."""
    records = (
        sa.select(
            *evidences.c["id", "sale_id", "evidence_type", "requested_by", "requested_at", "expires_at"],
            *(evidences.c.object_key, *evidence_requests.c["account", "partner"]),
        )
        .outerjoin(evidence_requests, evidence_requests.c.evidence_id == evidences.c.id)
        .where(chosen)
    )
    record, seen, failed = records.subquery("record"), object_observations, verification_failures
    earlier = object_observations.alias("earlier")
    latest = latest_look(seen)
    first = first_fault(latest).lateral()
    of_record = sa.select(withdrawals).where(withdrawal_of(*record.c["id", "sale_id", "object_key"]))
    taken = of_record.order_by(withdrawals.c.withdrawn_at).limit(1).lateral("taken")
    query = (
        sa.select(
            record,
            *taken.c["reason", "withdrawn_by", "approved_by", "withdrawn_at"],
            *(seen.c.id.label("observation"), *seen.c["size", "etag", "seen_at"]),
            *latest.c["kind", "media_type", "sha256", "seconds", "pages", "depth", "readers"],
            first.c.fault,
            failed.c.failed_at,
            sa.exists().where(sa.collate(earlier.c.key, "C") == record.c.object_key).label("seen_before"),
        )
        .select_from(record)
        .outerjoin(taken, sa.true())
        .outerjoin(seen, sa.and_(sa.collate(seen.c.key, "C") == record.c.object_key, seen.c.gone_at.is_(None)))
        .outerjoin(latest, sa.true())
        .outerjoin(first, sa.true())
        .outerjoin(failed, failed.c.observation_id == seen.c.id)
        .order_by(record.c.requested_at, record.c.id)
    )
    return [_record(row, now) for row in connection.execute(query)]


def by_indexes(connection: Connection) -> None:
    """Have this transaction read by indexes: PostgreSQL expects more rows of a sale, and would read them all."""
    names = ("enable_seqscan", "enable_hashjoin", "enable_mergejoin", "jit")
    connection.execute(sa.select(*(sa.func.set_config(name, "off", True) for name in names)))


def _record(row: Any, now: datetime) -> EvidenceRecord:
    taken = Withdrawal(row.id, row.sale_id, row.reason, row.withdrawn_by, row.approved_by, row.withdrawn_at)
    return EvidenceRecord(
        *(row.id, row.sale_id, row.evidence_type, row.requested_by, row.account, row.partner),
        *(row.requested_at, row.expires_at, row.object_key, ran_out(row.expires_at, now), row.seen_before),
        file=None if row.observation is None else _file(row),
        withdrawal=None if row.withdrawn_at is None else taken,
    )


def _file(row: Any) -> StoredFile:
    fault, coverage = row.fault, Coverage.FIRST_BYTES if row.kind else Coverage.NEVER
    if fault is None and row.kind is not None and KIND_OF.get(row.evidence_type) not in (None, row.kind):
        fault = WRONG_KIND
    if row.sha256 is not None:
        coverage = Coverage.VERIFIED
    elif row.failed_at is not None:
        coverage = Coverage.UNREADABLE
    seen = (row.observation, row.size, row.etag, row.seen_at)
    looked = (coverage, row.media_type, row.sha256, row.seconds, row.pages)
    return StoredFile(*seen, *looked, fault, row.depth, row.readers or ())


TimeLine = tuple[tuple[Event, UUID], ...]
"""Events of the custody log, oldest first, each with the id of its evidence record."""


def time_line(connection: Connection, sale_id: str, keys: Mapping[UUID, str | None]) -> TimeLine:
    """Return the events of the records of a sale until now.

    Each record is given with the key of its object. A completion is told of each record whose file allowed it.
    """
    given = {"sale": sale_id, "ids": list(keys), "keys": list(keys.values())}
    return tuple(
        (Event(row.id, row.kind, row.happened_at, row.detail, row.salt), row.evidence)
        for row in connection.execute(sa.text(_TIME_LINE), given)
    )


def withdrawals_at(connection: Connection, moment: datetime) -> Sequence[sa.Row[Any]]:
    """Return the records that had been withdrawn by then, the latest first, with the reason and both people.

    Each is as it was seen last with the file, or of the sale, that it was withdrawn from; it stands there once.
    """
    seen, sale = evidence_observations, sale_observations
    of_record = withdrawal_of(*seen.c["evidence_id", "sale_id", "object_key"], moment=moment)
    record = (
        sa.select(*seen.c["id", "evidence_id", "sale_id", "evidence_type"])
        .where(of_record, seen.c.seen_at <= moment)
        .order_by(seen.c.seen_at.desc(), seen.c.id.desc())
        .limit(1)
        .lateral("record")
    )
    query = (
        sa.select(record.c.sale_id, sale.c.partner, record.c.evidence_id, record.c.evidence_type)
        .add_columns(*withdrawals.c["reason", "withdrawn_by", "approved_by", "withdrawn_at"])
        .select_from(withdrawals)
        .join(record, sa.true())
        .outerjoin(sale, sa.and_(sale.c.sale_id == record.c.sale_id, valid_at(sale, moment)))
        .where(withdrawals.c.withdrawn_at <= moment)
        .ext(distinct_on(record.c.id))
        .order_by(record.c.id, withdrawals.c.withdrawn_at)
    )
    return sorted(connection.execute(query), key=lambda each: each.withdrawn_at, reverse=True)


_EVENTS: Final = """
    event AS (
        SELECT custody.*, record.id AS evidence, record.sale_id
        FROM record JOIN audit.custody_events AS custody ON (detail ->> 'evidence')::uuid = record.id
        UNION ALL
        SELECT custody.*, record.id, record.sale_id
        FROM record JOIN audit.object_observations AS seen ON seen.key COLLATE "C" = record.key
        JOIN audit.custody_events AS custody ON (detail ->> 'observation')::bigint = seen.id
        WHERE kind IN ('UPLOADED', 'RESTORED', 'GONE', 'VERIFIED')
        UNION ALL
        SELECT custody.*, record.id, record.sale_id
        FROM record JOIN audit.custody_events AS custody
            ON kind = 'COMPLETED' AND detail ->> 'sale' = encode(sha256(convert_to(record.sale_id, 'UTF8')), 'hex')
            AND detail -> 'files' @> jsonb_build_array(jsonb_build_object('evidence', record.id))
    )
"""
"""The observations of records and sales are counted from 1, too."""

_TIME_LINE: Final = f"""
    WITH record AS (
        SELECT *, CAST(:sale AS text) AS sale_id
        FROM unnest(CAST(:ids AS uuid[]), CAST(:keys AS text[])) AS record (id, key)
    ),
    {_EVENTS}
    SELECT id, kind, happened_at, detail, uuid_send(salt) AS salt, evidence FROM event
    ORDER BY happened_at, id, evidence
"""

TIME_LINES: Final = f"""
    WITH record AS (
        SELECT evidence_id AS id, object_key AS key, sale_id FROM audit.evidence_observations
        WHERE sale_id = ANY (%(sales)s) AND seen_at <= %(moment)s AND (gone_at IS NULL OR gone_at > %(moment)s)
    ),
    {_EVENTS}
    SELECT sale_id, CAST(evidence AS text) AS evidence_id, happened_at, kind FROM event
    WHERE happened_at <= %(moment)s
    ORDER BY sale_id COLLATE "C", happened_at, id, evidence
"""


def records_of(database: Database, sale_id: str) -> list[EvidenceRecord]:
    """Return all records of the sale as ``records_seen`` does; the bucket itself is not asked.

    Raises:
        SaleNotFound: no sale has this id.
    """
    now = database.clock()
    with database.transaction() as connection:
        return records_seen(connection, one_sale(connection, None, sale_id).id, now)


LONGEST_SECONDS: Final = 900  # the longest life of a link


@dataclass(frozen=True, slots=True)
class Link:
    """An address under which whoever has it reads the file until ``expires_at``."""

    evidence_id: UUID
    sale_id: str
    url: str
    expires_at: datetime


def open_evidence(
    database: Database, bucket: Bucket, evidence_id: UUID, *, reason: str, opened_by: str | None, seconds: int
) -> Link:
    """Make a link to the file of one record; the custody log is told before the link is handed out.

    Who is signed in opens it, unless somebody else is named.

    Raises:
        InvalidInput: the reason or the name is missing, or the life is too long.
        EvidenceNotFound: no evidence record has this id, or no file lies under its key.
        WrongBucket: the database belongs to another bucket.
        BucketError: the bucket could not be asked.
    """
    reason, opened_by = stated(InvalidInput, reason, opened_by or database.account or "")
    if seconds not in range(1, LONGEST_SECONDS + 1):
        raise InvalidInput("A link lives for 1 to {} seconds.", LONGEST_SECONDS)
    with database.transaction() as connection:
        check_bucket(connection, bucket)
        record = _sale_and_key(connection, evidence_id, deleted=True)
    if bucket.head(record.object_key) is None:
        raise EvidenceNotFound("There is no file in the bucket for the record {}.", evidence_id)
    opening = {"id": new_id(), "evidence_id": evidence_id, "reason": reason, "opened_by": opened_by}
    with database.transaction() as connection:
        opened_at = stamp(connection)
        expires_at = opened_at + timedelta(seconds=seconds)
        times = {"opened_at": opened_at, "expires_at": expires_at}
        connection.execute(sa.insert(evidence_openings), opening | times | {"account": database.account})
    return Link(evidence_id, record.sale_id, bucket.presign_get(record.object_key, seconds), expires_at)


def withdraw(
    database: Database, evidence_id: UUID, *, reason: str, withdrawn_by: str, approved_by: str
) -> Withdrawal:
    """Withdraw one evidence record, once and for all.

    The sale is locked meanwhile, so that its completion comes wholly before or wholly after.

    Raises:
        EvidenceNotFound: no evidence record has this id.
        WithdrawalRefused: a text is missing, the approver is the same person, or it was withdrawn before.
    """
    reason, withdrawn_by, approved_by = stated(WithdrawalRefused, reason, withdrawn_by, approved_by)
    with database.transaction() as connection:
        found = _sale_and_key(connection, evidence_id)
        if not own_sales(connection, None, found.sale_id):
            raise EvidenceNotFound("There is no evidence record with the id {}.", evidence_id)
        take(connection, Lock.SALE, found.sale_id)
        earlier = sa.select(withdrawals.c.withdrawn_at).where(withdrawal_of(evidence_id, *found))
        before: datetime | None = connection.scalar(earlier)  # two where it was of two sales
        if before is not None:
            raise WithdrawalRefused(
                "The record was withdrawn before, at {}.", before.isoformat(timespec="seconds")
            )
        observe(connection, "records", evidence_id)  # the withdrawal stays with its file in another sale, too
        at = stamp(connection)
        taken = Withdrawal(evidence_id, found.sale_id, reason, withdrawn_by, approved_by, at)
        connection.execute(sa.insert(withdrawals), asdict(taken) | {"account": database.account})
    return taken
