"""Read the bucket into the database: its objects, then the first bytes of those not examined yet.

A reading is full, or recent. A full one lists every key: the first one, one each ``every_key_within``, each of a
bucket with few pages, and where so many keys would be asked for that it costs less. A recent one looks at

- the days on which an upload form that was alive since the last reading can have been issued, and
- every key that a record of an open sale, or a new record, names. A sale is open that is not completed, or that
  the last audit found completed without evidence. A record is new for as long as a key may go unread, also where
  its sale is completed.

The row in ``audit.bucket_syncs`` comes last: a reading that was killed counts as not made, and the next one
does what it left undone.
"""

import math
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.audit.folder import LastSync
from toolkit.audit.inventory import Inventory
from toolkit.audit.object_history import EVERYTHING, Scope, Synced, in_area, observe_objects, rows_of, under
from toolkit.bucket.client import PAGE, Bucket, ask_each, list_objects
from toolkit.contract.contents import ContentProblem
from toolkit.contract.evidence import KEY_PREFIX, kind_of_media_type
from toolkit.contract.fields import pick_camel
from toolkit.database.belonging import check_bucket
from toolkit.database.connection import Database
from toolkit.database.observation_clock import stamp
from toolkit.database.observations import observe_service
from toolkit.database.tables import bucket_syncs, object_observations
from toolkit.errors import BucketError, BucketUnavailable, InvalidInput, ObjectArchived, WrongBucket
from toolkit.evidence.kinds import SIGNATURE_BYTES, UNKNOWN, media_type_of_bytes
from toolkit.progress import Progress
from toolkit.settings import LONGEST_UPLOAD_TTL

LONGEST_FORM: Final = timedelta(seconds=LONGEST_UPLOAD_TTL)  # the longest life of an upload form

CLOCKS_APART: Final = timedelta(hours=1)
"""The difference to allow for between the clocks of issuers of forms and of the reader of the bucket."""

EVERY_KEY_WITHIN: Final = timedelta(days=7)
"""The age up to which any part of the bucket may go unread, where nothing else is set."""

FEW_PAGES: Final = 10  # pages of a listing up to which a bucket is read whole, at any hour of the day
KEYS_A_PAGE: Final = 8  # keys that can be asked for one by one in the time in which one page of a listing is read

_BATCH: Final = 1000

_Object = sa.Row[Any]  # the id, the key and the size of an observation


def sync_bucket(
    database: Database,
    bucket: Bucket,
    *,
    full: bool = False,
    inventory: Inventory | None = None,
    every_key_within: timedelta = EVERY_KEY_WITHIN,
    confirmed: bool = False,
    progress: Progress | None = None,
) -> Synced:
    """Observe the sales and their records, then take over what lies in the bucket, or did by an inventory.

    Afterwards every object that a record of an open sale names was looked at now, and the listing of any other
    is not older than ``every_key_within``.

    Raises:
        WrongBucket: the database belongs to another bucket, or the inventory tells of another one.
        WrongService: it belongs to another service; nothing was read.
        InvalidInput: every key was looked at since the moment of the inventory, or that is still to come.
        UnreadableFile: the inventory lacks a column, or cannot be read; nothing was taken over.
        MassDisappearance: most sales, records or objects are gone at once; nothing of them was taken over.
        BucketUnavailable: nothing was taken over, or the examination stopped half-way; run it again.
    """
    progress = progress or Progress()
    started_at, as_of = database.clock(), None if inventory is None else inventory.moment
    with database.transaction() as connection:
        check_bucket(connection, bucket)
        if inventory is not None:
            _check_inventory(inventory, bucket, started_at, listed_since(connection))
    observe_service(database, confirmed=confirmed)
    scope = database.run(_scope, bucket, started_at, full or inventory is not None, every_key_within)
    with closing(_rows(bucket, scope, inventory)) as rows:
        found, unrecorded = observe_objects(database, bucket, rows, scope, progress, confirmed, as_of=as_of)
    if unrecorded:  # their records were stored before them, and perhaps after the service was looked at
        observe_service(database, confirmed=confirmed)
    examined, refusals = _examine(database, bucket, scope, progress)
    archived = tuple(key for key, error in refusals.items() if isinstance(error, ObjectArchived))
    # An inventory of a part of the bucket tells nothing of the rest, and the next reading begins as this one did.
    began = started_at if as_of is None else scope.since if found.lacking and scope.since is not None else as_of
    result = replace(
        found,
        examined=examined,
        full=scope.full and not found.lacking,
        archived=archived,
        unreadable=tuple(dict.fromkeys((*(key for key in refusals if key not in archived), *found.unreadable))),
    )
    with database.transaction() as connection:
        row = {
            "started_at": began,
            "finished_at": stamp(connection),
            "bucket": bucket.address,
            "full_listing": result.full,
            "unreadable": len(refusals),
            "denied": len(found.unreadable),
            "source": None if inventory is None else inventory.address,
            **pick_camel(found, "listed", "appeared", "vanished", "asked"),
        }
        connection.execute(sa.insert(bucket_syncs), row)
        return replace(result, listed_since=listed_since(connection))


def _rows(bucket: Bucket, scope: Scope, inventory: Inventory | None) -> Generator[pa.Table]:
    if inventory is not None:
        yield from inventory.rows(bucket.area)
        return
    with closing(list_objects(bucket, scope.prefixes)) as pages:
        yield from map(rows_of, pages)


def _check_inventory(inventory: Inventory, bucket: Bucket, now: datetime, listed: datetime | None) -> None:
    listed_at = inventory.moment.isoformat(timespec="seconds")
    if inventory.bucket != bucket.name:
        raise WrongBucket(
            "{} lists the bucket {}, and this is {}. Nothing was taken over.",
            inventory.address,
            inventory.bucket,
            bucket.name,
        )
    if inventory.moment > now + CLOCKS_APART:
        raise InvalidInput(
            "{} is dated {}, in the future. Check the clock of this machine. Nothing was taken over.",
            inventory.address,
            listed_at,
        )
    if listed is not None and listed >= inventory.moment:
        raise InvalidInput(
            "{} is dated {}, and every key was looked at since {}. Nothing was taken over.",
            inventory.address,
            listed_at,
            listed.isoformat(timespec="seconds"),
        )


def listed_since(connection: Connection, moment: datetime | None = None) -> datetime | None:
    """Return when every key was looked at last, as of ``moment``; ``None`` where that was never done.

    Records of open sales are asked for at every reading, so this is about all other objects.
    """
    syncs = bucket_syncs.c
    query = sa.select(syncs.started_at).where(syncs.full_listing).order_by(syncs.id.desc()).limit(1)
    if moment is not None:
        query = query.where(syncs.finished_at <= moment)
    return connection.scalar(query)


def last_sync(connection: Connection, moment: datetime) -> LastSync | None:
    """Return the last reading of the bucket by then."""
    syncs = bucket_syncs.c
    row = connection.execute(
        sa.select(syncs.finished_at, syncs.bucket, syncs.source, sa.func.coalesce(syncs.denied, 0))
        .where(syncs.finished_at <= moment)
        .order_by(syncs.finished_at.desc(), syncs.id.desc())
        .limit(1)
    ).one_or_none()
    return None if row is None else LastSync(*row)


def _scope(connection: Connection, bucket: Bucket, now: datetime, full: bool, within: timedelta) -> Scope:
    """Return the part of the bucket that this reading looks at, by the times of earlier ones."""
    last = connection.execute(sa.select(bucket_syncs).order_by(bucket_syncs.c.id.desc()).limit(1)).one_or_none()
    oldest, since = listed_since(connection), None if last is None else last.started_at
    if not (full or last is None or last.bucket != bucket.address or oldest is None or now - oldest >= within):
        known = connection.scalar(sa.select(sa.func.count()).where(object_observations.c.gone_at.is_(None)))
        pages = math.ceil((known or 0) / PAGE)
        if pages > FEW_PAGES:
            days = _days(last.started_at - LONGEST_FORM - CLOCKS_APART, now + CLOCKS_APART)
            most = pages * KEYS_A_PAGE
            asked = _asked(connection, bucket, days, now - within, most + 1)
            if len(asked) <= most:
                return Scope(days, asked, since)
    return Scope(EVERYTHING, _asked(connection, bucket, EVERYTHING, now - within), since)


def _asked(
    connection: Connection, bucket: Bucket, prefixes: Sequence[str], new_since: datetime, most: int | None = None
) -> tuple[str, ...]:
    """Return the keys to ask for one by one, which listing the prefixes does not show; at ``most`` so many."""
    in_turn, listed = under("record.object_key", prefixes), in_area("record.object_key", bucket.area)
    query = sa.text(_ASKED.format(in_turn=in_turn.text, listed=listed.text))
    bound = {"new_since": new_since, "most": most, **in_turn.bound, **listed.bound}
    return tuple(connection.scalars(query, bound))


def _days(first: datetime, last: datetime) -> tuple[str, ...]:
    """Return the prefixes of the keys of evidence that was requested from one day to another (UTC)."""
    start, end = first.astimezone(UTC).date(), last.astimezone(UTC).date()
    days = (start + timedelta(days=number) for number in range((end - start).days + 1))
    return tuple(f"{KEY_PREFIX}{day:%Y/%m/%d}/" for day in days)


def _examine(
    database: Database, bucket: Bucket, scope: Scope, progress: Progress
) -> tuple[int, dict[str, BucketError]]:
    """Read the first bytes of every new object that a record names, or that lies where upload forms lead.

    Returns how many were examined, and why others could not be read, by their keys.
    """
    progress.begin("Examining objects", None, "objects")
    examined = 0
    refusals: dict[str, BucketError] = {}
    for looks in ask_each(lambda item: (item.key, _first_look(bucket, item)), _unexamined(database, scope)):
        checks = [found for _, found in looks if isinstance(found, dict)]
        broken = [found for _, found in looks if type(found) is BucketError]
        if len(broken) == _BATCH:  # more than single objects
            raise broken[0]
        refusals |= {key: found for key, found in looks if isinstance(found, BucketError)}
        if checks:
            with database.transaction() as connection:
                now = stamp(connection)
                connection.execute(sa.text(_KEEP_CHECK), [check | {"now": now} for check in checks])
        examined += len(checks)
        progress.advance(len(looks))
    progress.end()
    return examined, refusals


def _unexamined(database: Database, scope: Scope) -> Iterator[Sequence[_Object]]:
    last = 0
    condition = "TRUE" if scope.full else _NEW
    while True:
        with database.transaction() as connection:
            bound = {"last": last, "prefix": KEY_PREFIX, "batch": _BATCH, "since": scope.since}
            rows = connection.execute(sa.text(_UNEXAMINED.format(condition=condition)), bound).all()
        if not rows:
            return
        last = rows[-1].id
        yield rows


def _first_look(bucket: Bucket, item: _Object) -> dict[str, Any] | BucketError:
    """Return the type by the first bytes, or the reason why they cannot be read; the next sync tries again."""
    try:
        head = bucket.read(item.key, SIGNATURE_BYTES) if item.size else b""
    except BucketUnavailable:
        raise
    except BucketError as error:
        return error
    if len(head) < min(item.size, SIGNATURE_BYTES):  # an answer that was cut says nothing of the file
        return BucketError("The bucket sent another number of bytes than the file has; try again later.")
    found = media_type_of_bytes(head) if item.size else UNKNOWN
    problem = None if item.size else ContentProblem.EMPTY
    kind = kind_of_media_type(found)
    return {"observation_id": item.id, "kind": kind, "problem": problem, "media_type": found}


_UNEXAMINED: Final = """
    SELECT id, key, size
    FROM audit.object_observations AS known
    WHERE gone_at IS NULL
      AND id > :last
      AND NOT EXISTS (SELECT FROM audit.content_checks WHERE observation_id = known.id)
      AND {condition}
      AND (starts_with(key, :prefix) OR EXISTS (
          SELECT FROM audit.evidence_observations AS record
          WHERE record.object_key = known.key AND record.gone_at IS NULL
      ))
    ORDER BY id
    LIMIT :batch
"""

_NEW: Final = """
    (seen_at >= :since OR EXISTS (
        SELECT FROM audit.evidence_observations AS record
        WHERE record.object_key = known.key AND record.gone_at IS NULL AND record.seen_at >= :since
    ))
"""

_KEEP_CHECK: Final = """
    INSERT INTO audit.content_checks (observation_id, kind, problem, media_type, checked_at)
    SELECT :observation_id, :kind, :problem, :media_type, :now
    WHERE NOT EXISTS (SELECT FROM audit.content_checks WHERE observation_id = :observation_id)
"""

_ASKED: Final = """
    SELECT DISTINCT record.object_key
    FROM audit.evidence_observations AS record
    JOIN audit.sale_observations AS sale ON sale.sale_id = record.sale_id AND sale.gone_at IS NULL
    CROSS JOIN LATERAL (
        SELECT sale.completed_at IS NULL OR record.seen_at > :new_since OR record.sale_id IN (
            SELECT sale_id
            FROM audit.finding_observations
            WHERE gone_at IS NULL AND code = 'COMPLETED_WITHOUT_EVIDENCE'
        ) AS open
    ) AS state
    WHERE record.gone_at IS NULL
      AND record.object_key IS NOT NULL
      AND ((open AND NOT {in_turn}) OR ((open OR {in_turn}) AND NOT {listed}))
    ORDER BY record.object_key
    LIMIT CAST(:most AS bigint)
"""
