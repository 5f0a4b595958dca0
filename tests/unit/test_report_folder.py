"""The folder of reports: what stands in it, who reads it, and what became of each file."""

from __future__ import annotations

import json
import re
import stat
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from tests.reported import AS_OF, Told, result_of, source, written
from toolkit.errors import InvalidInput, ReportError
from toolkit.operations.judge.audit import AuditResult
from toolkit.reports import (
    FORMATS,
    FileState,
    partner_reports,
    verify_files,
    write_report,
)


def test_whole_cpfs_are_for_the_owner_only(tmp_path: Path) -> None:
    open_sales = [Told("x", cpf="52998224725")]
    shown = written(result_of(open_sales, cpf_shown=True), tmp_path / "shown")
    private = {path for path in shown.iterdir() if path.name != "index.html"}  # which holds totals only
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}
    assert "holds whole CPFs" in (shown / "missing-evidence.html").read_text(encoding="utf-8")


def test_a_folder_is_called_after_its_partner_as_far_as_every_system_can_write_it(tmp_path: Path) -> None:
    names = ["Açaí & Cia", "Acai & Cia", "../x", "電力"]
    partner_reports(
        result_of([Told(name, partner=name) for name in names]), tmp_path, partial(write_report, formats=["csv"])
    )
    found = {folder.name: (folder / "missing-evidence.csv").read_text("utf-8") for folder in tmp_path.iterdir()}
    assert sorted(name[:-7] for name in found) == ["Acai_Cia", "Acai_Cia", "partner", "x"]
    for text in found.values():
        assert [name in text for name in names].count(True) == 1


def test_a_report_is_recognised_as_it_was_written(result: AuditResult, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("not ours", encoding="utf-8")
    out = written(result, tmp_path)
    assert {each.state for each in verify_files(out)} == {FileState.AS_WRITTEN}
    with (out / "missing-evidence.csv").open("a", encoding="utf-8") as file:
        file.write("\n")
    (out / "missing-evidence.json").unlink()
    (out / "missing-evidence-new.csv").touch()
    assert {each.name: each.state for each in verify_files(out)} == {
        "missing-evidence.html": FileState.AS_WRITTEN,
        "missing-evidence.xlsx": FileState.AS_WRITTEN,
        "missing-evidence.csv": FileState.CHANGED,
        "missing-evidence.json": FileState.MISSING,
        "missing-evidence-new.csv": FileState.ADDED,
    }


@pytest.mark.parametrize("embedded", [[], ["database", "bucket"]])
def test_the_manifest_names_the_services_that_were_embedded_ones(embedded: list[str], tmp_path: Path) -> None:
    out = written(result_of([Told("S-1")], given_source=source(embedded=embedded)), tmp_path, "csv")
    assert json.loads((out / "manifest.json").read_text())["embedded"] == embedded


def test_an_earlier_report_is_moved_beneath_the_folder(result: AuditResult, tmp_path: Path) -> None:
    out = written(result, tmp_path)
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.name != "index.html"}
    (out / "missing-evidence.json").write_text("mine now", encoding="utf-8")
    written(replace(result, as_of=AS_OF + timedelta(days=1)), tmp_path, "csv")
    assert sorted(path.name for path in out.iterdir()) == [
        "history",
        "index.html",
        "manifest.json",
        "missing-evidence.csv",
    ]
    (earlier,) = (out / "history").iterdir()
    assert earlier.name == "20261120T210000Z"
    kept = {path.name: path.read_bytes() for path in earlier.iterdir()}
    assert kept == before | {"missing-evidence.json": b"mine now"}
    assert {each.state for each in verify_files(out)} == {FileState.AS_WRITTEN}
    assert {each.name: each.state for each in verify_files(earlier)}["missing-evidence.json"] is FileState.CHANGED


def test_a_report_of_the_same_moment_joins_the_one_that_is_there(result: AuditResult, tmp_path: Path) -> None:
    out = written(result, tmp_path)
    (out / "missing-evidence.csv").write_text("mine now", encoding="utf-8")
    written(result, tmp_path, "csv", "pdf")
    states = {each.name: each.state for each in verify_files(out)}
    assert set(states.values()) == {FileState.AS_WRITTEN}
    assert len(states) == 5
    assert [path.read_text() for path in out.glob("history/*/*")] == ["mine now"]


def test_an_index_leads_to_all_reports_of_a_folder(result: AuditResult, tmp_path: Path) -> None:
    for days in (0, 1, 2):
        written(replace(result, as_of=AS_OF + timedelta(days=days)), tmp_path, "html", "csv")
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    links = re.findall(r'href="([^"]+[.](?:html|csv))"', page)
    assert len(links) == 6
    assert all((tmp_path / link).is_file() for link in links)
    assert page.index("22 Nov 2026") < page.index("21 Nov 2026") < page.index("20 Nov 2026")
    assert "unsafe" not in page


def test_a_failure_leaves_the_report_before(
    result: AuditResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = written(result, tmp_path)
    before = {path.name: path.read_bytes() for path in out.iterdir()}

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(FORMATS, "json", full)
    with pytest.raises(ReportError, match=r"cannot be written to .*: No space left on device"):
        written(replace(result, as_of=AS_OF + timedelta(days=1)), tmp_path)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_folder_that_cannot_be_made_is_named(result: AuditResult, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ReportError, match=r"cannot be written to .*file/reports: Not a directory"):
        written(result, tmp_path / "file" / "reports")


@pytest.mark.parametrize("formats", [["pptx"], ["html", "docx"], [], [""]])
def test_an_unknown_format_is_refused(result: AuditResult, tmp_path: Path, formats: list[str]) -> None:
    with pytest.raises(InvalidInput, match="there are html, xlsx, csv, json, pdf"):
        write_report(result, tmp_path / "out", formats)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("manifest", "complaint"),
    [
        (None, "There is no report in"),
        ("{", "is not the manifest of a report"),
        ("[]", "is not the manifest of a report"),
        ('{"files": [{"name": "../x", "sha256": ""}]}', "names files outside its folder"),
    ],
)
def test_a_folder_without_a_good_manifest_is_no_report(
    tmp_path: Path, manifest: str | None, complaint: str
) -> None:
    if manifest is not None:
        (tmp_path / "manifest.json").write_text(manifest, encoding="utf-8")
    with pytest.raises(ReportError, match=complaint):
        verify_files(tmp_path)
