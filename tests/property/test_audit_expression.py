"""The audit's expression and the rules in Python give the same verdict for every sale, on every engine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import astuple, dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from toolkit.domain.contents import Coverage
from toolkit.domain.evidence import EvidenceType, FileKind, UtilityGroup
from toolkit.domain.findings import Verdict
from toolkit.domain.report_cells import SEPARATOR
from toolkit.domain.rules import (
    GROUP_RULES,
    Evidence,
    EvidenceState,
    Requirement,
    Sale,
    evaluate,
    evidence_state,
)
from toolkit.operations.judge.audit.engines import Engine, duckdb_engine, spark_engine
from toolkit.operations.judge.audit.expression import (
    COVERAGES,
    EVIDENCES,
    OBJECTS,
    SALES,
    missing_evidence,
)
from toolkit.storage.database import Database, raw
from toolkit.storage.frames import read_arrow

pytestmark = pytest.mark.filterwarnings(
    "ignore:fetch_arrow_table:DeprecationWarning"  # ibis 12 reads DuckDB 2 through a name of DuckDB 1
)

AS_OF = datetime(2026, 3, 2, 12, 0, 0, 123456, tzinfo=UTC)
MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True)
class Stored:
    """An object that lies in the bucket, or lay there before."""

    size: int
    kind: FileKind | None
    damaged: bool
    coverage: Coverage = Coverage.FIRST_BYTES
    gone: bool = False


@dataclass(frozen=True)
class Record:
    """An evidence record, its type perhaps one that the contract does not know."""

    evidence_type: str
    expires_in: timedelta | None
    stored: Stored | None

    def state(self) -> EvidenceState:
        return evidence_state(
            EvidenceType(self.evidence_type),
            size=self.stored.size if self.stored and not self.stored.gone else None,
            kind=self.stored.kind if self.stored else None,
            damaged=self.stored is not None and self.stored.damaged,
            expired=None if self.expires_in is None else self.expires_in <= timedelta(0),
            vanished=self.stored is not None and self.stored.gone,
        )


@dataclass(frozen=True)
class Case:
    """One sale with its records."""

    sale: Sale
    records: list[Record]

    @property
    def known(self) -> list[Evidence]:
        types = set(EvidenceType)
        return [
            Evidence(EvidenceType(record.evidence_type), record.state())
            for record in self.records
            if record.evidence_type in types
        ]

    def verdict(self) -> Verdict:
        return evaluate(self.sale, self.known)

    def counted(self) -> list[EvidenceType]:
        there = {each.evidence_type for each in self.known if each.state is EvidenceState.COUNTED}
        return [each for each in EvidenceType if each in there]

    def counted_files(self) -> list[Stored]:
        known = [record for record in self.records if record.evidence_type in set(EvidenceType)]
        return [each.stored for each in known if each.stored and each.state() is EvidenceState.COUNTED]

    def unexamined(self) -> int:
        return sum(each.kind is None for each in self.counted_files())

    def looked_at(self, coverage: Coverage) -> int:
        return sum(each.coverage is coverage for each in self.counted_files())


stored = st.builds(
    Stored,
    size=st.sampled_from([0, 1, 5000]),
    kind=st.sampled_from([None, *FileKind]),
    damaged=st.sampled_from([False, False, False, True]),
    coverage=st.sampled_from(Coverage),
    gone=st.sampled_from([False, False, False, True]),
)
good = st.sampled_from([Stored(5000, kind, False) for kind in (None, FileKind.PDF, FileKind.AUDIO)])
records = st.builds(
    Record,
    evidence_type=st.sampled_from([*EvidenceType, *EvidenceType, EvidenceType.KYC, "SELFIE", "kyc"]),
    expires_in=st.sampled_from([-MOMENT, timedelta(0), MOMENT, timedelta(days=1), None]),
    stored=st.one_of(st.none(), good, stored),
)
sales = st.builds(
    Sale,
    utility_group=st.sampled_from([*UtilityGroup, *UtilityGroup, "E", "a", ""]),
    is_client_financial_responsible=st.sampled_from([True, False, None]),
    completed=st.booleans(),
)
cases = st.lists(st.builds(Case, sales, st.lists(records, max_size=6)), min_size=30, max_size=60)


def inputs(found: list[Case]) -> tuple[pa.Table, pa.Table, pa.Table]:
    sales, evidences, objects = [], [], []
    for number, case in enumerate(found):
        completed_at = AS_OF if case.sale.completed else None
        responsible = case.sale.is_client_financial_responsible
        sales.append((f"s{number}", None, case.sale.utility_group, responsible, None, AS_OF, completed_at))
        for place, record in enumerate(case.records):
            key = f"k{number}-{place}"
            requested_at = AS_OF - timedelta(days=place)
            expires_at = None if record.expires_in is None else AS_OF + record.expires_in
            *told, gone = astuple(record.stored) if record.stored else (False,)
            evidences.append((f"s{number}", record.evidence_type, key, requested_at, expires_at, gone))
            if told and not gone:
                objects.append((key, *told))
    return table(SALES, sales), table(EVIDENCES, evidences), table(OBJECTS, objects)


def table(schema: Any, rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, schema.to_pyarrow().types, strict=True)]
    return pa.table(arrays, schema=schema.to_pyarrow())


NAMES = ("audited_in_sales", "audited_in_evidences", "audited_in_objects")
EXPRESSION_INPUT = tuple(
    ibis.table(schema, name=name) for schema, name in zip((SALES, EVIDENCES, OBJECTS), NAMES, strict=True)
)
Judging = Callable[[tuple[pa.Table, ...]], list[dict[str, Any]]]


def over_parquet(
    opened: Callable[[], AbstractContextManager[Engine]], folder: Path, given_tables: tuple[pa.Table, ...]
) -> list[dict[str, Any]]:
    with opened() as engine:
        read = []
        for name, each in zip(NAMES, given_tables, strict=True):
            pq.write_table(each, folder / f"{name}.parquet")
            read.append(engine.parquet([str(folder / f"{name}.parquet")], each.schema))
        return engine.read(missing_evidence(*read, AS_OF)).to_pylist()


def in_postgresql(database: Database, given_tables: tuple[pa.Table, ...]) -> list[dict[str, Any]]:
    found = missing_evidence(*EXPRESSION_INPUT, AS_OF)
    with database.transaction() as connection:
        driver = raw(connection)
        for expected, each in zip(EXPRESSION_INPUT, given_tables, strict=True):
            columns = ", ".join(f'"{name}" {POSTGRESQL[kind]}' for name, kind in expected.schema().items())
            driver.execute(f"CREATE TEMPORARY TABLE {expected.get_name()} ({columns}) ON COMMIT DROP")
            with driver.cursor() as cursor, cursor.copy(f"COPY {expected.get_name()} FROM STDIN") as copy:
                for row in each.to_pylist():
                    copy.write_row(list(row.values()))
        sql = str(ibis.to_sql(found, dialect="postgres"))
        return read_arrow(connection, sql, found.schema().to_pyarrow()).to_pylist()


POSTGRESQL = {
    kind.copy(nullable=nullable): name
    for kind, name in {
        ibis.dtype("string"): "text",
        ibis.dtype("boolean"): "boolean",
        ibis.dtype("int64"): "bigint",
        ibis.dtype("timestamp('UTC')"): "timestamptz",
    }.items()
    for nullable in (True, False)
}


@pytest.fixture(params=["PostgreSQL", "DuckDB", "Spark"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Judging:
    if request.param == "PostgreSQL":
        return partial(in_postgresql, request.getfixturevalue("database"))
    if request.param == "DuckDB":
        return partial(over_parquet, duckdb_engine, tmp_path)
    return partial(over_parquet, partial(spark_engine, request.getfixturevalue("spark_url")), tmp_path)


def check(engine: Judging, found: list[Case]) -> None:
    judged = {row["sale_id"]: row for row in engine(inputs(found))}
    assert len(judged) == len(found)
    for number, case in enumerate(found):
        row, verdict = judged[f"s{number}"], case.verdict()
        expected = {
            "utility_group": case.sale.utility_group,
            "completed_at": AS_OF if case.sale.completed else None,
            "status": verdict.status,
            "missing": SEPARATOR.join(piece.evidence_type for piece in verdict.missing),
            "reasons": SEPARATOR.join(piece.reason for piece in verdict.missing),
            "problems": SEPARATOR.join(verdict.problems),
            "counted": SEPARATOR.join(case.counted()),
            "unexamined": case.unexamined(),
            **{COVERAGES[each]: case.looked_at(each) for each in Coverage},
        }
        assert {name: row[name] for name in expected} == expected, case


on_each_engine = settings(
    max_examples=6,  # of 30 to 60 sales each; compiling the expression takes most of the time
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking would compile the expression for minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


@on_each_engine
@given(found=cases)
def test_the_expression_gives_the_verdict_of_the_rules(engine: Judging, found: list[Case]) -> None:
    check(engine, found)


@on_each_engine
@given(found=cases)
def test_other_rules_change_both_readings(engine: Judging, found: list[Case]) -> None:
    pov, aut, contract, payer = GROUP_RULES[UtilityGroup.A]
    with pytest.MonkeyPatch.context() as changed:
        changed.setitem(GROUP_RULES, UtilityGroup.B, (pov, Requirement(aut.accepts), payer))
        changed.setitem(GROUP_RULES, UtilityGroup.C, (contract,))
        changed.setitem(GROUP_RULES, UtilityGroup.D, (Requirement((EvidenceType.AUT, EvidenceType.POV)), contract))
        check(engine, found)


def test_no_sale_at_all(engine: Judging) -> None:
    check(engine, [])
