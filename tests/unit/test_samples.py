"""The sample data: believable, reproducible, and telling every case of the rules."""

import re
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.support.uploaded_sales import MONDAY, add_sale
from toolkit.contract.contents import IntegrityProblem
from toolkit.contract.findings import Problem, Reason
from toolkit.contract.rules import GROUP_RULES, Evidence, EvidenceState, Sale, evaluate
from toolkit.database import tables
from toolkit.samples import story
from toolkit.samples.dataset import make_samples, read_clients, write_samples
from toolkit.samples.scenarios import DAYS, SCENARIOS

UNTOLD = {
    Problem.PAYER_UNKNOWN: tables.sales.c.is_client_financial_responsible,
    Reason.EXPIRY_UNKNOWN: tables.evidences.c.expires_at,
}
"""The codes that no sale of the sample has, by the columns that only another service may leave empty."""

OF_OTHER_TABLES = {str(Problem.TYPE_UNKNOWN), str(IntegrityProblem.KEY_DIFFERS)}
"""The codes that the contract's own tables cannot have: types are checked, and keys are chosen, by the toolkit."""


@pytest.fixture(scope="module")
def samples():
    return make_samples()


def verdict_of(scenario):
    """Return the verdict of the rules at the end of a story."""
    records = [
        Evidence(each.evidence_type, EvidenceState.WITHDRAWN if "withdrawn" in each.deeds else each.state)
        for each in scenario.attempts
        if each.has_record
    ]
    group = "E" if scenario.has("group E", 0) else "A"
    is_completed = (scenario.marked, scenario.completed) != (None, None)
    return evaluate(Sale(group, not scenario.has("other payer", 0), is_completed), records)


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_scenarios_hold_every_problem_and_every_missing_type_for_every_reason():
    problems = {problem for scenario in SCENARIOS for problem in verdict_of(scenario).problems}
    pieces = {(piece.evidence_type, piece.reason) for s in SCENARIOS for piece in verdict_of(s).missing}
    single = {each.named for rule in GROUP_RULES.values() for each in rule}
    assert problems == set(Problem) - set(UNTOLD) - OF_OTHER_TABLES
    reasons = set(Reason) - set(UNTOLD) - OF_OTHER_TABLES - {Reason.WITHDRAWN}
    assert pieces == {(kind, reason) for kind in single for reason in reasons} | {("POV", Reason.WITHDRAWN)}
    states = {attempt.state for s in SCENARIOS for attempt in s.attempts} | {EvidenceState.WITHDRAWN}
    assert states == set(EvidenceState) - set(UNTOLD)
    assert not any(column.nullable for column in UNTOLD.values())


def test_every_client_has_a_cpf_of_its_own_and_an_address_that_is_nobodys(samples):
    assert len({person["cpf"] for person in samples.clients}) == len(samples.clients) == 180
    assert any(person["cpf"].startswith("0") for person in read_clients("clients.xlsx")[0])
    assert all(person["email"] is None or person["email"].endswith("@example.com") for person in samples.clients)


def test_the_sales_that_the_readme_names_need_attention(samples):
    named = set(re.findall(r"V-2026-\d{5}", (Path(__file__).parents[2] / "README.md").read_text("utf-8")))
    assert named <= {sale.id for sale in samples.sales if verdict_of(sale.scenario).status != "compliant"}


def test_the_command_writes_the_same_folder(run, samples, tmp_path):
    write_samples(samples, folder := tmp_path / "folder with a space")
    assert run("sample", "--out", tmp_path / "out", within={}).out.strip() == str(tmp_path / "out")
    assert contents(tmp_path / "out") == contents(folder)


def test_a_story_that_broke_off_goes_on_to_its_end_also_where_other_data_had_been_audited(
    samples, database, monkeypatch
):
    add_sale(database, samples.sales[0].id, created_at=samples.sales[0].created_at)
    with database.transaction() as connection:
        for moment in samples.moment(DAYS[0]), samples.end:
            moments = {"as_of": moment, "ran_at": moment, "with_files": True}
            counts = dict.fromkeys(("sales", "compliant", "incomplete", "conflict"), 0)
            connection.execute(sa.insert(tables.audit_runs), {"id": tables.new_id(), **moments, **counts})
    told = []
    monkeypatch.setattr(story.Telling, "act", lambda _, day: told.append(day))
    monkeypatch.setattr(story.Telling, "_audit", lambda _: None)
    assert story.end_of_story(database, samples, MONDAY) == samples.end
    story.Telling(None, database, samples, None, (), None).past()
    assert told == list(DAYS[1:-1])
