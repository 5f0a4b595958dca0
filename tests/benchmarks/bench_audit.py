"""The audit of all sales beside hand-written SQL, the same expression over Parquet, and sales judged one by one.

Scale 1 is 400,000 sales with 1,000,000 evidence records; every tenth sale lacks something. Goals: the judging at
most 1.15 times the hand-written SQL with the same columns; an audit after every hundredth sale was touched, with
its findings, changes and trend, at most a tenth of one of all sales.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import ibis
import pyarrow.parquet as pq
import sqlalchemy as sa

from tests.benchmarks.by_hand import BY_HAND, ROWS
from tests.benchmarks.commands import server_cpu
from tests.benchmarks.made_sales import NOW, fill, touch
from tests.benchmarks.timing import line, timed
from tests.own_services import own_database
from toolkit.domain.evidence import EvidenceType, FileKind
from toolkit.domain.findings import Status
from toolkit.domain.rules import Evidence, Sale, evaluate, evidence_state
from toolkit.operations.judge.audit import missing_evidence, run_audit
from toolkit.operations.judge.audit.observed import evidences_at, objects_at, sales_at
from toolkit.operations.judge.audit.run import DEFAULT_DEADLINES
from toolkit.reports.document_json import summary
from toolkit.storage.database import Database, raw
from toolkit.storage.frames import read_arrow

SALES = 400_000
_ONE_BY_ONE = 50_000
_ROUNDS = 3
_NIGHTS = [NOW + timedelta(days=1, minutes=number) for number in range(3)]


def main(scale: float) -> None:
    """Print the measurements with their ratios."""
    with own_database() as (database, home):
        sales = max(100, round(SALES * scale))
        fill(database, sales, custody=False)
        print(f"{sales:,} sales, about {sales * 5 // 2:,} evidence records{'seconds':>14}{'sales/s':>12}  ratio")
        _judge(database, home, sales)
        _one_by_one(database, min(sales, _ONE_BY_ONE))
        _over_parquet(database, home, sales)


def _judge(database: Database, home: Path, sales: int) -> None:
    """Hand-written SQL, the expression, and the whole audit; all three must agree."""
    judged = str(ibis.to_sql(_expression(), dialect="postgres"))
    _check_same(database, judged)
    # In turn, so that both meet the same neighbours on the machine.
    rounds = [
        [timed(lambda query=query: _made(database, query)).seconds for query in (BY_HAND, judged)]  # type: ignore[misc]
        for _ in range(_ROUNDS)
    ]
    floor, ours = (min(each) for each in zip(*rounds, strict=True))
    whole = timed(lambda: run_audit(database, clock=lambda: NOW)).seconds
    line("floor: hand-written SQL", floor, sales, "1.00 floors")
    line("the expression in PostgreSQL", ours, sales, f"{ours / floor:.2f} floors (goal 1.15)")
    line("audit of all sales, the first one", whole, sales, f"{whole / floor:.2f} floors")
    _nightly(database, home, sales)


def _nightly(database: Database, home: Path, sales: int) -> None:
    """An audit after a day in which every hundredth sale was touched, beside one of all sales, both as they end.

    In both: the judgement, its totals, the findings noted and counted, the changes since the audit before, the
    trend of 30 days by partner, and all this as JSON, as ``toolkit audit --json`` prints it. In neither: the looks
    at the service and at the bucket before an audit, and the list of each finding, which is a line of its own.
    """
    touched = sales // 100
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM audit.judged_sales")  # as PostgreSQL does by itself before a night
    touch(database, touched, _NIGHTS[0])
    night = timed(lambda: _printed(database, _NIGHTS[0]), partial(server_cpu, home))
    every = timed(lambda: _printed(database, _NIGHTS[1], everything=True), partial(server_cpu, home))
    told, control = night.answer, every.answer
    of_one_night = ("asOf", "changes", "source")
    assert {**told, **{name: control[name] for name in of_one_night}} == control
    line("audit of all sales, a later one", every.seconds, sales, f"1.00, {every.cpu:.2f} CPU seconds")
    ratios = f"{night.seconds / every.seconds:.3f} (goal 0.1), {night.cpu / every.cpu:.3f} of the CPU seconds"
    line(f"audit after {touched:,} sales were touched", night.seconds, sales, ratios)
    changed = ", ".join(f"{number:,} {kind}" for kind, number in told["changes"].items() if kind != "since")
    print(f"  with {sum(told['findingCounts'].values()):,} findings, {changed}, and {len(told['trend'])} days")
    result = run_audit(database, clock=lambda: _NIGHTS[2])
    findings = timed(lambda: result.life.findings)
    line(f"a list of its {len(result.life.findings):,} findings", findings.seconds, sales)
    faults = timed(lambda: result.faults)
    line(f"a list of its {len(result.faults):,} unusable files", faults.seconds, sales)


def _printed(database: Database, now: datetime, *, everything: bool = False) -> dict[str, Any]:
    """Return what ``toolkit audit --json`` prints."""
    result = run_audit(database, clock=lambda: now, everything=everything)
    printed: dict[str, Any] = json.loads(json.dumps(summary(result, DEFAULT_DEADLINES.timezone)))
    return printed


def _check_same(database: Database, judged: str) -> None:
    """Make sure that both say the same in every column of every sale."""
    columns = ", ".join(_expression().columns)
    with database.snapshot() as connection:
        for name, query in (("judged", judged), ("by_hand", BY_HAND)):
            raw(connection).execute(f"CREATE TEMPORARY TABLE {name} ON COMMIT DROP AS {query}".encode())
        for one, other in (("judged", "by_hand"), ("by_hand", "judged")):
            differing = f"SELECT {columns} FROM {one} EXCEPT ALL SELECT {columns} FROM {other}"
            assert connection.scalar(sa.text(f"SELECT count(*) FROM ({differing}) AS differing")) == 0


def _expression() -> ibis.Table:
    return missing_evidence(sales_at(NOW), evidences_at(NOW), objects_at(NOW), NOW)


def _made(database: Database, query: str) -> None:
    """Judge into a temporary table, as the audit does."""
    with database.snapshot() as connection:
        raw(connection).execute(f"CREATE TEMPORARY TABLE judged ON COMMIT DROP AS {query}".encode())


def _one_by_one(database: Database, sales: int) -> None:
    """The peer: the rows into Python, and `evaluate` for each sale."""
    line(f"peer: one by one in Python ({sales:,})", timed(lambda: _evaluated(database, sales)).seconds, sales)


def _evaluated(database: Database, sales: int) -> dict[str, int]:
    found: dict[str, int] = dict.fromkeys(Status, 0)
    with database.snapshot() as connection:
        rows = connection.execute(sa.text(ROWS), {"sales": sales})
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
        damaged=row.damaged,
        expired=row.expires_at <= NOW,
        vanished=row.gone,
    )
    return Evidence(evidence_type, state)


def _over_parquet(database: Database, home: Path, sales: int) -> None:
    """The same expression in DuckDB, over Parquet files of the same tables."""
    duckdb = ibis.duckdb.connect()
    tables = []
    for name, table in {"s": sales_at(NOW), "e": evidences_at(NOW), "o": objects_at(NOW)}.items():
        with database.snapshot() as connection:
            sql = str(ibis.to_sql(table, dialect="postgres"))
            rows = read_arrow(connection, sql, table.schema().to_pyarrow())
        pq.write_table(rows, home / f"{name}.parquet")
        tables.append(duckdb.read_parquet(home / f"{name}.parquet"))
    expression = missing_evidence(tables[0], tables[1], tables[2], NOW)
    taken = timed(lambda: duckdb.to_pyarrow(expression.status.value_counts()))
    line("the expression in DuckDB over Parquet", taken.seconds, sales)
