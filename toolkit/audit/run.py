"""Make an audit folder: extract, judge, compare the findings, and publish what is whole.

The folder is written under the name of a draft. What PostgreSQL keeps of an audit of now (its row, and the
findings that began or ended) is committed when everything is written, and the folder is published right after;
should a process die in between, the next audit of this database finishes it.
"""

import shutil
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa
from psycopg.rows import dict_row
from sqlalchemy import Connection

from toolkit.atomic_files import PrivateFolder
from toolkit.audit.changes import audits_until
from toolkit.audit.duckdb_session import copy_to, duckdb_session
from toolkit.audit.engines import DuckdbEngine, Engine, spark_engine
from toolkit.audit.extract import NO_LONGER_NEEDED, extract
from toolkit.audit.file_findings import file_findings
from toolkit.audit.findings import find_present, note_changes, write_findings
from toolkit.audit.folder import (
    CASES,
    FACTS,
    INPUTS,
    LOOKS,
    RANK,
    TABLES,
    TO_TELL,
    TOTALS,
    UNPROVEN_SALES,
    Audit,
    AuditFacts,
    Looks,
    PartFile,
    Source,
    TablePart,
    list_audits,
    name_of,
    part_of,
)
from toolkit.audit.judge import MISSING, OUTPUTS, judgement
from toolkit.audit.observe_bucket import last_sync, listed_since
from toolkit.audit.publish import AuditPlan, drafts_of, finish_left, named, prune, publish
from toolkit.audit.reviews import AS_WRITTEN
from toolkit.audit.waivers import waivers_at
from toolkit.bucket.file_store import FolderStore, S3Store
from toolkit.contract.codes import REQUEST_OVERDUE
from toolkit.contract.contents import COVERAGES
from toolkit.contract.findings import Status
from toolkit.contract.people import mask_cpf
from toolkit.contract.service_rows import code_of
from toolkit.contract.waivers import Waiver
from toolkit.database.belonging import check_replica
from toolkit.database.connection import Database, Lock, among, raw, take
from toolkit.database.observation_clock import final_moment, wait_for
from toolkit.database.observations import ServiceReading, last_reading
from toolkit.database.service import clients
from toolkit.database.service_tables import hidden_and_copied
from toolkit.database.tables import audit_runs, new_id
from toolkit.errors import InvalidInput, NothingEvaluated
from toolkit.evidence.records import TIME_LINES, by_indexes, withdrawals_at
from toolkit.log.sealing import newest_checkpoint
from toolkit.privacy.persons import requests_at


def make_audit(
    database: Database,
    plan: AuditPlan,
    *,
    as_of: datetime | None = None,
    verified_first: bool | None = None,
    replica: Database | None = None,
) -> Audit:
    """Judge all sales as of a moment, or as of now, and publish the folder.

    It sees what was observed by then: observe the sales and sync the bucket before an audit of now. An audit of
    now is noted in ``audit.audit_runs``, and its findings in their history; one of the past only reads.

    Args:
        database: where the histories are.
        plan: where and how audits are made.
        as_of: an aware moment that is not in the future.
        verified_first: whether contents were verified before.
        replica: a streaming replica of ``database`` to extract from.

    Raises:
        NothingEvaluated: there is no sale at the moment.
        WrongService: the replica is one of another database.
        InvalidInput: ``as_of`` lies in the future or carries no offset.
        DatabaseError: the database could not be asked.
        EngineUnavailable: the engine could not judge.
    """
    made_at = database.clock()
    if as_of is not None and as_of.tzinfo is None:
        raise InvalidInput("The moment of an audit needs an offset, as in 2026-11-20T18:00-03:00.")
    if as_of is not None and as_of > made_at:
        raise InvalidInput("The moment of an audit must lie in the past.")
    if replica is not None:
        check_replica(database, replica)
    drafts = drafts_of(database, plan.store, plan.work)
    finish_left(database, plan.store, drafts, plan.copies)
    private = PrivateFolder(drafts)
    with private as draft:
        with database.transaction() if as_of is None else nullcontext() as connection:
            if connection is not None:
                take(connection, Lock.FINDING_HISTORY)
            moment = final_moment(database, as_of)
            run = None if connection is None else new_id()
            work = _Work(database, plan, draft, moment, made_at, replica, run, verified_first)
            work.make(connection)
        private.kept = as_of is None  # it is noted: where it cannot be published now, the next audit does
        audit = publish(plan.store, work.folder, plan.copies)
        private.kept = False
    since = moment - timedelta(days=plan.settings.audits_days)  # never by a clock that is ahead
    prune(plan.store, plan.settings.audits_inputs, since)
    return audit


@dataclass(frozen=True)
class _Work:
    database: Database
    plan: AuditPlan
    draft: Path
    moment: datetime
    made_at: datetime
    replica: Database | None
    run: UUID | None
    verified_first: bool | None

    @cached_property
    def folder(self) -> Path:
        """The draft of the folder; where a cluster writes into a bucket, its name is taken there at once."""
        store, folder = self.plan.store, self.draft / name_of(self.moment, list_audits(self.plan.store))
        folder.mkdir()
        if self.plan.spark_url is None or isinstance(store, FolderStore):
            return folder
        return named(store, folder, self.moment, str(self.run or self.made_at.isoformat()))

    def make(self, connection: Connection | None) -> None:
        """Write the folder, and note by ``connection`` what PostgreSQL keeps of an audit of now."""
        folder, scratch, place = self.folder, self.draft / "work", self.replica or self.database
        scratch.mkdir()
        lag = None if place is self.database else f"{place.address}, {wait_for(place, self.moment):.1f} s behind"
        with place.snapshot() as snapshot, duckdb_session(scratch, self.plan.settings.engine_memory) as session:
            extract(snapshot, self.moment, session, folder)
            of_files = file_findings(session)
            for name in NO_LONGER_NEEDED:
                session.execute(f"DROP TABLE {name}")
            reading = last_reading(snapshot, self.moment)
            source = self._source(snapshot, lag, reading)
            url = self.plan.spark_url
            with nullcontext(DuckdbEngine(session)) if url is None else spark_engine(url) as engine:
                parts = self._judge(engine)
                engine.hand_over("listed", _LISTED, session)
                engine.hand_over("unproven", UNPROVEN_SALES, session)
                [total] = engine.read(TOTALS).to_pylist()
                looks = Looks.of(engine.read(LOOKS).to_pylist())
            counts = {name: total[name] for name in ("sales", *map(str, Status))}
            coverage = {str(each): total[column] for each, column in COVERAGES.items()}
            session.execute(copy_to(MISSING, folder / "missing.parquet"))
            if not counts["sales"]:
                raise _nothing(self.run is not None, self.moment, source.database)
            raised = [] if reading is None else list(map(code_of, reading.raised))
            today = self.plan.deadlines.day_of(self.moment)
            if any(each.state == "overdue" for each in requests_at(snapshot, today, self.moment)):
                raised.append(REQUEST_OVERDUE)
            find_present(session, of_files, raised)
            note_changes(connection, session, self.moment)
            if connection is not None:
                row = {"id": self.run, "as_of": self.moment, "ran_at": self.made_at, "with_files": True}
                connection.execute(sa.insert(audit_runs), row | counts)
            audits, waivers = audits_until(snapshot, self.moment), waivers_at(snapshot, self.moment)
            before = max((each for each in audits if each < self.moment), default=None)
            write_findings(session, self.moment, folder, before, audits, waivers, self.plan.deadlines)
            write_lists(snapshot, session, self.moment, folder, of_files, waivers)
        facts = AuditFacts(
            as_of=self.moment,
            made_at=self.made_at,
            run=None if self.run is None else str(self.run),
            changes_since=before,
            verified_first=self.verified_first,
            timezone=self.plan.deadlines.timezone.key,
            counts=counts,
            coverage=coverage,
            files=looks,
            source=source,
            service=None if reading is None else reading.document(),
            parts={table: parts.get(table) or part_of(folder, table) for table in TABLES},
        )
        (folder / FACTS).write_bytes(facts.written())
        shutil.rmtree(scratch)

    def _judge(self, engine: Engine) -> dict[str, TablePart]:
        """Have the engine judge and write, and show it what it wrote; return the files of the tables."""
        folder, store, parts, base = self.folder, self.plan.store, {}, str(self.folder)
        remote = store if self.plan.spark_url is not None and isinstance(store, S3Store) else None
        if remote is not None:
            base = f"s3a{store.address.removeprefix('s3').rstrip('/')}/{folder.name}"  # as Spark calls it
        for name in INPUTS:
            parts[name] = part_of(folder, name)
            if remote is not None:
                remote.put(f"{folder.name}/{name}.parquet", folder / f"{name}.parquet")
            engine.show(name, [f"{base}/{name}.parquet"])
        for name, query in judgement().items():
            engine.write(query, f"{base}/{name}.parquet", self.moment)
            if remote is None:
                _tidy(folder / f"{name}.parquet", OUTPUTS[name])
                parts[name] = part_of(folder, name)
            else:
                parts[name] = self._part_in(remote, name)
            engine.show(name, [f"{base}/{file.name}" for file in parts[name].files])
            if remote is not None:
                [counted] = engine.read(f"SELECT count(*) AS rows FROM {name}").to_pylist()
                parts[name] = replace(parts[name], rows=counted["rows"])
        return parts

    def _part_in(self, store: S3Store, table: str) -> TablePart:
        """Return the files that an engine wrote into the bucket, of rows that are not counted yet."""
        prefix, place = f"{self.folder.name}/", f"{table}.parquet"
        names = [each.removeprefix(prefix) for each in store.names() if each.startswith(f"{prefix}{place}/")]
        own = [each for each in names if each.endswith(".parquet")]
        if not own:
            _tidy(self.draft / place, OUTPUTS[table])
            store.put(prefix + place, self.draft / place)
        return TablePart(0, tuple(PartFile(each, store.sha256(prefix + each)) for each in own or [place]))

    def _source(self, snapshot: Connection, lag: str | None, reading: ServiceReading | None) -> Source:
        signed = newest_checkpoint(snapshot, self.moment)
        embedded = {"database": self.database.embedded, "bucket": self.plan.settings.evidence_bucket is None}
        hidden, copied = hidden_and_copied(snapshot)
        return Source(
            database=self.database.address,
            embedded=tuple(name for name, is_embedded in embedded.items() if is_embedded),
            last_sync=last_sync(snapshot, self.moment),
            seal=None if signed is None else signed.root,
            listed_since=listed_since(snapshot, self.moment),
            hidden_rows=hidden,
            copied_rows=copied,
            service_changes=() if reading is None else reading.changes,
            service_notes=() if reading is None else reading.notes,
            rows_left_out=() if reading is None else reading.left_out,
            replica=lag,
        )


def _tidy(place: Path, schema: ibis.Schema) -> None:
    """Remove what an engine wrote beside its files; where there is none, write an empty one."""
    if place.is_dir():
        for other in place.iterdir():
            if other.suffix != ".parquet":
                other.unlink()
        if not any(place.iterdir()):
            place.rmdir()
    if not place.exists():
        pq.write_table(schema.to_pyarrow().empty_table(), place, compression="zstd")


def _nothing(of_now: bool, moment: datetime, database: str) -> NothingEvaluated:
    if of_now:
        return NothingEvaluated(
            "Nothing was evaluated: there is no sale in the service's table, or none that can be used or that "
            "this database user may see. Check DATABASE_URL, row level security and the statements of the service "
            "(toolkit db check); sales come into an embedded database by: toolkit sales load"
        )
    at = moment.isoformat(timespec="seconds")
    return NothingEvaluated("Nothing was evaluated: no sale had been seen by {} in {}.", at, database)


def write_lists(
    snapshot: Connection,
    session: Any,
    moment: datetime,
    folder: Path,
    of_files: list[dict[str, Any]],
    waivers: list[Waiver],
) -> None:
    """Write the tables that reports list beside the outputs.

    They name the sales of the relations ``listed``, ``concerned`` and ``unproven``.
    """
    session.execute(_REPORTED)
    withdrawn = [
        each._asdict() | {"evidence_id": str(each.evidence_id)} for each in withdrawals_at(snapshot, moment)
    ]
    asked = [
        asdict(each) | {"id": str(each.id)} for each in sorted(waivers, key=lambda each: (each.added_at, each.id))
    ]
    odd = [each | {"number": number} for number, each in enumerate(of_files)]
    rows = {"withdrawals": withdrawn, "waivers": asked, "file_findings": odd}
    rows["clients"] = _masked(snapshot, session)
    by_indexes(snapshot)
    rows["events"] = _events(snapshot, session, moment)
    session.execute(copy_to(AS_WRITTEN, folder / "reviews.parquet"))
    for name, each in rows.items():
        table = pa.Table.from_pylist(each, _LISTS[name])
        pq.write_table(table, folder / f"{name}.parquet", compression="zstd")


def _masked(snapshot: Connection, session: Any) -> list[dict[str, str]]:
    """Return the masked CPF of each client of the sales that reports list."""
    query = "SELECT DISTINCT client_id FROM reported WHERE client_id IS NOT NULL ORDER BY 1"
    ids = [each for (each,) in session.execute(query).fetchall()]
    found: dict[str, str] = {}
    for start in range(0, len(ids), 100_000):
        wanted = among(clients.c.id, map(UUID, ids[start : start + 100_000]))
        rows = snapshot.execute(sa.select(clients.c.id, clients.c.cpf).where(wanted))
        found |= {str(client_id): mask_cpf(cpf) for client_id, cpf in rows if cpf is not None}
    return [{"client_id": client_id, "cpf": found[client_id]} for client_id in sorted(found)]


def _events(snapshot: Connection, session: Any, moment: datetime) -> list[dict[str, Any]]:
    """Return the events of the records of the first sales that reports list, by sale and in their order."""
    sales = [sale_id for (sale_id,) in session.execute(_CASES).fetchall()]
    rows = raw(snapshot).cursor(binary=True, row_factory=dict_row)
    return rows.execute(TIME_LINES, {"sales": sales, "moment": moment}).fetchall()


_LISTED: Final = f"SELECT * FROM verdicts WHERE {TO_TELL}"

_REPORTED: Final = f"""
    CREATE OR REPLACE TEMP TABLE reported AS
    WITH other AS (SELECT sale_id FROM concerned UNION SELECT sale_id FROM unproven)
    SELECT sale_id, client_id, {RANK} AS rank, created_at FROM listed
    UNION ALL
    SELECT sale_id, CAST(client_id AS VARCHAR), 2, created_at
    FROM sale SEMI JOIN other USING (sale_id) ANTI JOIN listed USING (sale_id)
"""

_CASES: Final = f"""
    FROM (SELECT sale_id FROM reported ORDER BY rank, created_at, sale_id LIMIT {CASES}) ORDER BY sale_id
"""

_TIME: Final = pa.timestamp("us", "UTC")


def _texts(*names: str) -> dict[str, pa.DataType]:
    return dict.fromkeys(names, pa.string())


_LISTS: Final[Mapping[str, pa.Schema]] = {
    "withdrawals": pa.schema(
        _texts("sale_id", "partner", "evidence_id", "evidence_type", "reason", "withdrawn_by", "approved_by")
        | {"withdrawn_at": _TIME}
    ),
    "waivers": pa.schema(
        _texts("id", "sale_id", "partner", "code", "reason", "owner", "approved_by")
        | {"start": pa.date32(), "end": pa.date32(), "added_at": _TIME, "revoked_at": _TIME}
        | _texts("revoked_by", "revoked_reason")
    ),
    "file_findings": pa.schema(
        {"number": pa.int64(), "problem": pa.string()}
        | dict.fromkeys(("sale_ids", "evidence_ids", "folders"), pa.list_(pa.string()))
        | {"detail": pa.string(), "finding_ids": pa.list_(pa.string())}
    ),
    "clients": pa.schema(_texts("client_id", "cpf")),
    "events": pa.schema(_texts("sale_id", "evidence_id") | {"happened_at": _TIME, "kind": pa.string()}),
}
