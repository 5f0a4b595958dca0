"""Reports from results of audits of made-up sales: what they say, and that nothing a sale holds can harm."""

import html
import json
import os
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from unittest.mock import Mock
from uuid import UUID

import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
from openpyxl.utils.escape import unescape
from pypdf import PdfReader

from tests.support.audit_results import (
    AS_OF,
    FAULTS,
    NASTY,
    SALES,
    TURNED,
    WITHDRAWN,
    Told,
    csv_rows,
    evidence_of,
    folder_of,
    result_of,
    sheet_rows,
    source,
    written,
)
from tests.support.report_figures import everything_in, packed_data
from toolkit.audit.folder import LastSync, open_audit
from toolkit.contract.contents import IntegrityProblem
from toolkit.contract.findings import file_finding
from toolkit.contract.service_rows import FLAWS, ServiceChange
from toolkit.contract.waivers import Waiver
from toolkit.errors import ReportError, UnreadableFile
from toolkit.intake import sources
from toolkit.language import language
from toolkit.reports import FORMATS, pdf, spreadsheets, write_report
from toolkit.reports.notices import headline, notices
from toolkit.reports.reading import read_audited, uncounted
from toolkit.reports.report import DEFAULT_FORMATS, Report, partner_folder
from toolkit.reports.wording import TURNING, escape_bidi

GOLDEN = Path(__file__).parents[1] / "data" / "report"

FILE_FINDINGS = (
    file_finding(
        IntegrityProblem.CONTENT_REUSED,
        ("evidences/2026/11/02/0199c2d4-0000-7000-8000-00000000000a/Ana Lima.mp3", "evidences/2026/11/03/b/c.mp3"),
        (UUID(int=10), UUID(int=11)),
        ("VND-1", "VND-7"),
        "SHA-256 0123abcd",
    ),
    file_finding(IntegrityProblem.KEY_OUTSIDE_LAYOUT, ("Ana Lima.pdf",)),
)


@pytest.fixture
def result():
    return result_of(SALES, given_source=source(embedded=["database", "bucket"]), file_findings=FILE_FINDINGS)


def test_a_report_reads_as_it_always_did(result, tmp_path):
    """After a wanted change: RENEW_GOLDEN=1 pytest tests/unit/test_reports.py, and look at the difference."""
    text = (written(result, tmp_path, "json") / "missing-evidence.json").read_bytes()
    if os.environ.get("RENEW_GOLDEN"):
        (GOLDEN / "missing-evidence.json").write_bytes(text)
    assert text == (GOLDEN / "missing-evidence.json").read_bytes()


def test_the_same_result_gives_the_same_bytes(result, tmp_path):
    one, other = (written(result, tmp_path / name, *FORMATS) for name in ("one", "other"))
    for path in one.iterdir():
        assert path.read_bytes() == (other / path.name).read_bytes(), path.name


def test_the_workbook_holds_the_same_sales_as_the_csv_in_words(result, tmp_path):
    out = written(result, tmp_path)
    pays = {"true": "yes", "false": "no"}
    heading, *rows = sheet_rows(out, "Sales")
    found = [dict(zip(heading, row, strict=True)) for row in rows]
    for ours, theirs in zip(found, csv_rows(out), strict=True):
        assert ours["Sale"] == theirs["saleId"]
        assert ours["Status"] == {"conflict": "in conflict"}.get(theirs["status"], theirs["status"])
        assert ours["Created"].isoformat()[:19] == theirs["createdAt"][:19]
        assert str(ours["Age, days"]) == theirs["ageDays"]
        assert ours["Contracting party pays"] == pays[theirs["isClientFinancialResponsible"]]
        assert (ours["Completed"] is None) == (theirs["completedAt"] == "")
    [second] = [row for row in found if row["Sale"] == "VND-2"]
    assert second["Missing"] == "Audio of the contracting party\nDocument of the contracting party"
    assert second["Why"] == "file unusable\ncredentials expired"
    assert (second["Who acts"], second["Waived findings"]) == ("Açaí & Cia", 0)
    assert second["Next deadline"] > second["Created"]
    sheet = openpyxl.load_workbook(out / "missing-evidence.xlsx")["Sales"]
    [row] = [row[0].row for row in sheet.iter_rows() if row[0].value == "VND-2"]
    assert sheet.row_dimensions[row].height == 30  # two lines, also where a program does not fit rows itself
    pieces = sheet_rows(out, "Missing")[1:]
    assert [row[:6] for row in pieces if row[0] == "VND-2"] == [
        ("VND-2", "B", "Audio of the contracting party", "POV", "file unusable", "UNUSABLE"),
        ("VND-2", "B", "Document of the contracting party", "DOC_CONTRATANTE", "credentials expired", "EXPIRED"),
    ]


def test_more_sales_than_a_sheet_holds_go_on_in_the_next(result, tmp_path, monkeypatch):
    monkeypatch.setattr(spreadsheets, "SHEET_ROWS", 3)
    out = written(result, tmp_path)
    book = openpyxl.load_workbook(out / "missing-evidence.xlsx")
    assert [name for name in book.sheetnames if name.startswith("Sales")] == ["Sales", "Sales 2", "Sales 3"]
    found = [row[0] for name in ("Sales", "Sales 2", "Sales 3") for row in sheet_rows(out, name)[1:]]
    assert found == [row["saleId"] for row in csv_rows(out)]


def waiver(code, sale_id, text, added, approved):
    day = AS_OF.date()
    asked = (code, sale_id, None, text, text, text, day, day + timedelta(days=3))
    return Waiver(*asked, UUID(int=1), AS_OF, None, added, approved)


def test_hostile_text_in_any_field_is_text_everywhere(tmp_path):
    odd = ("W" * 3000, "a;b|c\r\nd\te", "x\x07\x1b[2J", "_x0041_", "😀 漢字")
    commands = ("R$ 5 & $x$", "\\frac{1}{2} #eval(1)", "*a* _b_ <c> @d Sa\u0303o")  # of programs that set pages
    nasty = [text.strip() for text in (*NASTY, *TURNED, *odd, *commands)]
    known = {"evidenceId": UUID(int=1), "evidenceType": "POV", "code": "SILENT"}
    known |= dict.fromkeys(("size", "seconds", "pages"), 1)
    known |= dict.fromkeys(("since", "withdrawnAt"), pd.Timestamp(AS_OF))

    def rows(columns):
        return pd.DataFrame([{name: known.get(name, text) for name in columns} for text in nasty])

    names, said = ("database", "replica", "rules", "toolkit", "seal"), (*nasty[:3], nasty[7], nasty[9])
    outside = IntegrityProblem.KEY_OUTSIDE_LAYOUT
    made = result_of(
        [
            Told(text, partner=text, group=text, client_id=text, cpf=text, days=99 - place)
            for place, text in enumerate(nasty)
        ],
        given_source=replace(
            source(), **dict(zip(names, said, strict=True)), last_sync=LastSync(AS_OF, nasty[6], nasty[3])
        ),
        file_findings=[file_finding(outside, (f"{text}/x",), (), (text,), text) for text in nasty],
    )
    waivers = tuple(waiver(text, text, text, nasty[0], nasty[7]) for text in nasty)
    made = replace(made, faults=rows(FAULTS), withdrawals=rows(WITHDRAWN), waivers=waivers)
    out = written(made, tmp_path, *FORMATS)
    assert not [cell for row in csv_rows(out) for cell in row.values() if cell[:1] and cell[0] in "=+-@\t\r\n"]
    for name in ("saleId", "partner"):
        shown = pa.array([row[name] for row in csv_rows(out)])
        assert sorted(sources.unescape(shown).to_pylist()) == sorted(nasty)
    data = json.loads((out / "missing-evidence.json").read_text(encoding="utf-8"))
    assert [row["saleId"] for row in data["rows"]] == nasty
    assert [finding["saleIds"] for finding in data["fileFindings"]] == [[text] for text in nasty]
    for each in data["waivers"]:
        assert each["reason"] == each["owner"] == each["approvedBy"] == each["saleId"] in nasty
    raw = (out / "missing-evidence.html").read_bytes().decode()
    assert "<script>alert" not in raw
    assert "<img" not in raw
    assert not re.search(TURNING, re.sub(r'value="[^"]*"', "", raw))
    assert [text for text in nasty if escape_bidi(text) not in html.unescape(raw)] == []
    [packed] = [each["cells"] for each in packed_data(raw)["columns"] if each["name"] == "saleId"]
    assert packed == nasty
    for sheet in openpyxl.load_workbook(out / "missing-evidence.xlsx"):
        found = [cell for row in sheet.iter_rows() for cell in row]
        assert "f" not in {cell.data_type for cell in found}
        if sheet.title == "Sales":
            assert [unescape(cell.value) for cell in sheet["A"][1:]] == [escape_bidi(text) for text in nasty]
        assert not [cell for cell in found if cell.hyperlink]
        if sheet.title == "Waivers":
            told = [[unescape(cell.value) for cell in row[:2]] for row in sheet.iter_rows(min_row=2)]
            assert told == [[escape_bidi(text)] * 2 for text in nasty]
    text = "".join(page.extract_text() for page in PdfReader(out / "missing-evidence.pdf").pages)
    told = "".join(text.split()).replace("\u200b", "")
    shown = ("<script>alert(1)</script>", r"S\u202e01", "W" * 3000, "x\u25a1\u25a1[2J", "\u25a1\u25a1\u25a1")
    for each in (*shown, "R$5&$x$", "\\frac{1}{2}#eval(1)", "*a*_b_<c>@dS\u00e3o"):
        assert each in told


def test_files_listed_are_told_without_their_names(result, tmp_path):
    out = written(result, tmp_path)
    text = (out / "missing-evidence.html").read_text(encoding="utf-8")
    assert "evidences/2026/11/02/0199c2d4-0000-7000-8000-00000000000a/" in text
    assert "Ana Lima" not in text
    assert [row[:2] for row in sheet_rows(out, "Findings about files")[1:]] == [
        ("VND-1, VND-7", "same file for several sales"),
        ("none", "lies outside the layout"),
    ]
    told = "There are findings about files: same file for several sales (1), lies outside the layout (1)."
    assert told in notices(Report(result))


def test_the_page_asks_for_nothing_and_runs_only_what_its_policy_names(result, tmp_path):
    page = (written(result, tmp_path) / "missing-evidence.html").read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy
    assert "default-src &#39;none&#39;" in policy[1]
    assert "unsafe" not in policy[1]
    assert not re.findall(r"""(?:src|href)=["'](?:https?:)?//""", page)
    assert not re.findall(r"\s(?:style|on\w+)=", page)


def test_a_result_without_sales_is_a_report_too(tmp_path):
    out = written(result_of([]), tmp_path, *FORMATS)
    assert len(PdfReader(out / "missing-evidence.pdf").pages) > 0
    assert csv_rows(out) == []
    assert json.loads((out / "missing-evidence.json").read_text(encoding="utf-8"))["rows"] == []
    assert "No sale was known at this moment" in (out / "missing-evidence.html").read_text(encoding="utf-8")
    assert len(sheet_rows(out, "Sales")) == 1


def test_the_page_holds_every_sale_and_lists_the_first_ones(result, tmp_path, monkeypatch):
    monkeypatch.setattr("toolkit.reports.page.STATIC_ROWS", 2)
    out = written(result, tmp_path, "html", "csv")
    whole = (out / "missing-evidence.html").read_text(encoding="utf-8")
    page = whole.partition('id="sales"')[2]
    assert "This table has the first 2 of 5; the page shows all of them where its script may run." in page
    assert re.findall('<tr id="sale=(.*?)">', page) == ["VND-3", "VND-4"]
    packed = packed_data(whole)
    columns = {column["name"]: column for column in packed["columns"]}
    assert packed["open"] == 5
    assert list(columns) == [*csv_rows(out)[0], "dueAt", "overdue", "open", "critical", "waived", "owners"]
    listed = ["VND-1", "VND-7"]  # compliant: a finding about a file, a redundant document
    assert columns["saleId"]["cells"] == [row["saleId"] for row in csv_rows(out)] + listed


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
def test_the_headline_answers_first(told, expected):
    assert headline(Report(result_of(told))) == expected


def test_notices_tell_what_weakens_the_numbers(result):
    assert notices(Report(result_of(COMPLETE))) == ["All 3 counted files are fully verified."]
    assert result_of([*COMPLETE, Told("c", "KYC", completed=True)]).compliant_not_completed == 2
    assert [text.split(":")[0] for text in notices(Report(result))] == [
        "Made on embedded services for trying out (database and bucket)",
        "1 file counts although nobody has examined it.",
        "Of 10 counted files, 9 are fully verified, 0 by their first bytes only, 1 were never looked at, "
        "0 could not be read.",
        "1 compliant sale rests on files that are not fully verified.",
        "There are findings about files",
        "1 sale without a client",
    ]
    never = notices(Report(result_of(COMPLETE, given_source=source(synced=False))))
    assert never[0] == "The bucket had never been read at this moment, so no file could count."
    facts = replace(result.facts, made_at=result.facts.as_of - timedelta(days=400))
    assert "A clock is or was wrong" in notices(Report(replace(result, facts=facts)))[1]


@pytest.mark.parametrize("wrong", [{"madeAt": "2026-11-30T00:00:00"}, {"timezone": "Nowhere"}])
def test_an_audit_whose_times_cannot_be_told_is_refused(wrong, tmp_path):
    audit = folder_of(tmp_path, COMPLETE)
    (tmp_path / "audit.json").write_text(json.dumps(json.loads(audit.facts.written()) | wrong), "utf-8")
    with pytest.raises(UnreadableFile, match="was not written by toolkit audit"):
        open_audit(tmp_path)


def test_each_change_of_the_service_is_told_in_the_language_of_the_report():
    values = {ServiceChange.JUMPED: (FLAWS["salesWithoutId"].format(1200).removesuffix("."), 0)}
    numbers = dict.fromkeys((ServiceChange.SALES_CHANGED, ServiceChange.RECORDS_CHANGED), (1200, 2000))
    told = [change.format(*(values | numbers).get(change, "abcd")) for change in ServiceChange]
    changed = result_of(COMPLETE, given_source=replace(source(), service_changes=tuple(told)))
    assert notices(Report(changed))[: len(told)] == told
    of_partner = uncounted(changed.facts.source).service_changes
    assert of_partner == tuple(text for text in told if "1,200" not in text)
    spoken = notices(Report(changed, language=language("pt-BR")))[: len(told)]
    assert [text for text in spoken if " the " in text or "{" in text] == []
    assert set(spoken).isdisjoint(told)
    assert "Vendas sem id, postas de lado: 1.200; 0 na última leitura." in spoken
    assert "De 2.000 vendas, 1.200 são lidas de outro modo que na última leitura." in spoken
    assert "A coluna a da tabela b é c; era d." in spoken


def test_times_carry_the_offset_of_their_day(tmp_path):
    # Brazil had summer time until 2019.
    result = result_of([Told("x")])
    result.rows.loc[0, "createdAt"] = pd.Timestamp("2018-12-24T15:00:00.999Z")
    assert csv_rows(written(result, tmp_path))[0]["createdAt"] == "2018-12-24T13:00:00-02:00"


def test_the_filter_of_partners_sorts_accents_as_people_do(tmp_path):
    names = ["Ação", "Água", "energia", "Éolo", "Zeta"]
    sales = [Told(f"S-{place}", "POV", partner=name) for place, name in enumerate(reversed(names))]
    page = (written(result_of(sales), tmp_path, "html") / "missing-evidence.html").read_text(encoding="utf-8")
    [choices] = re.findall(r'<select name="partner">(.*?)</select>', page, re.DOTALL)
    assert [each for each in re.findall(r">([^<]+)</option>", choices) if each in names] == names


def test_a_partner_acts_under_one_name_and_the_first_twelve_are_told(tmp_path):
    sales = [Told(f"S-{place}", "POV", partner=f"Luz {place}|Cia") for place in range(20)]
    out = written(result_of(sales), tmp_path, "html", "xlsx")
    page = (out / "missing-evidence.html").read_text(encoding="utf-8")
    [choices] = re.findall(r'<select name="owner">(.*?)</select>', page, re.DOTALL)
    shown = re.search(r'<dl class="acting">.*?</dl>', page, re.DOTALL)[0]
    [summary] = [row[0] for row in sheet_rows(out, "Summary") if str(row[0]).startswith("Who acts")]
    assert [text.count("/Cia") for text in (choices, shown, summary)] == [40, 12, 12]
    assert [text.count("and 8 more") for text in (shown, summary)] == [1, 1]


@pytest.mark.parametrize("code", ["en", "pt-BR"])
def test_columns_of_a_workbook_are_as_wide_as_their_dates(code, result, tmp_path):
    told = replace(result, waivers=(waiver("MISSING_POV", "VND-1", "late", "Ana", "Rui"),))
    write_report(Report(told, formats=["xlsx"], language=language(code)), tmp_path)
    narrow, formats = [], set()
    for sheet in openpyxl.load_workbook(tmp_path / "missing-evidence.xlsx"):
        for cell in (
            cell for row in sheet.iter_rows(min_row=2) for cell in row if isinstance(cell.value, datetime)
        ):
            shown = "dd/mm/yyyy hh:mm" if "h" in cell.number_format else "dd/mm/yyyy"
            formats.add(shown)
            if sheet.column_dimensions[cell.column_letter].width < len(shown) + 2:
                narrow.append((sheet.title, cell.coordinate))
    assert len(formats) == 2
    assert narrow == []


def test_a_wide_sheet_prints_on_pages_that_can_be_read(result, tmp_path):
    sheet = openpyxl.load_workbook(written(result, tmp_path) / "missing-evidence.xlsx")["Sales"]
    setup = sheet.page_setup
    assert (setup.orientation, setup.fitToWidth, setup.fitToHeight) == ("landscape", 2, 0)
    assert (sheet.print_title_rows, sheet.print_title_cols) == ("$1:$1", "$A:$A")


def test_the_csv_of_a_replica_names_it_with_its_delay_also_without_rows(result, tmp_path):
    source = replace(result.facts.source, replica="replica.example.com:5432/sales, 12.0 s behind")
    none = replace(result, facts=replace(result.facts, source=source), listed=result.listed.iloc[:0])
    [heading] = (written(none, tmp_path, "csv") / "missing-evidence.csv").read_text("utf-8").splitlines()
    assert heading.endswith(f',"replica: {source.replica}"')


def test_a_pdf_tells_all_that_is_filed_and_names_the_json_on_each_page(result, tmp_path):
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
    words = ("same file for several sales", "VND-6", "Where the numbers come from")
    for text in (headline(Report(result)), *notices(Report(result)), *words):
        assert text in told


def test_the_people_of_a_withdrawal_stand_apart(tmp_path):
    asking, approving = "firstanalyst@utility", "complianceofficer@company"
    people = {"withdrawnBy": asking, "approvedBy": approving}
    row = dict.fromkeys(WITHDRAWN, "x") | people | {"withdrawnAt": pd.Timestamp(AS_OF)}
    made = replace(result_of([Told("S-1")]), withdrawals=pd.DataFrame([row]))
    runs = []

    def noted(text, place, _, __, size):
        runs.append((text.replace("\u200b", "").strip(), place[4], size))

    for page in PdfReader(written(made, tmp_path, "pdf") / "missing-evidence.pdf").pages:
        page.extract_text(visitor_text=noted)
    left = [(text, x, size) for text, x, size in runs if len(text) > 2 and text in asking]
    right = min(x for text, x, _ in runs if len(text) > 2 and text in approving)
    assert "".join(text for text, *_ in left) == asking
    assert [text for text, x, size in left if x < right < x + len(text) * size / 2] == []


def test_every_character_that_a_pdf_lets_through_has_a_glyph(tmp_path):
    allowed = [chr(code) for code in range(0x20, 0x3000) if not pdf._UNPRINTABLE.match(chr(code))]
    written(result_of([Told("".join(allowed))]), tmp_path, "pdf")


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
    pov, document = evidence_of(Told("S-1", "POV DC"))
    taken = {"reason": "sent twice", "withdrawn_by": "ana@example.com", "approved_by": "bia@example.com"}
    audit = folder_of(
        tmp_path / "audit",
        [
            Told("S-1", "DC", partner="Luz do Vale"),
            Told("S-2", "POV DC", partner="Luz do Vale"),
            Told("S-3", "POV!", partner="Norte Energia"),
        ],
        file_findings=[
            file_finding(IntegrityProblem.CONTENT_REUSED, ("a/x",), (), ("S-2", "S-3"), "SHA-256 5ea1"),
            file_finding(IntegrityProblem.REQUESTED_BY_OTHER, ("c/z",), (), ("S-1",), "requested for Vento"),
            file_finding(IntegrityProblem.BLANK_DOCUMENT, ("b/y",), (), ("S-1",)),
        ],
        evidence={"S-1": [pov | taken | {"withdrawn_at": at}, document]},
    )
    whole, names = read_audited(audit), ["Luz do Vale", "Norte Energia"]  # both are read at once
    own = next(map(read_audited, audit.each_partner(names)))
    assert "CONTENT_REUSED" in set(whole.findings["code"])
    of_others = [*whole.findings.query("saleId == 'S-3'")["id"], *whole.faults["evidenceId"].map(str)]
    assert len(of_others) > 2
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
        hidden = ("Norte Energia", "S-3", "Vento", "ana@", "bia@", "a/x", *of_others)
        assert [each for each in hidden if each in told] == []
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
