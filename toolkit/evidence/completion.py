"""Complete a sale, only when its evidence in the bucket at that moment allows it (contract, "States")."""

from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.bucket.client import Bucket, ObjectSeen
from toolkit.contract.events import CustodyEvent
from toolkit.contract.findings import Status, Verdict
from toolkit.contract.rules import Evidence, EvidenceState, Sale, evaluate
from toolkit.database.belonging import check_bucket
from toolkit.database.connection import Database, Lock, take
from toolkit.database.observation_clock import stamp
from toolkit.database.observations import observe
from toolkit.database.service import one_row, sales
from toolkit.errors import BucketError, BucketUnavailable, WriteRefused
from toolkit.evidence.access import one_sale
from toolkit.evidence.contents import fetch_and_inspect
from toolkit.evidence.inspection import Inspector
from toolkit.evidence.kinds import Inspected
from toolkit.evidence.records import EvidenceRecord, records_seen
from toolkit.log.events import record_event

LOCK_SECONDS: Final = 5  # seconds to wait for the lock of the sale, and of its row
BUCKET_SECONDS: Final = 5  # seconds that the bucket may take to answer while the sale is locked
ATTEMPTS: Final = 5  # attempts to judge a sale that changes while its files are read


@dataclass(frozen=True, slots=True)
class Completion:
    """The outcome of an attempt to complete a sale.

    ``completed_at`` is ``None`` where the verdict did not allow it; ``already`` tells that it was completed
    before, and then its evidence was not looked at again.
    """

    sale_id: str
    completed_at: datetime | None
    already: bool
    verdict: Verdict | None


_File = tuple[EvidenceRecord, ObjectSeen | None, Inspected | None]
"""A record, the object under its key, if there is one, and what was found where it was read to its end."""


def complete_sale(
    database: Database, bucket: Bucket, sale_id: str, inspector: Inspector | None = None
) -> Completion:
    """Mark a sale as completed if its files, read to their end, satisfy the rules.

    Guaranteed is: every file that counts was read whole and found sound, and the very same versions lay in the
    bucket while the sale was locked, a moment after it was marked and before that was committed. Nothing is
    guaranteed about what is deleted or written after that; the next audit tells. The versions are kept in the
    custody log (``COMPLETED``).

    The files are read without any lock. Then the sale is locked, for which ``LOCK_SECONDS`` are waited, and
    marked. Neither it nor its records nor its files may have changed: otherwise that is taken back, and it is
    judged again. So of two callers at once one completes it and the other finds it completed, and a withdrawal
    comes wholly before or wholly after.

    Raises:
        SaleNotFound: no sale has this id.
        WrongBucket: the database belongs to another bucket.
        BucketError: the bucket could not be asked, or a file not be read; nothing was changed.
        DatabaseUnavailable: somebody else keeps the sale locked; nothing was changed.
        WriteRefused: the service has no statement for it, or one after which the sale is not completed.
    """
    complete = database.service.over("complete_sale", one_row("completed_sale"))
    if inspector is None:
        with Inspector() as one:
            return complete_sale(database, bucket, sale_id, one)
    for _ in range(ATTEMPTS):
        with database.transaction() as connection:
            check_bucket(connection, bucket)
            now = database.clock()
            before, sale, records = _read(connection, sale_id, now)
        if before is not None:
            return Completion(sale_id, before, True, None)
        files = [_read_whole(bucket, inspector, each) for each in records]
        judged = Sale(sale["utility_group"], sale["is_client_financial_responsible"])
        verdict = evaluate(
            judged, [Evidence(each.evidence_type, each.state_by(seen, found)) for each, seen, found in files]
        )
        if verdict.status is not Status.COMPLIANT:
            return Completion(sale_id, None, False, verdict)
        with database.transaction() as connection:
            connection.execute(sa.text(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'"))
            take(connection, Lock.SALE, sale_id)
            completed_at, attempt = database.clock(), connection.begin_nested()
            # From here on the service waits that would change the sale; what it changed before is seen below.
            changed = connection.execute(complete, {"id": sale_id, "completed_at": completed_at}).rowcount
            after, *others = _read(connection, sale_id, now)
            also = sa.exists().where(sales.c.completed_at == after, sales.c.id != sale_id)
            if after is None or (changed > 1 and connection.scalar(sa.select(also))):
                raise WriteRefused(
                    "complete_sale in {} left the sale {!r} without a completed_at, or completed others with it. "
                    "Nothing was changed.",
                    *(database.service.source or "service.sql", sale_id),
                )
            if changed and others == [sale, records] and _still_there(bucket, files):
                observe(connection, "sales", sale_id)
                detail = {"sale": sale_id, "files": _versions(files)}
                record_event(connection, CustodyEvent.COMPLETED, stamp(connection), detail)
                return Completion(sale_id, completed_at, False, verdict)
            attempt.rollback()
    raise BucketError(
        "The sale {!r} or its files changed {} times, or complete_sale changes them; try again.", sale_id, ATTEMPTS
    )


def _read(
    connection: Connection, sale_id: str, now: datetime
) -> tuple[datetime | None, dict[str, Any], list[EvidenceRecord]]:
    """Return when the sale was completed, its other values, and its records, as the database holds them."""
    sale = one_sale(connection, None, sale_id)._asdict()
    return sale.pop("completed_at"), sale, records_seen(connection, sale_id, now)


def _read_whole(bucket: Bucket, inspector: Inspector, record: EvidenceRecord) -> _File:
    seen = None if record.withdrawal else bucket.head(record.object_key)
    if seen is None or not seen.size:
        return record, seen, None
    return record, seen, fetch_and_inspect(bucket, seen, inspector.inspect)


def _still_there(bucket: Bucket, files: list[_File]) -> bool:
    """Tell whether the same versions lie in the bucket now, asking for all files at once."""
    threads = ThreadPoolExecutor(max(len(files), 1), thread_name_prefix="complete")
    try:
        there = [(record.object_key, seen) for record, seen, _ in files if record.withdrawal is None]
        asked = [threads.submit(bucket.head, key) for key, _ in there]
        answers = wait(asked, timeout=BUCKET_SECONDS)
        if answers.not_done:
            raise BucketUnavailable(
                "The bucket did not answer within {} seconds while the sale was locked. Nothing was changed; "
                "try again later.",
                BUCKET_SECONDS,
            )
        return [answer.result() for answer in asked] == [seen for _, seen in there]
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def _versions(files: list[_File]) -> list[dict[str, object]]:
    """Return the versions that count, for the custody log."""
    return [
        {
            "evidence": str(record.id),
            "sha256": read.sha256,
            "size": seen.size,
            "etag": seen.etag,
            **({"version": seen.version_id} if seen.version_id else {}),
        }
        for record, seen, read in files
        if seen is not None and read is not None
        if record.state_by(seen, read) is EvidenceState.COUNTED
    ]
