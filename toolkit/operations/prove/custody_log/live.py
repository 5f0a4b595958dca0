"""Compare what the tables hold now with what the custody log says of it.

A log that is whole says nothing of the tables: a record that was moved to another sale stays there. So every event
is followed to its row, and every row to its event. Rows that are older than the log have no event. Observations of
sales that were moved to a snapshot are read from there; those of records are left out, for it has no keys.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.domain.custody_events import CustodyEvent
from toolkit.domain.log_keys import LogKeys
from toolkit.errors import BucketError, InvalidInput, SettingsError
from toolkit.operations.prove.custody_log.export import sealed_lines
from toolkit.operations.prove.custody_log.sealing import NO_KEYS
from toolkit.operations.prove.custody_log.verification import Chain, Difference
from toolkit.storage.database import Database, raw
from toolkit.storage.partitions import Moved, moved
from toolkit.storage.tables import custody_epochs, custody_seals, moved_partitions, sale_observations

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Epoch:
    """The cluster that the log is written in, counted from 1: one more after each restore into another one."""

    number: int
    opened_at: datetime


@dataclass(frozen=True, slots=True)
class LiveVerdict:
    """The numbers of events and seals, the hash and epoch of the newest seal, and every difference."""

    events: int
    seals: int
    newest: str
    epoch: Epoch
    differences: tuple[Difference, ...]
    moved: int = 0
    """Observations that were moved to a snapshot."""


ReadMoved = Callable[[Moved], "Iterator[pa.RecordBatch]"]
"""Reads the observations of sales that were moved to a snapshot, see ``toolkit.operations.snapshot.moving``."""


def verify_live(
    database: Database,
    keys: LogKeys = NO_KEYS,
    kept_seal: str | None = None,
    read_moved: ReadMoved | None = None,
) -> LiveVerdict:
    """Follow the chain in the database, and compare each event with what it tells of.

    ``kept_seal`` is the hash of a seal that was kept elsewhere: without it a log that was cut off at a seal
    cannot be told from a whole one. Without ``read_moved`` what was moved to a snapshot counts as a difference.

    Raises:
        InvalidInput: a key that the log was sealed with is not here.
    """
    with database.at(datetime.now(UTC)) as connection:
        chain, misfits = Chain(), list[Difference]()
        for line in sealed_lines(connection, keys):
            if (misfit := chain.follow(line)) is not None:
                misfits.append(misfit)
            if chain.broken:
                break
        moved_rows = connection.scalar(sa.select(sa.func.sum(moved_partitions.c.rows))) or 0
        compared, sales = _COMPARED, _SALES_HERE
        if (last := moved(connection)) is not None:
            try:
                _put_moved(connection, read_moved(last) if read_moved is not None else iter(()))
                sales = _SALES_ANYWHERE
            except (InvalidInput, BucketError, SettingsError) as error:
                before = f"before {last.over_at.astimezone(UTC):%Y-%m}"
                how = f"were moved to {last.target}, and are not compared: {error}"
                misfits.append(Difference("months", before, how))
                compared = tuple(each for each in _COMPARED if each[0] != "sales")
        found = [
            Difference(what, str(row.id), how)
            for what, how, query in compared
            for row in connection.execute(sa.text(query.replace(_SALES_HERE, sales)))
        ]
        epoch = newest_epoch(connection)
        if kept_seal is not None and not has_seal(connection, kept_seal.strip().lower()):
            misfits.append(Difference("seal", kept_seal, "is not here: the log was forged as a whole, or cut off"))
    return LiveVerdict(chain.events, chain.seals, chain.newest, epoch, (*misfits, *found), int(moved_rows))


def _put_moved(connection: Connection, batches: "Iterator[pa.RecordBatch]") -> None:
    """Put observations of sales that were moved into a temporary table."""
    # Whoever asks after the epoch alone does not wait for Arrow to load.
    import pyarrow as pa
    from pyarrow import csv

    run = raw(connection)
    run.execute("CREATE TEMPORARY TABLE moved_sales (LIKE audit.sale_observations) ON COMMIT DROP")
    for batch in batches:
        lines = pa.BufferOutputStream()
        csv.write_csv(batch, lines, csv.WriteOptions(include_header=False))
        columns = ", ".join(batch.schema.names)
        with run.cursor().copy(f"COPY pg_temp.moved_sales ({columns}) FROM STDIN (FORMAT csv)".encode()) as copy:
            copy.write(lines.getvalue())


def has_seal(connection: Connection, kept_seal: str) -> bool:
    """Tell whether a seal of the log has this hash."""
    query = sa.select(sa.select(custody_seals.c.number).where(custody_seals.c.hash == kept_seal).exists())
    return bool(connection.scalar(query))


def newest_epoch(connection: Connection) -> Epoch:
    """Return the epoch that the log is in."""
    known = custody_epochs.c
    return Epoch(
        *connection.execute(sa.select(known.number, known.opened_at).order_by(known.number.desc()).limit(1)).one()
    )


def _hash(*columns: str) -> str:
    return f"encode(sha256(convert_to(concat_ws(E'\\n', {', '.join(columns)}), 'UTF8')), 'hex')"


_ISSUED_HASH: Final = _hash(
    *(f"record.{name}" for name in ("sale_id", "file_name", "file_format", "type", "object_key", "requested_by"))
)
_OBSERVED_HASH: Final = _hash(
    *(f"record.{name}" for name in ("sale_id", "evidence_type", "type", "object_key")),
    "extract(epoch FROM record.requested_at)",
    "extract(epoch FROM record.expires_at)",
)
_SALE: Final = """
    ROW(seen.id, seen.sale_id, seen.client_id, seen.utility_group, seen.is_client_financial_responsible,
        seen.partner, extract(epoch FROM seen.created_at), extract(epoch FROM seen.completed_at),
        extract(epoch FROM seen.seen_at))::text
"""
_SALES_HERE: Final = "audit.sale_observations"
_SALE_COLUMNS: Final = ", ".join(column.name for column in sale_observations.columns)
_SALES_ANYWHERE: Final = (
    f"(SELECT {_SALE_COLUMNS} FROM {_SALES_HERE} UNION ALL SELECT {_SALE_COLUMNS} FROM pg_temp.moved_sales)"  # noqa: S608
)
_BEGAN: Final = "(SELECT min(happened_at) FROM audit.custody_events)"
_SALES_BEGAN: Final = f"({_BEGAN[1:-1]} WHERE kind = '{CustodyEvent.SALES_OBSERVED}')"

_RECORDS: Final = """
    SELECT evidence AS id
    FROM (
        SELECT DISTINCT ON (evidence) (detail ->> 'evidence')::uuid AS evidence, kind, detail
        FROM audit.custody_events
        WHERE kind IN {kinds}
        ORDER BY evidence, epoch DESC, transaction DESC, id DESC
    ) AS told
    {join}
    WHERE {condition}
    ORDER BY id
"""  # made of constants, as are the others

_FROM_ISSUED: Final = f"('{CustodyEvent.ISSUED}')"
_FROM_OBSERVED: Final = (
    f"('{CustodyEvent.RECORDED}', '{CustodyEvent.RECORD_CHANGED}', '{CustodyEvent.RECORD_GONE}')"
)
_WITH_RECORD: Final = "JOIN audit_service.evidences AS record ON record.id = told.evidence"


def _paired(
    what: str,
    how: str,
    rows: str,
    kinds: str,
    at: str,
    same: str,
    told: str = "(detail ->> 'observation')::bigint",
) -> tuple[str, str, str]:
    """Find rows without their event, and events without their row; of rows that are younger than the log."""
    query = f"""
        SELECT coalesce(row.id, event.told) AS id
        FROM {rows} AS row
        FULL JOIN (
            SELECT {told} AS told, detail, happened_at FROM audit.custody_events WHERE kind IN ({kinds})
        ) AS event
            ON row.id = event.told AND {same}
        WHERE (row.id IS NULL OR event.told IS NULL) AND coalesce(row.{at}, 'infinity') >= {_BEGAN}
        ORDER BY 1
    """  # noqa: S608  # made of constants
    return what, how, query


_COMPARED: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "record",
        "is not as it was issued: its sale, file, type or key was changed",
        _RECORDS.format(
            kinds=_FROM_ISSUED,
            join=_WITH_RECORD,
            condition=f"(detail ->> 'record', detail ->> 'evidenceType') "
            f"<> ({_ISSUED_HASH}, record.evidence_type)",
        ),
    ),
    (
        "record",
        "is not as it was last observed",
        _RECORDS.format(
            kinds=_FROM_OBSERVED,
            join=_WITH_RECORD,
            condition=f"kind <> '{CustodyEvent.RECORD_GONE}' AND detail ->> 'record' <> {_OBSERVED_HASH}",
        ),
    ),
    (
        "record",
        "was observed otherwise than the log holds",
        f"""
        SELECT record.evidence_id AS id
        FROM audit.custody_events AS event
        JOIN audit.evidence_observations AS record ON record.id = (event.detail ->> 'observation')::bigint
        WHERE event.kind IN ('{CustodyEvent.RECORDED}', '{CustodyEvent.RECORD_CHANGED}')
          AND (event.detail ->> 'record', event.happened_at) <> ({_OBSERVED_HASH}, record.seen_at)
        ORDER BY 1
        """,  # noqa: S608
    ),
    (
        "record",
        "is gone, and the log does not hold that",
        _RECORDS.format(
            kinds=f"('{CustodyEvent.ISSUED}', {_FROM_OBSERVED[1:]}",
            join="",
            condition=f"kind <> '{CustodyEvent.RECORD_GONE}' "
            "AND NOT EXISTS (SELECT FROM audit_service.evidences AS record WHERE record.id = told.evidence)",
        ),
    ),
    _paired(
        "file",
        "was observed otherwise than the log holds",
        "audit.object_observations",
        f"'{CustodyEvent.UPLOADED}', '{CustodyEvent.RESTORED}'",
        "seen_at",
        f"row.seen_at = happened_at AND {_hash('row.key')} = detail ->> 'key' "
        "AND row.etag = detail ->> 'etag' AND row.size = (detail ->> 'size')::bigint",
    ),
    _paired(
        "file",
        "was gone otherwise than the log holds",
        "(SELECT * FROM audit.object_observations WHERE gone_at IS NOT NULL)",
        f"'{CustodyEvent.GONE}'",
        "gone_at",
        "row.gone_at = happened_at",
    ),
    _paired(
        "content",
        "was verified otherwise than the log holds",
        "(SELECT observation_id AS id, sha256, kind, problem, checked_at FROM audit.content_checks "
        "WHERE sha256 IS NOT NULL)",
        f"'{CustodyEvent.VERIFIED}'",
        "checked_at",
        "(row.sha256, row.kind) = (detail ->> 'sha256', detail ->> 'kind') "
        "AND row.problem IS NOT DISTINCT FROM detail ->> 'problem'",
    ),
    _paired(
        "audit",
        "ran otherwise than the log holds",
        "audit.audit_runs",
        f"'{CustodyEvent.AUDITED}'",
        "ran_at",
        "(row.ran_at, row.sales, row.compliant) "
        "= (happened_at, (detail ->> 'sales')::bigint, (detail ->> 'compliant')::bigint)",
        "(detail ->> 'run')::uuid",
    ),
    _paired(
        "withdrawal",
        "is not as the log holds it",
        "(SELECT evidence_id AS id, withdrawn_by, approved_by, reason, withdrawn_at FROM audit.withdrawals)",
        f"'{CustodyEvent.WITHDRAWN}'",
        "withdrawn_at",
        " AND ".join(
            f"coalesce(detail ->> '{told}', {_hash(column)}) = {_hash(column)}"
            for told, column in (
                ("by", "row.withdrawn_by"),
                ("approvedBy", "row.approved_by"),
                ("reason", "row.reason"),
            )
        ),
        "(detail ->> 'evidence')::uuid",
    ),
    (
        "record",
        "was asked for here, or observed, and the log holds nothing of it",
        f"""
        SELECT evidence_id AS id
        FROM (
            SELECT evidence_id FROM audit.evidence_requests
            UNION
            SELECT evidence_id FROM audit.evidence_observations WHERE assumed_at IS NULL AND seen_at >= {_BEGAN}
        ) AS record
        WHERE NOT EXISTS (
            SELECT FROM audit.custody_events WHERE (detail ->> 'evidence')::uuid = record.evidence_id
        )
        ORDER BY 1
        """,  # noqa: S608
    ),
    (
        "sales",
        "were observed otherwise than the log holds (the numbers of the observations)",
        f"""
        SELECT concat_ws('-', coalesce(told.first, min(seen.id)), coalesce(told.last, max(seen.id))) AS id
        FROM audit.sale_observations AS seen
        FULL JOIN (
            SELECT told.*, first / 1000 AS part
            FROM audit.custody_events,
                 jsonb_to_record(detail) AS told (first bigint, last bigint, count bigint, sales text)
            WHERE kind = '{CustodyEvent.SALES_OBSERVED}'
        ) AS told ON seen.id / 1000 = told.part AND seen.id BETWEEN told.first AND told.last
        GROUP BY told.first, told.last, told.count, told.sales
        HAVING told.first IS NULL
            OR (count(seen.id),
                encode(sha256(convert_to(string_agg({_SALE}, '' ORDER BY seen.id), 'UTF8')), 'hex'))
               IS DISTINCT FROM (told.count, told.sales)
        ORDER BY told.first
        """,  # noqa: S608
    ),
    _paired(
        "sales",
        "were gone otherwise than the log holds (the number of the observation)",
        f"(SELECT * FROM audit.sale_observations AS seen WHERE gone_at >= {_SALES_BEGAN})",  # noqa: S608
        f"'{CustodyEvent.SALE_GONE}'",
        "gone_at",
        "row.gone_at = happened_at",
    ),
    _paired(
        "month",
        "was moved otherwise than the log holds",
        "audit.moved_partitions",
        f"'{CustodyEvent.OBSERVATIONS_MOVED}'",
        "moved_at",
        "(row.moved_at, row.rows, row.sha256, row.manifests) "
        "= (happened_at, (detail ->> 'rows')::bigint, detail ->> 'sha256', detail ->> 'manifests')",
        "(detail ->> 'moved')::bigint",
    ),
    (
        "sale",
        "is not as it was last observed: its client, group, payer or partner was changed since",
        """
        SELECT sale.id
        FROM audit_service.sales AS sale
        JOIN audit.sale_observations AS seen ON seen.sale_id = sale.id AND seen.gone_at IS NULL
        WHERE (sale.client_id, sale.utility_group, sale.is_client_financial_responsible,
               nullif(btrim(sale.partner), ''))
            IS DISTINCT FROM
              (seen.client_id, seen.utility_group, seen.is_client_financial_responsible, seen.partner)
        ORDER BY 1
        """,
    ),
    (
        "sale",
        "was completed at another time than the log holds, or its completion was undone",
        f"""
        SELECT told.detail ->> 'sale' AS id
        FROM (
            SELECT DISTINCT ON (detail ->> 'sale') detail, happened_at
            FROM audit.custody_events
            WHERE kind = '{CustodyEvent.COMPLETED}'
            ORDER BY detail ->> 'sale', epoch DESC, transaction DESC, id DESC
        ) AS told
        LEFT JOIN audit_service.sales AS sale ON told.detail ->> 'sale' = {_hash("sale.id")}
        WHERE sale.completed_at IS DISTINCT FROM told.happened_at
        ORDER BY 1
        """,  # noqa: S608
    ),
)
"""The kind of thing that is compared, the meaning of a difference, and the query that finds the ids."""
