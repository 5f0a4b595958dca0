"""Read the evidence of many sales as of a moment: records with their files, and events of the custody log."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.domain.custody_chain import Event
from toolkit.operations.judge.audit.details import held
from toolkit.operations.judge.audit.records import EvidenceRecord, by_indexes, records_at
from toolkit.operations.judge.audit.snapshot_tables import SnapshotTables, keys_of
from toolkit.storage.database import Database
from toolkit.storage.tables import evidence_observations

TimeLine = tuple[tuple[Event, UUID], ...]
"""Events of the custody log, oldest first, each with the id of its evidence record."""


@dataclass(frozen=True, slots=True)
class SaleEvidence:
    """The evidence of one sale."""

    records: tuple[EvidenceRecord, ...]
    timeline: TimeLine | None
    """``None`` where the custody log could not be asked."""


def evidence_at(database: Database, moment: datetime, sale_ids: Sequence[str]) -> Iterator[SaleEvidence]:
    """Yield the evidence of each of these sales as of a moment, in their order; some thousand are read at once."""
    with database.at(moment) as connection:
        by_indexes(connection)
        for start in range(0, len(sale_ids), _AT_ONCE):
            some = sale_ids[start : start + _AT_ONCE]
            records = _by_sale(records_at(connection, some, moment))
            keys = {each.id: each.object_key for own in records.values() for each in own}
            yield from _joined(some, records, time_line(connection, some, keys, moment))


def evidence_in_snapshot(
    tables: SnapshotTables, moment: datetime, sale_ids: Sequence[str]
) -> Iterator[SaleEvidence]:
    """Yield the same of a snapshot, which holds no custody log: that is asked of the database that it is of."""
    people = tables.people
    with tables.snapshot() as reader, nullcontext() if people is None else people.snapshot() as log:
        records = _by_sale(records_at(reader, sale_ids, moment))  # at once: each reading goes through all files
        for start in range(0, len(sale_ids), _AT_ONCE):
            some = sale_ids[start : start + _AT_ONCE]
            own = {each.id: each.object_key for sale_id in some for each in records[sale_id]}
            timeline = None
            if people is not None and log is not None:
                keys = _keys(log, list(own), moment)
                moved = {each: told for each, told in own.items() if told is not None and each not in keys}
                named = keys_of(people, reader, moved.values()) if moved else {}
                if named.keys() >= set(moved.values()):
                    keys |= {each: named[told] for each, told in moved.items()}
                    timeline = time_line(log, some, keys, moment)
            yield from _joined(some, records, timeline)


def time_line(
    connection: Connection,
    sale_ids: Sequence[str],
    keys: Mapping[UUID, str | None],
    moment: datetime | None = None,
) -> TimeLine:
    """Return the events of the records of these sales, up to a moment or until now.

    Each record is given with the key of its object. A completion is told of each record whose file allowed it.
    """
    given = {"sales": list(sale_ids), "ids": list(keys), "keys": list(keys.values()), "moment": moment}
    return tuple(
        (Event(row.id, row.kind, row.happened_at, row.detail), row.evidence)
        for row in connection.execute(sa.text(_TIME_LINE), given)
    )


def _keys(connection: Connection, ids: list[UUID], moment: datetime) -> dict[UUID, str | None]:
    """Return the keys of the objects of these records, for which a snapshot has pseudonyms."""
    record = evidence_observations
    of_these = record.c.evidence_id == sa.any_(sa.cast(ids, sa.ARRAY(sa.Uuid)))
    query = sa.select(record.c.evidence_id, record.c.object_key).where(of_these, held(record, moment))
    return dict(connection.execute(query).all())


def _by_sale(records: Iterable[EvidenceRecord]) -> defaultdict[str, list[EvidenceRecord]]:
    found = defaultdict(list)
    for record in records:
        found[record.sale_id].append(record)
    return found


def _joined(
    sale_ids: Sequence[str], records: Mapping[str, list[EvidenceRecord]], timeline: TimeLine | None
) -> Iterator[SaleEvidence]:
    sale_of = {each.id: sale_id for sale_id in sale_ids for each in records[sale_id]}
    events = defaultdict(list)
    for event, evidence_id in timeline or ():
        events[sale_of[evidence_id]].append((event, evidence_id))
    for sale_id in sale_ids:
        yield SaleEvidence(tuple(records[sale_id]), None if timeline is None else tuple(events[sale_id]))


_AT_ONCE: Final = 2_000
"""The number of sales that are read at once, and that are held in memory meanwhile."""

_TIME_LINE: Final = """
    WITH record AS (SELECT * FROM unnest(CAST(:ids AS uuid[]), CAST(:keys AS text[])) AS record (id, key)),
    event AS (
        SELECT custody.*, record.id AS evidence
        FROM record JOIN audit.custody_events AS custody ON (detail ->> 'evidence')::uuid = record.id
        UNION ALL
        SELECT custody.*, record.id
        FROM record
        JOIN audit.object_observations AS seen ON seen.key COLLATE "C" = record.key
        JOIN audit.custody_events AS custody ON (detail ->> 'observation')::bigint = seen.id
        WHERE kind IN ('UPLOADED', 'RESTORED', 'GONE', 'VERIFIED')
        UNION ALL
        SELECT custody.*, record.id
        FROM unnest(CAST(:sales AS text[])) AS sale (id)
        JOIN audit.custody_events AS custody
            ON kind = 'COMPLETED' AND detail ->> 'sale' = encode(sha256(convert_to(sale.id, 'UTF8')), 'hex')
        CROSS JOIN jsonb_array_elements(detail -> 'files') AS file
        JOIN record ON record.id = (file ->> 'evidence')::uuid
    )
    SELECT id, kind, happened_at, detail, evidence FROM event
    WHERE happened_at <= coalesce(CAST(:moment AS timestamptz), 'infinity')
    ORDER BY happened_at, id, evidence
"""
"""The observations of records and sales are counted from 1, too."""
