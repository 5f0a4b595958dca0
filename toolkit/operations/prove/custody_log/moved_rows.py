"""Put observations that were moved to a snapshot beside the tables, to be compared with the custody log.

Every month is proven by its digest. A snapshot has no keys of objects: each is found by its pseudonym among those
that other observations in the database tell.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from typing import Final

import pyarrow as pa
import sqlalchemy as sa
from pyarrow import csv
from sqlalchemy import Connection

from toolkit.errors import BucketError, InvalidInput, SettingsError
from toolkit.operations.prove.custody_log.comparisons import OF_RECORDS, OF_SALES, Sources
from toolkit.operations.prove.custody_log.verification import Difference
from toolkit.operations.snapshot.contents import CONTENTS
from toolkit.operations.snapshot.moved import Elsewhere, months_moved
from toolkit.operations.snapshot.secret import known_secret
from toolkit.storage import tables
from toolkit.storage.database import Database, raw
from toolkit.storage.frames import stream_arrow
from toolkit.storage.partitions import PARTITIONED, Moved, moved

_KEYS: Final = pa.schema({"key": pa.string(), "object_key": pa.string()})

_ROWS: Final = {
    tables.sale_observations: """
        SELECT * FROM pg_temp.sale_observations AS ended
        WHERE NOT EXISTS (SELECT FROM audit.sale_observations AS kept WHERE kept.id = ended.id)
    """,
    tables.evidence_observations: """
        SELECT ended.id, evidence_id, sale_id, evidence_type, type, told.key AS object_key, requested_at,
               expires_at, seen_at, gone_at, assumed_at
        FROM pg_temp.evidence_observations AS ended
        LEFT JOIN pg_temp.keys AS told ON told.object_key = ended.object_key
        WHERE NOT EXISTS (SELECT FROM audit.evidence_observations AS kept WHERE kept.id = ended.id)
    """,
}
"""The rows that are in the snapshot alone; a few observations stayed in the database, too."""


def moved_sources(database: Database, connection: Connection, elsewhere: Elsewhere | None) -> Sources:
    """Put all rows that were moved into temporary tables of ``connection``; tell what cannot be compared."""
    if (last := moved(connection)) is None:
        return Sources()
    assert elsewhere is not None
    try:
        found = [*_put_months(connection, last, elsewhere)]
    except (InvalidInput, BucketError, SettingsError) as error:
        how = f"were moved to {last.target}, so that no observation of a sale or a record is compared: {error}"
        before = f"before {last.over_at.astimezone(UTC):%Y-%m}"
        return Sources(left_out=OF_SALES | OF_RECORDS, differences=(Difference("months", before, how),))
    keyless = _put_keys(database, connection, elsewhere)
    if keyless:
        how = (
            "whose keys no other observation tells under the snapshot.key in this TOOLKIT_HOME, so that no "
            "observation of a record is compared: the exports were made with another one, or keys were changed"
        )
        found.append(Difference("records", f"{keyless:,} observations in {last.target}", how))
    return Sources(_ROWS, OF_RECORDS if keyless else frozenset(), tuple(found))


def _put_months(connection: Connection, last: Moved, elsewhere: Elsewhere) -> Iterator[Difference]:
    """Put the rows of all months; yield each month that is not what was moved."""
    months = months_moved(connection)
    with elsewhere.opened(last, months) as rows_of:
        for table in PARTITIONED:
            _create(connection, table.name, f"LIKE {table.fullname}")
        for month in months:
            rows = _copied(connection, month.content.name, month.compared.names, rows_of(month))
            if (told := month.digest(rows)) != (month.rows, month.sha256):
                how = f"is not what was moved to {last.target}: {told[0]:,} rows, and {month.rows:,} were moved"
                yield Difference("month", f"{month.began_at:%Y-%m} of {month.content.name}", how)


def _put_keys(database: Database, connection: Connection, elsewhere: Elsewhere) -> int:
    """Put the keys that the database tells, with their pseudonyms; return the moved rows whose key is not told."""
    _create(connection, "keys", "key text, object_key text")
    records, secret = CONTENTS[1], known_secret(elsewhere.home)
    if secret is not None:
        query = "SELECT DISTINCT object_key AS key, object_key FROM audit.evidence_observations"
        with database.snapshot() as other:
            told = (records.without_keys(batch, secret) for batch in stream_arrow(other, query, _KEYS))
            for _ in _copied(connection, "keys", _KEYS.names, told):
                pass
    for name in ("keys", *(table.name for table in PARTITIONED)):
        connection.execute(sa.text(f"ANALYZE pg_temp.{name}"))
    query = """
        SELECT count(*) FROM pg_temp.evidence_observations AS ended
        WHERE object_key IS NOT NULL AND NOT EXISTS (SELECT FROM pg_temp.keys WHERE object_key = ended.object_key)
    """
    keyless: int = connection.execute(sa.text(query)).scalar_one()
    return keyless


def _create(connection: Connection, name: str, columns: str) -> None:
    connection.execute(sa.text(f"CREATE TEMPORARY TABLE {name} ({columns}) ON COMMIT DROP"))


def _copied(
    connection: Connection, name: str, columns: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Copy the rows into a temporary table, and yield them."""
    query = f"COPY pg_temp.{name} ({', '.join(columns)}) FROM STDIN (FORMAT csv)"
    with raw(connection).cursor().copy(query.encode()) as copy:
        for batch in batches:
            lines = pa.BufferOutputStream()
            csv.write_csv(batch.select(columns), lines, csv.WriteOptions(include_header=False))
            copy.write(lines.getvalue())
            yield batch
