"""The audit of all sales beside hand-written SQL, the same expression over Parquet, and sales judged one by one.

Scale 1 is 400,000 sales with 1,000,000 evidence records, of which every fifth has no file. Goal: the judging at
most 1.5 times the hand-written SQL that gives the same statuses.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import ibis
import pyarrow.parquet as pq
import sqlalchemy as sa

from toolkit.domain.evidence import EvidenceType, FileKind
from toolkit.domain.findings import Status
from toolkit.domain.rules import Evidence, Sale, evaluate, evidence_state
from toolkit.operations.judge.audit import AuditResult, missing_evidence, run_audit
from toolkit.operations.judge.audit.observed import evidences_at, objects_at, sales_at
from toolkit.reports import FORMATS, write_report
from toolkit.storage import embedded, schema
from toolkit.storage.database import Database, raw
from toolkit.storage.frames import read_arrow

_SALES = 400_000
_ONE_BY_ONE = 50_000
_ROUNDS = 3
_NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def main(scale: float) -> None:
    """Print the measurements with their ratios."""
    home = Path(tempfile.mkdtemp(prefix="bench-audit-", dir="/tmp"))  # open to the account of PostgreSQL
    try:
        database = Database(embedded.database_url(home), embedded=True)
        schema.upgrade(database, service_tables=True)
        sales = max(100, round(_SALES * scale))
        _fill(database, sales)
        print(f"{sales:,} sales, {sales * 5 // 2:,} evidence records{'seconds':>14}{'sales/s':>12}  ratio")
        result = _judge(database, sales)
        _one_by_one(database, min(sales, _ONE_BY_ONE))
        _over_parquet(database, home, sales)
        _reports(result, home)
        database.dispose()
    finally:
        embedded.stop(home)
        shutil.rmtree(home)


def _judge(database: Database, sales: int) -> AuditResult:
    """Hand-written SQL, the expression, and the whole audit; all three must agree."""
    judged = str(ibis.to_sql(_expression(), dialect="postgres"))
    floor, floor_counts = _timed(lambda: _statuses(database, _BY_HAND))
    ours, our_counts = _timed(lambda: _statuses(database, judged))
    whole, result = _timed(lambda: run_audit(database, clock=lambda: _NOW))
    assert floor_counts == our_counts, (floor_counts, our_counts)
    assert our_counts == {
        status: count
        for status, count in zip(Status, (result.compliant, result.incomplete, result.conflict), strict=True)
        if count
    }
    _line("floor: hand-written SQL", floor, sales, "1.00 floors")
    _line("the expression in PostgreSQL", ours, sales, f"{ours / floor:.2f} floors (goal 1.5)")
    _line("toolkit audit, rows as columns too", whole, sales, f"{whole / floor:.2f} floors")
    return result


def _expression() -> ibis.Table:
    return missing_evidence(sales_at(_NOW), evidences_at(_NOW), objects_at(_NOW), _NOW)


def _statuses(database: Database, query: str) -> dict[str, int]:
    """Judge into a temporary table, as the audit does, and count."""
    with database.snapshot() as connection:
        raw(connection).execute(f"CREATE TEMPORARY TABLE judged ON COMMIT DROP AS {query}")
        return dict(connection.execute(sa.text("SELECT status, count(*) FROM judged GROUP BY 1 ORDER BY 1")).all())


def _one_by_one(database: Database, sales: int) -> None:
    """The peer: the rows into Python, and `evaluate` for each sale."""
    seconds, _ = _timed(lambda: _evaluated(database, sales), rounds=1)
    _line(f"peer: one by one in Python ({sales:,})", seconds, sales, "")


def _evaluated(database: Database, sales: int) -> dict[str, int]:
    found: dict[str, int] = dict.fromkeys(Status, 0)
    with database.snapshot() as connection:
        rows = connection.execute(sa.text(_ROWS), {"sales": sales})
        for _, records in groupby(rows, key=attrgetter("sale_id")):
            first, *others = records
            evidences = [_evidence(each) for each in (first, *others) if each.evidence_type is not None]
            sale = Sale(first.utility_group, first.is_client_financial_responsible, first.completed_at is not None)
            found[evaluate(sale, evidences).status] += 1
    return found


def _evidence(row: Any) -> Evidence:
    evidence_type = EvidenceType(row.evidence_type)
    state = evidence_state(
        evidence_type,
        size=row.size,
        kind=FileKind(row.kind) if row.kind else None,
        damaged=row.problem is not None,
        expired=row.expires_at <= _NOW,
    )
    return Evidence(evidence_type, state)


def _over_parquet(database: Database, home: Path, sales: int) -> None:
    """The same expression in DuckDB, over Parquet files of the same tables."""
    duckdb = ibis.duckdb.connect()
    tables = []
    for name, table in {"s": sales_at(_NOW), "e": evidences_at(_NOW), "o": objects_at(_NOW)}.items():
        with database.snapshot() as connection:
            sql = str(ibis.to_sql(table, dialect="postgres"))
            rows = read_arrow(connection, sql, table.schema().to_pyarrow())
        pq.write_table(rows, home / f"{name}.parquet")
        tables.append(duckdb.read_parquet(home / f"{name}.parquet"))
    expression = missing_evidence(tables[0], tables[1], tables[2], _NOW)
    seconds, _ = _timed(lambda: duckdb.to_pyarrow(expression.status.value_counts()))
    _line("the expression in DuckDB over Parquet", seconds, sales, "")


def _reports(result: AuditResult, home: Path) -> None:
    for name in FORMATS:
        seconds, _ = _timed(lambda name=name: write_report(result, home / "out", [name]), rounds=1)  # type: ignore[misc]
        _line(f"report as {name}, {result.open:,} sales", seconds, result.open, "")


def _timed(work: Callable[[], Any], rounds: int = _ROUNDS) -> tuple[float, Any]:
    """The median of some rounds, and what the last one gave."""
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        answer = work()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds), answer


def _line(name: str, seconds: float, count: int, ratio: str) -> None:
    print(f"{name:46}{seconds:>8.2f}{count / seconds:>12,.0f}  {ratio}", flush=True)


def _fill(database: Database, sales: int) -> None:
    """Made-up sales: all groups and types, files of the right kind and some that are not, some unexamined."""
    with database.raw() as connection:
        connection.execute(_DATA.replace(":sales", str(sales)).encode())
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM ANALYZE")


_DATA = """
    SELECT setseed(0.5);
    INSERT INTO sales (id, utility_group, is_client_financial_responsible, partner, created_at, completed_at)
    SELECT 'S-' || i, (ARRAY['A', 'B', 'C', 'D'])[1 + i % 4], i % 3 <> 0, 'partner ' || i % 20,
           timestamptz '2026-11-20' - i % 200 * interval '1 day',
           CASE WHEN i % 5 = 0 THEN timestamptz '2026-11-20' END
    FROM generate_series(1, :sales) AS i;
    INSERT INTO evidences (id, sale_id, file_name, file_format, type, evidence_type, object_key, requested_by,
                           requested_at, expires_at)
    SELECT gen_random_uuid(), 'S-' || 1 + i % :sales, 'file', 'x', 'x',
           (ARRAY['POV', 'POV', 'POV', 'DOC_CONTRATANTE', 'DOC_CONTRATANTE', 'DOC_CONTRATANTE', 'AUT',
                  'DOC_RESPONSAVEL_FINANCEIRO', 'DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO', 'KYC'])
           [1 + (random() * 9)::int],
           'evidences/2026/11/20/' || gen_random_uuid() || '/file', 'bench',
           timestamptz '2026-11-20' - i % 50 * interval '1 day',
           timestamptz '2026-11-20' + i % 2 * interval '2 days'
    FROM generate_series(1, :sales * 5 / 2) AS i;
    INSERT INTO audit.sale_observations (sale_id, client_id, utility_group, is_client_financial_responsible,
                                         partner, created_at, completed_at, seen_at)
    SELECT id, client_id, utility_group, is_client_financial_responsible, partner, created_at, completed_at,
           '2026-11-20' FROM sales;
    INSERT INTO audit.evidence_observations (evidence_id, sale_id, evidence_type, type, object_key, requested_at,
                                             expires_at, seen_at)
    SELECT id, sale_id, evidence_type, type, object_key, requested_at, expires_at, '2026-11-20' FROM evidences;
    INSERT INTO audit.object_observations (key, size, etag, last_modified, seen_at)
    SELECT object_key, 1000, 'etag', requested_at, '2026-11-20' FROM evidences WHERE random() < 0.8;
    INSERT INTO audit.content_checks (observation_id, kind, problem, checked_at)
    SELECT seen.id,
           CASE WHEN random() < 0.02 THEN 'other' WHEN evidence_type IN ('POV', 'AUT') THEN 'audio' ELSE 'pdf' END,
           CASE WHEN random() < 0.01 THEN 'DAMAGED' END, '2026-11-20'
    FROM audit.object_observations AS seen JOIN evidences ON object_key = key WHERE random() < 0.97;
"""

_OBSERVED = """
    found AS (
        SELECT records.sale_id, records.evidence_type, records.expires_at, seen.size, checks.kind, checks.problem
        FROM evidences AS records
        LEFT JOIN audit.object_observations AS seen
            ON seen.key = records.object_key AND seen.seen_at <= '2026-11-20T12:00Z'
            AND (seen.gone_at IS NULL OR seen.gone_at > '2026-11-20T12:00Z')
        LEFT JOIN audit.content_checks AS checks
            ON checks.observation_id = seen.id AND checks.checked_at <= '2026-11-20T12:00Z'
        WHERE records.requested_at <= '2026-11-20T12:00Z'
          AND NOT EXISTS (SELECT FROM audit.withdrawals WHERE evidence_id = records.id)
    )
"""

_ROWS = f"""
    WITH {_OBSERVED}
    SELECT sales.id AS sale_id, utility_group, is_client_financial_responsible, completed_at, found.*
    FROM (SELECT * FROM sales ORDER BY id LIMIT :sales) AS sales LEFT JOIN found ON found.sale_id = sales.id
    ORDER BY 1
""".replace("found.*", "evidence_type, expires_at, size, kind, problem")

_BY_HAND = f"""
    WITH {_OBSERVED},
    counted AS (
        SELECT sale_id,
               count(*) FILTER (WHERE good AND evidence_type = 'KYC') AS kyc,
               count(*) FILTER (WHERE good AND evidence_type <> 'KYC') AS others,
               min(rank) FILTER (WHERE evidence_type = 'POV') AS pov,
               min(rank) FILTER (WHERE evidence_type = 'AUT') AS aut,
               min(rank) FILTER (WHERE evidence_type IN (
                   'DOC_CONTRATANTE', 'DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO')) AS contract,
               min(rank) FILTER (WHERE evidence_type IN (
                   'DOC_RESPONSAVEL_FINANCEIRO', 'DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO')) AS payer
        FROM found
        CROSS JOIN LATERAL (SELECT coalesce(
            size > 0 AND problem IS NULL
            AND (kind IS NULL OR kind = CASE WHEN evidence_type IN ('POV', 'AUT') THEN 'audio' ELSE 'pdf' END),
            false) AS good) AS usable
        CROSS JOIN LATERAL (SELECT CASE WHEN good THEN 0 WHEN size IS NOT NULL THEN 1
                                        WHEN expires_at > '2026-11-20T12:00Z' THEN 2 ELSE 3 END AS rank) AS ranked
        GROUP BY sale_id
    ),
    lacking AS (
        SELECT sales.*, kyc, others,
               utility_group NOT IN ('A', 'B', 'C', 'D') OR (kyc > 0 AND others > 0) OR kyc > 1 AS conflict,
               CASE WHEN coalesce(pov, 4) > 0 THEN 'POV' END AS pov,
               CASE WHEN NOT is_client_financial_responsible AND coalesce(aut, 4) > 0 THEN 'AUT' END AS aut,
               CASE WHEN coalesce(contract, 4) > 0 THEN 'DOC_CONTRATANTE' END AS contract,
               CASE WHEN NOT is_client_financial_responsible AND coalesce(payer, 4) > 0
                    THEN 'DOC_RESPONSAVEL_FINANCEIRO' END AS payer
        FROM audit.sale_observations AS sales LEFT JOIN counted USING (sale_id)
        WHERE seen_at <= '2026-11-20T12:00Z' AND (gone_at IS NULL OR gone_at > '2026-11-20T12:00Z')
    )
    SELECT sale_id, utility_group, partner, created_at, completed_at,
           CASE WHEN conflict THEN 'conflict'
                WHEN coalesce(kyc, 0) = 0 AND coalesce(pov, aut, contract, payer) IS NOT NULL THEN 'incomplete'
                ELSE 'compliant' END AS status,
           concat_ws('|', pov, aut, contract, payer) AS missing
    FROM lacking
"""
