"""The folder of reports: what stands in it, who reads it, and what became of each file."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import openpyxl
import pytest
from pypdf import PdfReader

from tests.support.audit_results import AS_OF, SaleEvidence, Told, evidence_of, folder_of, written
from tests.support.report_text import everything_in
from toolkit.contract.contents import IntegrityFinding, IntegrityProblem
from toolkit.contract.evidence import Withdrawal
from toolkit.errors import ReportError
from toolkit.reports import FORMATS, write_report
from toolkit.reports.reading import read_audited
from toolkit.reports.report import DEFAULT_FORMATS, Report, partner_folder


def test_a_folder_is_called_after_its_partner_as_far_as_every_system_can_write_it(tmp_path):
    names = ["Açaí & Cia", "Acai & Cia", "../x", "電力", "--rf"]
    audit = folder_of(tmp_path / "audit", [Told(name, partner=name) for name in names])
    out = tmp_path / "out"
    for name in audit.partners:
        write_report(Report(read_audited(audit.for_partner(name)), formats=["csv"]), out / partner_folder(name))
    with pytest.raises(ReportError, match="the folder of an audit, whose proof the report would replace"):
        write_report(Report(read_audited(audit), formats=["csv"]), Path(audit.folder))
    found = {folder.name: (folder / "missing-evidence.csv").read_text("utf-8") for folder in out.iterdir()}
    assert sorted(name[:-7] for name in found) == ["Acai_Cia", "Acai_Cia", "partner", "rf", "x"]
    for text in found.values():
        assert [name in text for name in names].count(True) == 1


def test_the_report_of_a_partner_says_so_and_holds_nothing_of_compliance_or_of_others(tmp_path):
    at = datetime(2026, 11, 19, tzinfo=UTC)
    sent = evidence_of(Told("S-1", "POV DC")).records
    taken = Withdrawal(sent[0].id, "S-1", "sent twice", "ana@example.com", "bia@example.com", at)
    audit = folder_of(
        tmp_path / "audit",
        [
            Told("S-1", "DC", partner="Luz do Vale"),
            Told("S-2", "POV DC", partner="Luz do Vale"),
            Told("S-3", "", partner="Norte Energia"),
        ],
        file_findings=[
            IntegrityFinding(IntegrityProblem.CONTENT_REUSED, ("a/x",), (), ("S-2", "S-3"), "SHA-256 5ea1"),
            IntegrityFinding(IntegrityProblem.BLANK_DOCUMENT, ("b/y",), (), ("S-1",)),
        ],
        evidence={"S-1": SaleEvidence((replace(sent[0], withdrawal=taken), *sent[1:]), ())},
    )
    whole, own = read_audited(audit), read_audited(audit.for_partner("Luz do Vale"))
    assert "CONTENT_REUSED" in set(whole.findings["code"])
    out = tmp_path / "out"
    paths = write_report(Report(own, formats=[*DEFAULT_FORMATS, "pdf"]), out)
    assert [path.name for path in paths] == [
        "missing-evidence-Luz_do_Vale.html",
        "missing-evidence-Luz_do_Vale.xlsx",
        "missing-evidence.csv",
        "missing-evidence.json",
        "missing-evidence-Luz_do_Vale.pdf",
    ]
    page = paths[0].read_text(encoding="utf-8")
    assert "<title>Missing evidence: Luz do Vale: 1 of 2 sales lacks evidence" in page
    first = openpyxl.load_workbook(paths[1]).worksheets[0]
    assert first["A1"].value == "Luz do Vale: 1 of 2 sales lacks evidence."
    assert "Luz do Vale" in PdfReader(paths[4]).pages[0].extract_text()
    for path in paths:
        told = everything_in(path)
        assert [hidden for hidden in ("Norte Energia", "S-3", "ana@", "bia@", "a/x") if hidden in told] == []
    document = json.loads(paths[3].read_text(encoding="utf-8"))
    assert {each["code"] for each in document["findings"]} == {"MISSING_POV", "BLANK_DOCUMENT"}
    assert [each["problem"] for each in document["fileFindings"]] == ["BLANK_DOCUMENT"]
    assert document["withdrawals"][0]["withdrawnBy"] is None


def test_a_failure_leaves_the_report_before(result, tmp_path, monkeypatch):
    out = written(result, tmp_path)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    next_day = replace(result, facts=replace(result.facts, as_of=AS_OF + timedelta(days=1)))
    monkeypatch.setitem(FORMATS, "json", Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(ReportError, match=r"cannot be written to .*: No space left on device"):
        written(next_day, tmp_path)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
