"""Register many clients from spreadsheets.

A file passes through once, in chunks: it is read (``tables``), judged (``checks``), and what is accepted is copied
into a temporary table while the next chunk is judged. At its end, one load after the other, those that are
registered already are taken out by an anti-join, and the rest is stored. A file is loaded in one transaction,
together with the note that it was: all of it or nothing, and never twice.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import numpy as np
import pyarrow as pa
import sqlalchemy as sa
from psycopg import sql
from sqlalchemy import Connection

from toolkit.contract.resources import QualityWarning
from toolkit.database.connection import Database, Lock, copy_rows, raw, take
from toolkit.database.service import KNOWN_BY, create_new, service_of
from toolkit.database.tables import load_batches, new_id
from toolkit.errors import AlreadyThere, InvalidField, InvalidFields, UnreadableFile
from toolkit.intake.checks import ROW, ChunkVerdict, decide
from toolkit.intake.headings import FIELDS, client_headings
from toolkit.intake.registration import refusals
from toolkit.intake.results import FileLoaded, LoadResult, Outputs
from toolkit.intake.sources import Chunk, TableSource, distinct, source_of
from toolkit.intake.tables import Table
from toolkit.language import ENGLISH, Language
from toolkit.message import Message
from toolkit.progress import Progress


def load_clients(
    database: Database,
    files: Sequence[Path],
    *,
    out: Path | None = None,
    dry_run: bool = False,
    headings: Mapping[str, str] | None = None,
    sheet: str | None = None,
    language: Language = ENGLISH,
    progress: Progress | None = None,
) -> LoadResult:
    """Register the clients in ``files``.

    Rejected and skipped rows come back as files under ``out``, by default beside their source. A ``dry_run``
    writes these, too, but nothing into the database: it looks at each file by itself. ``headings`` maps headings
    of the files to fields of the contract, before those that are known; the reasons in the workbook of rejected
    rows are in ``language``.

    Raises:
        UnreadableFile: no file can be read or has the headings; where some can, the result names the others.
        InvalidInput: what comes back cannot be written; files before the one at work are in, that one is not.
        WriteRefused: the service takes no clients; nothing was read.
        DatabaseError: the database failed; files before the one at work are in, that one is not.
    """
    if not dry_run:
        database.service.require("add_clients")
    known = client_headings(headings or {})
    options = {"headings": dict(sorted((headings or {}).items())), "sheet": sheet}
    unreadable: list[UnreadableFile] = []
    sources: list[TableSource] = []
    for file in files:
        try:
            sources.append(source_of(file))
        except UnreadableFile as error:
            unreadable.append(error)
    loaded: list[FileLoaded] = []
    taken: set[str] = set()
    for source in distinct(sources):
        try:
            table = Table(source, known, sheet)
        except UnreadableFile as error:
            unreadable.append(error)
            continue
        name = _outputs_name(source.flat_name)
        name = source.flat_name if name in taken else name  # corrected as CSV and as XLSX
        taken.add(name)
        outputs = table.outputs(out or source.path.parent, name, language)
        load = _Load(table, outputs, options, dry_run=dry_run)
        loaded.append(load.run(database, database.clock(), progress or Progress()))
    if unreadable and not loaded:
        raise unreadable[0]
    sentences = tuple(each.message for each in unreadable)
    return LoadResult(dry_run=dry_run, files=tuple(loaded), unreadable=sentences)


_OWN_FILE: Final = re.compile(r"(.+?)(?:\.([0-9]+))?\.rejected\.(?:csv|xlsx)")


def _outputs_name(source: str) -> str:
    """Return the name for the files about a source; corrected files are numbered, so that no name grows."""
    own = _OWN_FILE.fullmatch(source)
    return source if own is None else f"{own[1]}.{int(own[2] or 1) + 1}"


class _Load:
    """The load of one table; use it once.

    The ``options`` are those that change what becomes of a row; they are kept with the batch.
    """

    def __init__(self, table: Table, outputs: Outputs, options: Mapping[str, Any], *, dry_run: bool) -> None:
        self._table, self._outputs, self._options, self._dry_run = table, outputs, options, dry_run
        self._loaded = FileLoaded(source=table.source.name, layout=table.layout, understood=str(table))

    def run(self, database: Database, moment: datetime, progress: Progress) -> FileLoaded:
        """Load the file in a transaction; the files about its rows come back when that is committed."""
        with self._outputs as outputs:
            with database.transaction() as connection:
                self._load(connection, moment, progress)
            self._loaded.rejected_files, self._loaded.skipped_file = outputs.publish()
            self._loaded.notes = outputs.notes
        return self._loaded

    def _load(self, connection: Connection, moment: datetime, progress: Progress) -> None:
        """Load the file unless it was loaded already.

        Raises:
            UnreadableFile: the file changed or broke while it was read.
            InvalidInput: the files that come back cannot be written.
        """
        staging = Staging(connection, moment)
        self._stage(staging, moment, progress)
        loaded = self._loaded
        if not self._dry_run:
            take(connection, Lock.CLIENT_LOAD)
        document = json.dumps([loaded.layout.sha256, self._options], sort_keys=True)
        fingerprint = sha256(document.encode()).hexdigest()
        query = sa.select(load_batches.c.loaded_at).where(load_batches.c.fingerprint == fingerprint)
        loaded.already_loaded_at = connection.scalar(query)
        storing = loaded.already_loaded_at is None and not self._dry_run
        there, differing = staging.take_out_registered(dry_run=self._dry_run)
        if there:
            self._outputs.skip(there)
        if differing:
            loaded.add(loaded.warnings, QualityWarning.OTHER_VALUES, differing)
        if refused := staging.store() if storing else {}:
            reasons = {line: [InvalidField(ROW, reason)] for line, reason in refused.items()}
            self._reject(self._table.chunks(), reasons)  # they are read again
        good = staging.rows - len(refused)
        loaded.accepted = good if loaded.already_loaded_at is None else 0
        loaded.skipped = len(there) + good - loaded.accepted
        self._outputs.complete()
        if storing:
            self._table.check_unchanged()
        if storing and not refused:  # what the service refuses today it may take tomorrow
            self._record(connection, fingerprint, moment)

    def _stage(self, staging: "Staging", moment: datetime, progress: Progress) -> None:
        """Judge the file, and copy what is accepted into the temporary table."""
        progress.begin(Message("Loading {}", self._loaded.source), None, "rows")
        chunks = self._table.chunks()
        with ThreadPoolExecutor(2) as threads:  # the next chunk is read, and the last one copied, meanwhile
            read, copied = threads.submit(next, chunks, None), None
            while (chunk := read.result()) is not None:
                read = threads.submit(next, chunks, None)
                verdict = decide(chunk, self._table.fields, moment.date())
                self._note(chunk, verdict)
                rows = _new_clients(chunk, verdict)
                if copied is not None:
                    copied.result()
                copied = threads.submit(staging.add, rows)
                progress.advance(len(chunk))
            if copied is not None:
                copied.result()
        progress.end()

    def _record(self, connection: Connection, fingerprint: str, moment: datetime) -> None:
        """Note in the transaction of its rows that this file is loaded."""
        batch = {
            "id": new_id(),
            "fingerprint": fingerprint,
            "sha256": self._loaded.layout.sha256,
            "options": self._options,
            "source": self._loaded.source,
            "accepted": self._loaded.accepted,
            "rejected": self._loaded.rejected,
            "skipped": self._loaded.skipped,
            "loaded_at": moment,
        }
        connection.execute(sa.insert(load_batches), batch)

    def _note(self, chunk: Chunk, verdict: ChunkVerdict) -> None:
        """Count the results of a chunk, and write its rejected rows."""
        self._loaded.repairs.update(verdict.repairs)
        for warning, mask in verdict.warnings.items():
            self._loaded.add(self._loaded.warnings, warning, chunk.lines[mask].tolist())
        self._reject([chunk], {int(chunk.lines[row]): verdict.errors[row] for row in sorted(verdict.errors)})

    def _reject(self, chunks: Iterable[Chunk], rejected: Mapping[int, Sequence[InvalidField]]) -> None:
        """Write the rejected rows of these chunks, given by line, and count them and the reasons of each."""
        for chunk in chunks:
            self._outputs.reject(chunk, rejected)
        self._loaded.rejected += len(rejected)
        for line, errors in rejected.items():
            for error in errors:
                reason = Message("{}: {}", error.field, error.message)
                self._loaded.add(self._loaded.reasons, reason, [line])


def _new_clients(chunk: Chunk, verdict: ChunkVerdict) -> pa.Table:
    """Return the accepted rows of a chunk with their lines and new ids."""
    rows = pa.table({"line": chunk.lines, **verdict.values}).filter(pa.array(verdict.accepted))
    for name in ("id", "address_id"):
        rows = rows.append_column(name, _new_ids(len(rows)))
    return rows


def _new_ids(count: int) -> pa.StringArray:
    """Return ascending ids of this moment, each as 32 digits: UUIDs of version 7 with a counter of 18 bits."""
    ids = np.frombuffer(bytearray(os.urandom(count * 16)), np.uint8).reshape(count, 16)
    ids[:, :6] = np.frombuffer(new_id().bytes[:6], np.uint8)
    place = np.arange(count)
    ids[:, 6] = 0x70 | place >> 14 & 0x0F
    ids[:, 7] = place >> 6 & 0xFF
    ids[:, 8] = 0x80 | place & 0x3F
    return pa.array(np.frombuffer(ids.tobytes().hex().encode(), "S32")).cast(pa.string())


KEY: Final = KNOWN_BY["add_clients"]

_OTHERS: Final = [each.column for each in FIELDS if each.column not in KEY]
_KEY: Final = ", ".join(KEY)

_TAKE_OUT: Final = """
WITH known AS (
    SELECT DISTINCT ON ({key}) *
    FROM {clients} AS registered
    WHERE cpf IN (SELECT cpf FROM new_clients)
    ORDER BY {key}, created_at, id
), repeated AS (
    SELECT {key}, min(line) AS first FROM new_clients GROUP BY {key} HAVING count(*) > 1
), there AS (
    SELECT new.line, known.id, {differs_from_known} AS differs FROM new_clients AS new JOIN known USING ({key})
    UNION ALL
    SELECT new.line, {first}, {differs_from_earlier}
    FROM repeated
    JOIN new_clients AS new USING ({key})
    LEFT JOIN (SELECT {key}, TRUE AS is_known FROM known) AS also_known USING ({key})
    JOIN new_clients AS earlier ON earlier.line = first
    WHERE new.line > first AND is_known IS NULL
)
DELETE FROM new_clients USING there WHERE new_clients.line = there.line
RETURNING new_clients.line, there.id, there.differs
"""


def _differs_from(table: str) -> str:
    """Return the condition that a value which the other client has is another one."""
    return f"coalesce({' OR '.join(f'new.{name} <> {table}.{name}' for name in _OTHERS)}, FALSE)"


class Staging:
    """The temporary table ``new_clients``: the rows that a file wants to register, with their lines."""

    def __init__(self, connection: Connection, created_at: datetime) -> None:
        self._connection = connection
        self.rows = 0
        """The rows in the table."""
        create_new(connection, "new_clients")
        altered = sql.SQL("ALTER TABLE new_clients ADD COLUMN line bigint, ALTER created_at SET DEFAULT {}")
        raw(connection).execute(altered.format(created_at))

    def add(self, rows: pa.Table) -> None:
        """Copy rows that were accepted."""
        copy_rows(self._connection, "new_clients", rows)
        self.rows += len(rows)

    def take_out_registered(self, *, dry_run: bool) -> tuple[dict[int, UUID | None], list[int]]:
        """Take out the clients who are registered, or stand on an earlier line.

        Returns:
            Their lines with the id that each has, and the lines on which other values are other ones.
        """
        self._connection.execute(sa.text("SET LOCAL work_mem = '64MB'; ANALYZE new_clients (cpf)"))
        statement = _TAKE_OUT.format(
            key=_KEY,
            clients=service_of(self._connection).text("clients"),
            first="CAST(NULL AS uuid)" if dry_run else "earlier.id",
            differs_from_known=_differs_from("known"),
            differs_from_earlier=_differs_from("earlier"),
        )
        found = sorted(self._connection.execute(sa.text(statement)), key=lambda row: row.line)
        self.rows -= len(found)
        return {row.line: row.id for row in found}, [row.line for row in found if row.differs]

    def store(self) -> dict[int, str]:
        """Register the clients; return the lines of those that the service's own rules refuse, with the reason."""
        if not self.rows or self._refusal() is None:
            return {}
        connection = self._connection
        connection.execute(sa.text(_BY_PARTS))
        lines = list(connection.scalars(sa.text("SELECT line FROM staged_clients ORDER BY line")))
        refused: dict[int, str] = {}
        waiting = [lines]
        while waiting:
            part = waiting.pop()
            connection.execute(sa.text(_PART), {"first": str(part[0]), "last": str(part[-1])})
            reason = self._refusal()
            if reason is not None and len(part) == 1:
                refused[part[0]] = reason
            elif reason is not None:
                waiting += [part[len(part) // 2 :], part[: len(part) // 2]]
        connection.execute(sa.text("DROP TABLE staged_clients CASCADE"))
        return refused

    def _refusal(self) -> str | None:
        """Register all clients in the table, or none and return why the service refuses one of them."""
        try:
            with refusals(), raw(self._connection).transaction():
                self._connection.execute(sa.text("SET CONSTRAINTS ALL DEFERRED"))
                service_of(self._connection).run(self._connection, "add_clients")
                self._connection.execute(sa.text("SET CONSTRAINTS ALL IMMEDIATE"))
        except AlreadyThere as error:
            return error.message
        except InvalidFields as error:
            return error.invalid[0].message
        return None


_BY_PARTS: Final = """
    ALTER TABLE new_clients RENAME TO staged_clients;
    CREATE INDEX ON staged_clients (line);
    CREATE TEMPORARY VIEW new_clients AS SELECT * FROM staged_clients
    WHERE line BETWEEN CAST(current_setting('toolkit.first') AS bigint)
                   AND CAST(current_setting('toolkit.last') AS bigint)
"""
_PART: Final = "SELECT set_config('toolkit.first', :first, true), set_config('toolkit.last', :last, true)"
