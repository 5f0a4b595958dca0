"""The audit's expressions and the rules in Python give the same verdict and state, on every engine."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID, uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.conftest import SettableClock
from tests.support.audits import audited, judge_on, on_duckdb, parts_of
from tests.support.uploaded_sales import Story, day
from toolkit.audit.duckdb_session import duckdb_session
from toolkit.audit.engines import spark_engine
from toolkit.audit.judge import FILES, GIVEN, MISSING, TYPE_UNKNOWN, VERDICTS
from toolkit.contract.contents import COVERAGES, ContentProblem, Coverage
from toolkit.contract.evidence import EvidenceType, FileKind, UtilityGroup
from toolkit.contract.findings import SEPARATOR
from toolkit.contract.rules import (
    GROUP_RULES,
    Evidence,
    EvidenceState,
    Requirement,
    Sale,
    evaluate,
    evidence_state,
)
from toolkit.evidence.records import records_of

AS_OF = datetime(2026, 3, 2, 12, 0, 0, 123456, tzinfo=UTC)
MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True)
class Record:
    """An evidence record, its type perhaps one that the contract does not know, and the object of its key."""

    evidence_type: str
    expires_in: timedelta | None
    withdrawn: bool
    lies: bool | None
    """Whether the object lies in the bucket; ``False`` where it lay there before."""
    size: int
    kind: FileKind | None
    damaged: bool
    coverage: Coverage

    @property
    def evidence(self):
        state = evidence_state(
            self.evidence_type,
            size=self.size if self.lies else None,
            kind=self.kind,
            damaged=self.damaged,
            expired=None if self.expires_in is None else self.expires_in <= timedelta(0),
            vanished=self.lies is False,
            withdrawn=self.withdrawn,
        )
        return Evidence(self.evidence_type, state)

    @property
    def counts(self):
        return self.evidence.known and self.evidence.state is EvidenceState.COUNTED


records = st.builds(
    Record,
    evidence_type=st.sampled_from(
        [*EvidenceType, *EvidenceType, EvidenceType.KYC, EvidenceType.KYC, "SELFIE", "kyc"]
    ),
    expires_in=st.sampled_from([-MOMENT, timedelta(0), MOMENT, timedelta(days=1), None]),
    withdrawn=st.sampled_from([False, False, False, True]),
    lies=st.sampled_from([None, None, True, True, True, True, True, False]),
    size=st.sampled_from([5000, 5000, 5000, 5000, 1, 0]),
    kind=st.sampled_from([None, None, None, None, FileKind.PDF, FileKind.AUDIO, *FileKind]),
    damaged=st.sampled_from([False, False, False, False, False, False, True]),
    coverage=st.sampled_from(Coverage),
)
sales = st.builds(
    Sale,
    utility_group=st.sampled_from([*UtilityGroup, *UtilityGroup, "E", "a", ""]),
    is_client_financial_responsible=st.sampled_from([True, False, None]),
    completed=st.booleans(),
)
cases = st.lists(st.tuples(sales, st.lists(records, max_size=6)), min_size=30, max_size=60)
"""Sales with their records."""


def inputs(found):
    """The inputs of an audit folder that hold these cases."""
    rows = {"sales": [], "records": [], "objects": []}
    for number, (sale, of_sale) in enumerate(found):
        times = {"created_at": AS_OF, "completed_at": AS_OF if sale.completed else None}
        of = {"sale_id": f"s{number}", "partner": "Norte" if number % 2 else None}
        rows["sales"].append(asdict(sale) | of | times)
        for place, record in enumerate(of_sale):
            observation = number * 100 + place
            lies = {"object": observation if record.lies else None}
            times = {
                "requested_at": AS_OF - timedelta(days=place),
                "expires_at": None if record.expires_in is None else AS_OF + record.expires_in,
                "withdrawn_at": AS_OF if record.withdrawn else None,
            }
            own = {"record": observation, "evidence_id": str(UUID(int=observation))}
            gone = {"vanished": record.lies is False}
            rows["records"].append(asdict(record) | of | own | lies | gone | times)
            if record.lies:
                times = {"seen_at": AS_OF, "checked_at": AS_OF if record.kind else None}
                fault = {"fault": "DAMAGED" if record.damaged else None}
                rows["objects"].append(asdict(record) | lies | fault | times)
    return {name: pa.Table.from_pylist(rows[name], schema.to_pyarrow()) for name, schema in GIVEN.items()}


def judged(opened, folder, found):
    """The outputs, written by the engine as Parquet."""
    for name, rows in inputs(found).items():
        pq.write_table(rows, folder / f"{name}.parquet")
    with opened() as engine:
        judge_on(engine, folder, folder, AS_OF)
    outputs = {}
    for name, schema in {"files": FILES, "verdicts": VERDICTS}.items():
        rows = [pq.read_table(part).cast(schema.to_pyarrow()) for part in parts_of(folder, name)]
        outputs[name] = pa.concat_tables([schema.to_pyarrow().empty_table(), *rows])
    with duckdb_session() as session:
        session.register("listed", outputs["verdicts"])
        outputs["missing"] = session.sql(MISSING).to_arrow_table()
    return {name: rows.to_pylist() for name, rows in outputs.items()}


@pytest.fixture(params=["DuckDB", "Spark"])
def engine(request, tmp_path):
    if request.param == "DuckDB":
        return partial(judged, on_duckdb, tmp_path)
    request.getfixturevalue("spark_client")
    return partial(judged, partial(spark_engine, request.getfixturevalue("spark_url")), tmp_path)


def check(engine, found):
    outputs = engine(found)
    verdicts = {row["sale_id"]: row for row in outputs["verdicts"]}
    states = {row["evidence_id"]: row["state"] for row in outputs["files"]}
    assert len(verdicts) == len(outputs["verdicts"]) == len(found)
    assert len(states) == len(outputs["files"]) == sum(len(of_sale) for _, of_sale in found)
    pieces = []
    for number, (sale, of_sale) in enumerate(found):
        verdict = evaluate(sale, [record.evidence for record in of_sale])
        counted = {record.evidence_type for record in of_sale if record.counts}
        files = [record for record in of_sale if record.counts]
        standing = [place for place, each in enumerate(of_sale) if each.evidence.known and not each.withdrawn]
        pieces += [(f"s{number}", piece.evidence_type, piece.reason) for piece in verdict.missing]
        expected = {
            "utility_group": sale.utility_group,
            "completed_at": AS_OF if sale.completed else None,
            "status": verdict.status,
            "missing": SEPARATOR.join(piece.evidence_type for piece in verdict.missing),
            "reasons": SEPARATOR.join(piece.reason for piece in verdict.missing),
            "problems": SEPARATOR.join(verdict.problems),
            "counted": SEPARATOR.join(each for each in EvidenceType if each in counted),
            "oldest_request": AS_OF - timedelta(days=max(standing)) if standing else None,
            "unexamined": sum(each.kind is None for each in files),
            **{COVERAGES[each]: sum(file.coverage is each for file in files) for each in Coverage},
        }
        row = verdicts[f"s{number}"]
        assert {name: row[name] for name in expected} == expected, (sale, of_sale)
        for place, record in enumerate(of_sale):
            named = record.evidence.known or record.withdrawn
            state = record.evidence.state if named else TYPE_UNKNOWN
            assert states[str(UUID(int=number * 100 + place))] == state, record
    told = [(row["sale_id"], row["evidence_type"], row["reason"]) for row in outputs["missing"]]
    assert sorted(told) == sorted(pieces)


@settings(
    max_examples=6,  # of 30 to 60 sales each; compiling the expressions takes most of the time
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking would compile them for minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(found=cases)
def test_the_expressions_give_the_verdict_of_the_rules_also_of_others(engine, found):
    """Group A keeps the rule of the contract, which is that of every group."""
    pov, aut, contract, payer = GROUP_RULES[UtilityGroup.A]
    with pytest.MonkeyPatch.context() as changed:
        changed.setitem(GROUP_RULES, UtilityGroup.B, (pov, Requirement(aut.accepts), payer))
        changed.setitem(GROUP_RULES, UtilityGroup.C, (contract,))
        changed.setitem(GROUP_RULES, UtilityGroup.D, (Requirement((EvidenceType.AUT, EvidenceType.POV)), contract))
        check(engine, found)


def test_no_sale_at_all(engine):
    check(engine, [])


looks = st.lists(
    st.tuples(st.sampled_from(FileKind), st.none() | st.sampled_from(ContentProblem)), min_size=0, max_size=4
)


@settings(max_examples=2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=st.lists(looks, min_size=8, max_size=16))
def test_all_readings_of_a_file_agree(database, files):
    """Many sales with a file each, so that one audit reads all of them."""
    story, expected = Story(database), {}
    database.clock = SettableClock(day(20))
    for of_file in files:
        sale_id = story.sale(f"S-{uuid4()}", seen_at=day(1))
        _, key = story.record(sale_id, EvidenceType.KYC, requested_at=day(2))
        seen = story.upload(key, seen_at=day(3))
        for number, (kind, problem) in enumerate(of_file):
            story.check(seen, kind, problem=problem, at=day(4 + number))
        expected[sale_id] = evidence_state(
            EvidenceType.KYC,
            size=1000,
            kind=of_file[-1][0] if of_file else None,
            damaged=bool(of_file and of_file[-1][1]),
            expired=True,
        )
    assert {sale_id: records_of(database, sale_id)[0].state for sale_id in expected} == expected
    open_sales = set(audited(database, as_of=day(20)).rows["saleId"])
    counted = {sale_id for sale_id, state in expected.items() if state is EvidenceState.COUNTED}
    assert expected.keys() & open_sales == expected.keys() - counted
