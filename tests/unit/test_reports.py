"""Reports from results of audits that never ran: what they say, and that nothing a sale holds can harm."""

from __future__ import annotations

import base64
import csv
import html
import json
import os
import re
import stat
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from uuid import UUID

import openpyxl
import pandas as pd
import pytest
from openpyxl.utils.escape import unescape
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject

from tests.figures import wrong_figures
from tests.pdf_validator import has_java
from tests.reported import AS_OF, FAULTS, WITHDRAWN, Told, result_of, source
from toolkit.domain.integrity import IntegrityFinding, IntegrityProblem
from toolkit.domain.waivers import Waiver, WaiverRequest
from toolkit.errors import InvalidInput, ReportError
from toolkit.language import language
from toolkit.operations.judge.audit import AuditResult
from toolkit.operations.spreadsheets.formulas import as_written
from toolkit.reports import (
    DEFAULT_FORMATS,
    FORMATS,
    FileState,
    document_pdf,
    verify_files,
    workbook,
    write_report,
)
from toolkit.reports.notices import headline, notices
from toolkit.reports.palette import COLOURS
from toolkit.reports.wording import TURNING, unturned

GOLDEN = Path(__file__).parents[1] / "data" / "report"

SALES = (
    Told("VND-1", "POV DC"),
    Told("VND-2", "POV! DC~", group="B", days=12, partner="Açaí & Cia"),
    Told("VND-3", "POV AUT? DCR?", group="C", payer=False, days=0.5, completed=True),
    Told("VND-4", "KYC POV", group="D", days=100, client_id=None, cpf=None),
    Told("VND-5", "", group="A", days=45, partner=None, unexamined=0),
    Told("VND-6", "POV DC", group="E", days=1),
    Told("VND-7", "POV DC DCR", group="C", unexamined=1),
)

TURNED = ("S\u202e01", "\u2067isolated\u2069", "line\u2028break")
"""Characters that show a text in another order, or break its line."""

NASTY = (
    "=cmd|'/c calc'!A1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\tx",
    "'=1",
    "'quoted'",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }}",
    'a,b\n"c"|d',
    "http://example.com",
)


FILE_FINDINGS = (
    IntegrityFinding(
        IntegrityProblem.CONTENT_REUSED,
        ("evidences/2026/11/02/0199c2d4-0000-7000-8000-00000000000a/Ana Lima.mp3", "evidences/2026/11/03/b/c.mp3"),
        (UUID(int=10), UUID(int=11)),
        ("VND-1", "VND-7"),
        "SHA-256 0123abcd",
    ),
    IntegrityFinding(IntegrityProblem.KEY_OUTSIDE_LAYOUT, ("Ana Lima.pdf",)),
)


@pytest.fixture
def result() -> AuditResult:
    return result_of(SALES, given_source=source(embedded=["database", "bucket"]), file_findings=FILE_FINDINGS)


def written(result: AuditResult, out: Path, *formats: str) -> Path:
    write_report(result, out, formats or DEFAULT_FORMATS)
    return out


def csv_rows(out: Path) -> list[dict[str, str]]:
    with (out / "missing-evidence.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def sheet_rows(out: Path, name: str) -> list[tuple[Any, ...]]:
    book = openpyxl.load_workbook(out / "missing-evidence.xlsx")
    return list(book[name].iter_rows(values_only=True))


class Texts(HTMLParser):
    """Collects the visible texts of a page, a line each."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.hidden += tag in {"style", "script"}

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in {"style", "script"}

    def handle_data(self, data: str) -> None:
        if not self.hidden and data.strip():
            self.found.append(" ".join(data.split()))


def texts(out: Path) -> str:
    parser = Texts()
    parser.feed((out / "missing-evidence.html").read_text(encoding="utf-8"))
    return "\n".join(parser.found) + "\n"


def cells(out: Path) -> str:
    """The cells of a workbook but its notes, a line a cell: sheet, place, kind, number format, value."""
    book = openpyxl.load_workbook(out / "missing-evidence.xlsx")
    return "".join(
        f"{sheet.title}!{cell.coordinate} {cell.data_type} {cell.number_format} {cell.value!r}\n"
        for sheet in book.worksheets[:-1]
        for row in sheet.iter_rows()
        for cell in row
        if cell.value is not None
    )


def document(out: Path) -> str:
    """The text of a PDF page by page, and how many elements of each kind its structure has."""
    reader = PdfReader(out / "missing-evidence.pdf")
    pages = [f"page {number}\n{page.extract_text()}\n" for number, page in enumerate(reader.pages, start=1)]
    kinds = Counter(structure(reader.root_object["/StructTreeRoot"]))
    return "".join([*pages, *(f"{kind} {number}\n" for kind, number in sorted(kinds.items()))])


def structure(element: Any) -> Iterator[str]:
    """The kinds of the elements of a tagged PDF, from the top."""
    element = element.get_object()
    if isinstance(element, dict):
        if "/S" in element:
            yield str(element["/S"])
        yield from structure(element.get("/K", ArrayObject()))
    elif isinstance(element, list):
        for each in element:
            yield from structure(each)


@pytest.mark.parametrize(
    "name", ["missing-evidence.csv", "missing-evidence.json", "page.txt", "cells.txt", "document.txt"]
)
def test_a_report_reads_as_it_always_did(result: AuditResult, tmp_path: Path, name: str) -> None:
    """After a wanted change: RENEW_GOLDEN=1 pytest tests/unit/test_reports.py, and look at the difference."""
    out = written(result, tmp_path, *DEFAULT_FORMATS, "pdf")
    for told, read in (("page.txt", texts), ("cells.txt", cells), ("document.txt", document)):
        (out / told).write_text(read(out), encoding="utf-8")
    if os.environ.get("RENEW_GOLDEN"):
        (GOLDEN / name).write_bytes((out / name).read_bytes())
    assert (out / name).read_text(encoding="utf-8") == (GOLDEN / name).read_text(encoding="utf-8")


def test_every_figure_is_what_the_rows_give_that_it_leads_to(result: AuditResult, tmp_path: Path) -> None:
    assert wrong_figures(written(result, tmp_path)) == []


def test_the_same_result_gives_the_same_bytes(result: AuditResult, tmp_path: Path) -> None:
    one, other = written(result, tmp_path / "one"), written(result, tmp_path / "other")
    for path in one.iterdir():
        assert path.read_bytes() == (other / path.name).read_bytes()


def test_the_workbook_holds_the_same_sales_as_the_csv_in_words(result: AuditResult, tmp_path: Path) -> None:
    out = written(result, tmp_path)
    heading, *rows = sheet_rows(out, "Sales")
    found = [dict(zip(heading, row, strict=True)) for row in rows]
    for ours, theirs in zip(found, csv_rows(out), strict=True):
        assert ours["Sale"] == theirs["saleId"]
        assert ours["Status"] == {"conflict": "in conflict"}.get(theirs["status"], theirs["status"])
        assert ours["Created"].isoformat()[:19] == theirs["createdAt"][:19]
        assert str(ours["Age, days"]) == theirs["ageDays"]
        assert ours["Contracting party pays"] is (theirs["isClientFinancialResponsible"] == "true")
        assert (ours["Completed"] is None) == (theirs["completedAt"] == "")
    assert found[0]["Missing"] == "Audio of the contracting party\nDocument of the contracting party"
    assert found[0]["Why"] == "file unusable\ncredentials expired"
    pieces = sheet_rows(out, "Missing")[1:]
    assert [row[:6] for row in pieces if row[0] == "VND-2"] == [
        ("VND-2", "B", "Audio of the contracting party", "POV", "file unusable", "UNUSABLE"),
        ("VND-2", "B", "Document of the contracting party", "DOC_CONTRATANTE", "credentials expired", "EXPIRED"),
    ]
    summary = {row[0]: row[1] for row in sheet_rows(out, "Summary")}
    assert (summary["Sales"], summary["incomplete"], summary["in conflict"]) == (7, 3, 2)


def test_a_workbook_fits_its_texts_and_its_pages(result: AuditResult, tmp_path: Path) -> None:
    long = "Comercializadora de Energia Elétrica do Norte e Nordeste Ltda. " * 3
    result = replace(result, read_rows=lambda told=result.told: told.assign(partner=long))
    book = openpyxl.load_workbook(written(result, tmp_path, "xlsx") / "missing-evidence.xlsx")
    for name in ("Sales", "Missing", "Findings about files"):
        sheet = book[name]
        assert sheet.page_setup.orientation == "landscape"
        assert sheet.sheet_properties.pageSetUpPr.fitToPage
        assert sheet.print_title_rows == "$1:$1"
        assert sheet.freeze_panes == "B2"
        assert sheet.auto_filter.ref.startswith("A1:")
        for row in sheet.iter_rows():
            for cell in row:
                if cell.data_type == "s":
                    longest = max(map(len, str(cell.value).split("\n")))
                    assert cell.alignment.wrap_text or sheet.column_dimensions[cell.column_letter].width >= longest


def test_a_workbook_tells_nothing_about_who_made_it(result: AuditResult, tmp_path: Path) -> None:
    properties = openpyxl.load_workbook(written(result, tmp_path) / "missing-evidence.xlsx").properties
    assert not properties.creator
    assert not properties.lastModifiedBy


def test_more_sales_than_a_sheet_holds_go_on_in_the_next(
    result: AuditResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbook, "SHEET_ROWS", 3)
    out = written(result, tmp_path)
    book = openpyxl.load_workbook(out / "missing-evidence.xlsx")
    assert [name for name in book.sheetnames if name.startswith("Sales")] == ["Sales", "Sales 2", "Sales 3"]
    found = [row[0] for name in ("Sales", "Sales 2", "Sales 3") for row in sheet_rows(out, name)[1:]]
    assert found == [row["saleId"] for row in csv_rows(out)]


def test_nothing_that_a_sale_holds_becomes_a_formula_or_markup(tmp_path: Path) -> None:
    told = [Told(text, partner=text, group=text[:3]) for text in NASTY]
    file_findings = [
        IntegrityFinding(IntegrityProblem.KEY_OUTSIDE_LAYOUT, (f"{text}/x",), (), (text,), text) for text in NASTY
    ]
    out = written(result_of(told, file_findings=file_findings), tmp_path)
    cells = [row[name] for row in csv_rows(out) for name in ("saleId", "partner", "utilityGroup")]
    assert not [cell for cell in cells if cell[0] in "=+-@\t\r\n"]
    undone = [re.sub(r"\A'('*[=+\-@\t\r\n])", r"\1", row["saleId"]) for row in csv_rows(out)]
    assert undone == list(NASTY)
    sheet = openpyxl.load_workbook(out / "missing-evidence.xlsx")["Sales"]
    assert [cell.value for cell in sheet["A"][1:]] == list(NASTY)
    assert {cell.data_type for cell in sheet["A"][1:]} == {"s"}
    assert not [cell for cell in sheet["A"] if cell.hyperlink]
    page = (out / "missing-evidence.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "{{ 7 * 7 }}" in page
    assert [column["cells"] for column in packed_data(out)["columns"] if column["name"] == "saleId"] == [
        list(NASTY)
    ]
    document = json.loads((out / "missing-evidence.json").read_text(encoding="utf-8"))
    assert [row["saleId"] for row in document["rows"]] == list(NASTY)
    assert [finding["saleIds"] for finding in document["fileFindings"]] == [[text] for text in NASTY]
    listed = openpyxl.load_workbook(out / "missing-evidence.xlsx")["Findings about files"]
    assert [cell.value.replace("\n", " ") for cell in listed["A"][1:]] == [
        text.replace("\n", " ") for text in NASTY
    ]
    assert {cell.data_type for cell in listed["A"][1:]} == {"s"}


def test_hostile_text_in_any_field_is_text_everywhere(tmp_path: Path) -> None:
    nasty = [text.strip() for text in (*NASTY, *TURNED, "W" * 3000, "a;b|c\r\nd\te", "x\x07\x1b[2J", "_x0041_")]
    given = {
        "evidenceId": UUID(int=1),
        "evidenceType": "POV",
        "code": "SILENT",
        "size": 1,
        "seconds": 1.0,
        "pages": 1,
    }
    times = dict.fromkeys(("since", "withdrawnAt"), pd.Timestamp(AS_OF))

    def rows(columns: Sequence[str]) -> pd.DataFrame:
        known = given | times
        return pd.DataFrame([{name: known.get(name, text) for name in columns} for text in nasty])

    made = replace(
        result_of(
            [Told(text, partner=text, group=text, client_id=text, cpf=text) for text in nasty],
            given_source=replace(source(), database=nasty[0], toolkit=nasty[7], snapshot=nasty[8], seal=nasty[9]),
            file_findings=[
                IntegrityFinding(IntegrityProblem.KEY_OUTSIDE_LAYOUT, (f"{text}/x",), (), (text,), text)
                for text in nasty
            ],
        ),
        read_faults=lambda: rows(FAULTS),
        read_withdrawals=lambda: rows(WITHDRAWN),
    )
    day = AS_OF.date()
    asked = [WaiverRequest(text, text, None, text, text, text, day, day + timedelta(days=3)) for text in nasty]
    waivers = tuple(Waiver(UUID(int=1), each, AS_OF, None, nasty[0], nasty[7]) for each in asked)
    made = replace(made, life=replace(made.life, waivers=waivers, ending=waivers))
    out = written(made, tmp_path, *FORMATS)
    assert not [cell for row in csv_rows(out) for cell in row.values() if cell[:1] and cell[0] in "=+-@\t\r"]
    assert {as_written(row["partner"]) for row in csv_rows(out)} == set(nasty)
    for waiver in json.loads((out / "missing-evidence.json").read_text(encoding="utf-8"))["waivers"]:
        assert waiver["reason"] == waiver["owner"] == waiver["approvedBy"] == waiver["saleId"] in nasty
    for name in ("missing-evidence.html", "index.html"):
        page = (out / name).read_text(encoding="utf-8")
        assert "<script>alert" not in page
        assert "<img" not in page
        assert not re.search(TURNING, re.sub(r'value="[^"]*"', "", page))
    page = html.unescape((out / "missing-evidence.html").read_bytes().decode())
    assert [text for text in nasty if unturned(text) not in page] == []
    for sheet in openpyxl.load_workbook(out / "missing-evidence.xlsx"):
        found = [cell for row in sheet.iter_rows() for cell in row]
        assert "f" not in {cell.data_type for cell in found}
        assert not [cell for cell in found if cell.hyperlink]
        if sheet.title == "Waivers":
            told = [[unescape(cell.value) for cell in row[:2]] for row in sheet.iter_rows(min_row=2)]
            assert told == [[unturned(text)] * 2 for text in nasty]
    text = "".join(page.extract_text() for page in PdfReader(out / "missing-evidence.pdf").pages)
    told = "".join(text.split()).replace("\u200b", "")
    for shown in ("<script>alert(1)</script>", r"S\u202e01", "W" * 3000, "x\u25a1\u25a1[2J"):
        assert shown in told
    for name in ("missing-evidence.json", "missing-evidence.oscal.json"):
        assert nasty[7] in json.dumps(json.loads((out / name).read_text(encoding="utf-8")))


def test_files_listed_are_told_without_their_names(result: AuditResult, tmp_path: Path) -> None:
    out = written(result, tmp_path)
    for name in ("missing-evidence.html", "missing-evidence.json"):
        text = (out / name).read_text(encoding="utf-8")
        assert "evidences/2026/11/02/0199c2d4-0000-7000-8000-00000000000a/" in text
        assert "Ana Lima" not in text
    assert [row[:2] for row in sheet_rows(out, "Findings about files")[1:]] == [
        ("VND-1, VND-7", "same file for several sales"),
        ("none", "lies outside the layout"),
    ]
    assert (
        "There are findings about files: same file for several sales (1), lies outside the layout (1)."
        in notices(result)
    )


def test_the_page_asks_for_nothing_and_runs_only_what_its_policy_names(
    result: AuditResult, tmp_path: Path
) -> None:
    page = (written(result, tmp_path) / "missing-evidence.html").read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy
    assert "default-src &#39;none&#39;" in policy[1]
    assert "unsafe" not in policy[1]
    assert not re.findall(r"""(?:src|href)=["'](?:https?:)?//""", page)
    assert not re.findall(r"\s(?:style|on\w+)=", page)


@pytest.mark.parametrize("told", [SALES, [Told("fine", "KYC")], []], ids=["sales", "no open sale", "no sale"])
def test_a_pdf_is_the_same_each_time(told: Sequence[Told], tmp_path: Path) -> None:
    one, other = (written(result_of(told), tmp_path / name, "pdf") for name in ("one", "other"))
    document = (one / "missing-evidence.pdf").read_bytes()
    assert document.startswith(b"%PDF-")
    assert document == (other / "missing-evidence.pdf").read_bytes()


def test_a_pdf_tells_all_that_is_filed_and_names_the_json_on_each_page(
    result: AuditResult, tmp_path: Path
) -> None:
    out = written(result, tmp_path, "pdf", "json")
    document = PdfReader(out / "missing-evidence.pdf")
    metadata = document.xmp_metadata.stream.get_data().decode() if document.xmp_metadata else ""
    assert re.search(r"pdfaid:part>2<.*pdfaid:conformance>A<.*pdfuaid:part>1<", metadata, re.DOTALL)
    assert document.root_object["/MarkInfo"]["/Marked"]
    pages = [page.extract_text() for page in document.pages]
    for number, text in enumerate(pages, start=1):
        assert f"page {number} of {len(pages)}" in text
        assert sha256((out / "missing-evidence.json").read_bytes()).hexdigest() in text
        assert "5ea1" * 16 in text
    told = " ".join(" ".join(pages).split())
    for text in (
        headline(result),
        *notices(result),
        "same file for several sales",
        "VND-6",
        "Where the numbers come from",
    ):
        assert text in told


def test_a_pdf_has_what_pdf_a_and_pdf_ua_demand(result: AuditResult, tmp_path: Path) -> None:
    """Without Java this is all that is looked at; Typst refuses what it knows to break the standards."""
    out = tmp_path / "pt"
    write_report(result, out, ["pdf"], language=language("pt-BR"))
    document = PdfReader(out / "missing-evidence.pdf")
    root = document.root_object
    assert root["/Lang"] == "pt-BR"
    assert root["/ViewerPreferences"]["/DisplayDocTitle"]
    assert document.metadata
    assert document.metadata.title
    assert root["/OutputIntents"][0]["/S"] == "/GTS_PDFA1"
    assert root["/OutputIntents"][0]["/DestOutputProfile"]["/N"] == 3
    assert not {"/JavaScript", "/EmbeddedFiles"} & set(root.get("/Names", {}))
    assert not {"/OpenAction", "/AA", "/AcroForm"} & set(root)
    assert not document.is_encrypted
    for page in document.pages:
        assert page["/Tabs"] == "/S"
        for font in page["/Resources"]["/Font"].values():
            font = font.get_object()
            descriptor = font["/DescendantFonts"][0].get_object()["/FontDescriptor"]
            assert {"/FontFile", "/FontFile2", "/FontFile3"} & set(descriptor)
            assert "/ToUnicode" in font
    found = Counter(structure(root["/StructTreeRoot"]))
    assert found["/H1"] == 1
    assert found["/H2"] > 3
    assert found["/Table"] > 3
    assert all("/TH " in table for table in " ".join(structure(root["/StructTreeRoot"])).split("/Table ")[1:])
    assert found["/TR"] > found["/Table"]
    assert not {"/Figure", "/Formula"} & set(found)


@pytest.mark.skipif(not has_java(), reason="No Java is installed; .ci/run installs it (default-jre-headless)")
def test_a_pdf_is_valid_by_the_validator_of_the_standards(result: AuditResult, tmp_path: Path) -> None:
    for name, told in {"pt": result, "hostile": result_of([Told(text, partner=text) for text in NASTY])}.items():
        write_report(told, tmp_path / name, ["pdf"], language=language("pt-BR"))
    broken = PdfWriter(tmp_path / "pt" / "missing-evidence.pdf")
    del broken.root_object["/Lang"], broken.root_object["/MarkInfo"]
    broken.write(tmp_path / "broken.pdf")
    paths = [*map(str, sorted(tmp_path.rglob("*.pdf")))]
    command = [sys.executable, "-m", "tests.pdf_validator", *paths]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    faults = {
        Path(path).parent.name: {name: each["failed"] for name, each in told.items()}
        for path, told in found.items()
    }
    assert faults.pop("pt") == faults.pop("hostile") == {"PDFA_2_A": [], "PDFUA_1": []}
    assert all(all(told.values()) for told in faults.values())
    assert all(each["checks"] > 10_000 for told in found.values() for each in told.values())


def test_a_pdf_takes_any_text_and_shows_a_box_for_what_its_fonts_lack(tmp_path: Path) -> None:
    texts = ["R$ 5 & $x$", "\\frac{1}{2} #eval(1)", "😀 漢字", "a\nb\x01", "x" * 100, "*a* _b_ <c> @d"]
    told = [Told(f"{text} {place}", partner=text, group=text) for place in range(20) for text in texts]
    pages = PdfReader(written(result_of(told), tmp_path, "pdf") / "missing-evidence.pdf").pages
    assert len(pages) > 3
    told_text = pages[2].extract_text()
    for text in ("R$ 5 & $x$", "\\frac{1}{2} #eval(1)", "□ □□", "*a* _b_ <c> @d"):
        assert text in told_text.replace("​", "")


def test_every_character_that_a_pdf_lets_through_has_a_glyph(tmp_path: Path) -> None:
    allowed = [chr(code) for code in range(0x20, 0x3000) if not document_pdf._UNPRINTABLE.match(chr(code))]
    written(result_of([Told("".join(allowed))]), tmp_path, "pdf")


def test_the_colours_of_the_page_are_those_of_the_other_formats() -> None:
    style = (Path(workbook.__file__).parent / "templates" / "page.css").read_text(encoding="utf-8")
    for code, colour in COLOURS.items():
        assert f"--{code.lower().replace('_', '-')}: {colour};" in style


def test_a_csv_for_excel_has_semicolons_and_a_byte_order_mark(result: AuditResult, tmp_path: Path) -> None:
    write_report(result, tmp_path, ["csv"], excel=True)
    text = (tmp_path / "missing-evidence.csv").read_bytes()
    assert text.startswith(b"\xef\xbb\xbfsaleId;utilityGroup;status;")
    read = list(csv.DictReader(text.decode("utf-8-sig").splitlines(), delimiter=";"))
    written(result, tmp_path / "programs", "csv")
    assert read == csv_rows(tmp_path / "programs")


def test_an_unknown_time_or_client_is_an_empty_cell(result: AuditResult, tmp_path: Path) -> None:
    row = next(row for row in csv_rows(written(result, tmp_path)) if row["saleId"] == "VND-4")
    assert (row["clientId"], row["cpf"], row["completedAt"], row["isClientFinancialResponsible"]) == (
        "",
        "",
        "",
        "true",
    )


def test_a_result_without_sales_is_a_report_too(tmp_path: Path) -> None:
    out = written(result_of([]), tmp_path)
    assert csv_rows(out) == []
    assert json.loads((out / "missing-evidence.json").read_text(encoding="utf-8"))["rows"] == []
    assert "No sale was known at this moment" in texts(out)
    assert len(sheet_rows(out, "Sales")) == 1


def packed_data(out: Path) -> dict[str, Any]:
    page = (out / "missing-evidence.html").read_text(encoding="utf-8")
    found = re.search(r'<script id="data" type="text/plain">([A-Za-z0-9+/=]+)</script>', page)
    assert found
    document: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(found[1]), wbits=-zlib.MAX_WBITS))
    return document


def test_the_page_holds_every_sale_and_lists_the_first_ones(
    result: AuditResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolkit.reports.web_page.STATIC_ROWS", 2)
    out = written(result, tmp_path, "html", "csv")
    page = texts(out)
    assert "This table has the first 2 of 5; the page shows all of them where its script may run." in page
    assert "VND-3" in page
    assert "VND-4" not in page
    columns = {column["name"]: column for column in packed_data(out)["columns"]}
    assert list(columns) == [*csv_rows(out)[0], "dueAt", "overdue"]
    warned = ["VND-7"]  # compliant, with a redundant document
    assert columns["saleId"]["cells"] == [row["saleId"] for row in csv_rows(out)] + warned


COMPLETE = [Told("a", "KYC"), Told("b", "POV DC")]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([], "No sale was known at this moment"),
        (COMPLETE[:1], "The one sale has the evidence it needs"),
        (COMPLETE, "All 2 sales have the evidence they need"),
        ([Told("x")], "1 of 1 sale lacks evidence"),
        ([*COMPLETE, Told("x"), Told("y")], "2 of 4 sales lack evidence"),
        ([*COMPLETE, Told("x", group="E")], "1 of 3 sales is in conflict"),
        ([*COMPLETE, Told("x"), Told("y", "KYC KYC")], "1 of 4 sales lacks evidence, 1 more is in conflict"),
    ],
)
def test_the_headline_answers_first(told: Sequence[Told], expected: str) -> None:
    assert headline(result_of(told)) == expected


def test_notices_tell_what_weakens_the_numbers(result: AuditResult) -> None:
    assert notices(result_of(COMPLETE)) == []
    assert [text.split(":")[0] for text in notices(result)] == [
        "Made on embedded services for trying out (database and bucket)",
        "1 file counts although nobody has examined it.",
        "Of 10 counted files, 9 are fully verified, 0 by their first bytes only, 1 were never looked at, "
        "0 could not be read.",
        "1 compliant sale rests on files that are not fully verified.",
        "There are findings about files",
        "1 sale without a client",
    ]
    never = notices(result_of(COMPLETE, given_source=source(synced=False)))
    assert never == ["The bucket had never been read at this moment, so no file could count."]


def test_whole_cpfs_are_for_the_owner_only(tmp_path: Path) -> None:
    open_sales = [Told("x", cpf="52998224725")]
    shown = written(result_of(open_sales, cpf_shown=True), tmp_path / "shown")
    private = {path for path in shown.iterdir() if path.name != "index.html"}  # which holds totals only
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}
    assert "holds whole CPFs" in texts(shown)


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


def test_a_workbook_tells_a_time_before_its_calendar_as_text(tmp_path: Path) -> None:
    result = result_of([Told("x")])
    result.rows.loc[0, "createdAt"] = pd.Timestamp("1899-01-01T12:00:00Z")
    row = sheet_rows(written(result, tmp_path), "Sales")[1]
    assert "1899-01-01 08:53" in row


def test_times_carry_the_offset_of_their_day(tmp_path: Path) -> None:
    # Brazil had summer time until 2019.
    summer = pd.Timestamp("2018-12-24T15:00:00.999Z")
    result = result_of([Told("x")])
    result.rows.loc[0, "createdAt"] = summer
    assert csv_rows(written(result, tmp_path))[0]["createdAt"] == "2018-12-24T13:00:00-02:00"


class Heard:
    """Progress that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int]] = []

    def begin(self, task: str, total: int | None, unit: str) -> None:
        assert (total, unit) == (100, "%")
        self.told.append((task, 0))

    def advance(self, count: int) -> None:
        task, done = self.told[-1]
        self.told[-1] = (task, done + count)

    def end(self) -> None: ...


def test_each_format_tells_its_share_while_it_is_written(
    result: AuditResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("workbook", "table_csv", "document_json"):
        monkeypatch.setattr(f"toolkit.reports.{module}.ROWS_AT_ONCE", 2)
    heard = Heard()
    write_report(result, tmp_path, ["html", "xlsx", "csv", "json", "pdf"], progress=heard)
    assert [task for task, _ in heard.told] == [f"Writing missing-evidence.{name}" for name in FORMATS][:5]
    assert all(1 <= done <= 100 for _, done in heard.told)
