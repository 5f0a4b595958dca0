"""Reports for other tools are valid by their schemas: JSON, and OSCAL assessment results."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import jsonschema_rs
import pytest

from tests.conftest import SettableClock
from tests.integration.audited import Story, day
from tests.reported import Told, result_of
from toolkit.domain.evidence import EvidenceType, FileKind
from toolkit.domain.integrity import IntegrityFinding, IntegrityProblem
from toolkit.operations.judge.audit import AuditResult, run_audit
from toolkit.operations.judge.findings.waivers import add_waiver
from toolkit.reports import write_report
from toolkit.storage.database import Database

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def audited(database: Database, clock: SettableClock) -> AuditResult:
    """An audit that has something of everything: resolved, reopened and waived findings, faults, withdrawals."""
    story = Story(database)
    story.sale("S-1", partner="Norte")
    story.file("S-1", EvidenceType.DOC_CONTRATANTE)
    sent, key = story.record("S-1", "POV", requested_at=day(3))
    story.upload(key, seen_at=day(5), gone_at=day(8))
    story.sale("S-2", utility_group="E")
    _, bad_key = story.record("S-2", "POV", requested_at=day(3))
    story.check(story.upload(bad_key, seen_at=day(3)), FileKind.AUDIO, problem="SILENT", at=day(3))
    story.withdraw(sent, at=day(9))
    for number in (4, 6, 9):
        clock.now = day(number)
        run_audit(database, clock=clock)
    given = {"code": "GROUP_UNKNOWN", "reason": "r", "owner": "ana", "approvedBy": "bia", "end": "2026-03-20"}
    add_waiver(database, given, today=day(9).date(), clock=clock)
    clock.now = day(10)
    return run_audit(database, clock=clock)


def written(result: AuditResult, out: Path, name: str) -> dict[str, Any]:
    write_report(result, out, [name])
    document: dict[str, Any] = json.loads((out / f"missing-evidence.{name}").read_text(encoding="utf-8"))
    return document


def test_the_report_is_valid_by_the_schema_that_the_package_publishes(
    audited: AuditResult, tmp_path: Path
) -> None:
    schema = json.loads(
        (files("toolkit.reports") / "templates" / "report.schema.json").read_text(encoding="utf-8")
    )
    validator = jsonschema_rs.validator_for(schema, validate_formats=True)
    full = written(audited, tmp_path, "json")
    assert {each["status"] for each in full["findings"]} >= {"open", "waived", "reopened"}
    assert full["unusableFiles"]
    assert full["withdrawals"]
    assert full["waivers"]
    odd = result_of(
        [Told("V-1", "POV"), Told("V-2", "KYC", client_id=None, partner=None)],
        file_findings=[IntegrityFinding(IntegrityProblem.KEY_OUTSIDE_LAYOUT, ("a/b.pdf",))],
    )
    for document in (
        full,
        written(odd, tmp_path, "json"),
        written(audited.for_partner("Norte"), tmp_path, "json"),
    ):
        assert [f"{each.instance_path}: {each.message}" for each in validator.iter_errors(document)] == []
    assert not validator.is_valid({**full, "sales": -1})


def test_assessment_results_are_valid_by_the_schema_of_nist_and_the_same_when_asked_again(
    audited: AuditResult, database: Database, clock: SettableClock, tmp_path: Path
) -> None:
    schema = json.loads((DATA / "oscal" / "assessment_results.schema.json").read_text(encoding="utf-8"))
    validator = jsonschema_rs.validator_for(schema)
    document = written(audited, tmp_path / "now", "oscal.json")
    assert [f"{each.instance_path}: {each.message}" for each in validator.iter_errors(document)] == []

    (outcome,) = document["assessment-results"]["results"]
    states = {each["target"]["target-id"]: each["target"]["status"] for each in outcome["findings"]}
    assert states["MISSING_POV"] == {"state": "not-satisfied", "reason": "fail"}
    assert states["GROUP_UNKNOWN"]["reason"] == "other"
    assert states["KYC_REPEATED"] == {"state": "satisfied", "reason": "pass"}
    known = {each["uuid"] for each in outcome["observations"]}
    for each in outcome["findings"]:
        assert {related["observation-uuid"] for related in each.get("related-observations", [])} <= known

    told = {each["name"]: each["value"] for each in outcome["props"]}
    assert (told["files-verified"], told["files-firstBytes"], told["embedded"]) == ("0", "1", "nothing")

    (withdrawn,) = [each for each in outcome["observations"] if each["types"] == ["withdrawal"]]
    assert withdrawn["description"] == "sent twice"
    assert {"ana", "bia"} <= {each["value"] for each in withdrawn["props"]}

    again = run_audit(database, clock=clock, as_of=audited.as_of.astimezone(ZoneInfo("Asia/Tokyo")))
    assert written(again, tmp_path / "again", "oscal.json") == document
    withdrawals = again.withdrawals.assign(reason=None, withdrawnBy=None)
    unasked = replace(again, lists=SimpleNamespace(withdrawals=withdrawals))
    document = written(unasked, tmp_path / "unasked", "oscal.json")
    assert [f"{each.instance_path}: {each.message}" for each in validator.iter_errors(document)] == []
