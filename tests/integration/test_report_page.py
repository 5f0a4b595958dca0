"""The page of a report in a real browser: searching, sorting, filtering, and nothing that it should not do."""

from contextlib import ExitStack
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from unicodedata import normalize
from urllib.parse import quote

import pytest
from pypdf import PdfReader

from tests.support.audit_results import AS_OF, Told, evidence_of, result_of
from tests.support.browser import needs_browser, well_behaved
from toolkit.contract.contents import IntegrityProblem
from toolkit.contract.findings import file_finding
from toolkit.language import LANGUAGES, language
from toolkit.reports import write_report
from toolkit.reports.report import Report

pytestmark = needs_browser

SCRIPT = "<script>document.title = 'broken'</script>"

SALES = (
    Told("S-10", "POV DC~", group="A", days=3, partner="São Jorge"),
    Told("S-9", "POV! DC?", group="B", days=40, partner="Luz & Cia"),
    Told("S-100", "KYC POV", group="D", days=7, partner=None),
    Told("S-1", "POV", group="B", payer=False, days=100, completed=True, partner="Norte"),
    Told(SCRIPT, "", group='"><b>', days=0, partner="=cmd|'/c calc'!A1"),
    Told("fine", "KYC"),
    Told("warned", "POV DC DCR", partner="Norte"),
)

FILE_FINDINGS = (
    file_finding(IntegrityProblem.CONTENT_REUSED, ("a/b.mp3",), (), ("S-10", "S-9")),
    file_finding(IntegrityProblem.WRITTEN_LATE, ("a/b.mp3",), (), ("S-9",)),
    file_finding(IntegrityProblem.KEY_OUTSIDE_LAYOUT, ("a/b.mp3",), (), ("<b>x</b>",)),
)


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """The report in all formats, in a folder for each language."""
    folder = tmp_path_factory.mktemp("reports")
    result = result_of(SALES, file_findings=FILE_FINDINGS)
    for code in LANGUAGES:
        formats = ["html", "xlsx", "csv", "json"]
        write_report(Report(result, formats=formats, language=language(code)), folder / code)
    return folder


@pytest.fixture
def page(browser, reports):
    """The report opened from its file; at the end: no errors, no requests beyond the file."""
    with well_behaved(browser, "file:", reduced_motion="reduce") as opened:
        opened.goto(address(reports, "en"))
        yield opened


def address(reports, code):
    return (reports / code / "missing-evidence.html").as_uri()


def shown(page):
    return page.locator("#sales .grid [role=rowheader]").all_inner_texts()


@pytest.fixture
def open_report(browser, tmp_path):
    """Writes a report of these sales and opens its page; at the end as ``page``."""
    with ExitStack() as opened:

        def open_report(told, **given):
            write_report(Report(result_of(told, **given), formats=["html"]), tmp_path)
            page = opened.enter_context(well_behaved(browser, "file:"))
            page.goto((tmp_path / "missing-evidence.html").as_uri())
            page.locator(".found").wait_for()
            return page

        yield open_report


def choice(page, name):
    return page.locator(f"select[name={name}]")


def test_headings_sort_both_ways(page):
    age = page.get_by_role("button", name="Age, days")
    age.click()
    assert shown(page)[1:] == ["S-10", "S-100", "S-9", "S-1"]
    age.click()
    assert shown(page)[:-1] == ["S-1", "S-9", "S-100", "S-10"]
    assert page.locator("[aria-sort]").all_inner_texts() == ["Age, days"]
    assert page.locator("[aria-sort]").get_attribute("aria-sort") == "descending"
    page.get_by_role("grid").get_by_role("button", name="Sale", exact=True).press("Enter")
    assert shown(page)[1:] == ["S-1", "S-9", "S-10", "S-100"]  # as people count, not as letters
    completed = page.get_by_role("grid").get_by_role("button", name="Completed")
    for _ in range(2):
        completed.click()
        assert shown(page)[0] == "S-1"  # what is not completed comes last either way


def test_filters_narrow_the_table_down(page):
    of_group_b = {"group": "B", "missing": "DOC_CONTRATANTE"}
    for filters, sales, told in (
        ({"group": "B"}, ["S-1", "S-9"], "2 of 5 shown"),
        (of_group_b | {"reason": "NOT_UPLOADED"}, ["S-9"], "1 of 5 shown"),
        (of_group_b | {"reason": "UNUSABLE"}, [], "No sale fits these choices."),  # another piece of S-9 is
        ({"problem": "COMPLETED_WITHOUT_EVIDENCE"}, ["S-1"], "1 of 5 shown"),
        ({"status": "conflict"}, ["S-100", SCRIPT], "2 of 5 shown"),
        ({"only": "file-finding"}, ["S-9", "S-10"], "2 of 5 shown"),
        ({"status": "compliant"}, ["warned"], "0 of 5 that are not compliant, and 1 compliant"),
    ):
        assert (len(shown(page)), page.locator(".found").inner_text()) == (5, "5 shown")
        for name, value in filters.items():
            choice(page, name).select_option(value)
        assert (shown(page), page.locator(".found").inner_text()) == (sales, told), filters
        page.get_by_role("button", name="Show all").click()


def test_search_looks_past_accents_and_case(page):
    page.get_by_label("Search").fill("sao jorge")
    assert shown(page) == ["S-10"]
    for typed in ("982 norte", "982.247 norte"):
        page.get_by_label("Search").fill(typed)
        assert shown(page) == ["S-1"]
    page.get_by_label("Search").fill("982248")
    assert shown(page) == []


def test_what_a_sale_holds_stays_text(page):
    assert page.title().startswith("Missing evidence: ")
    assert SCRIPT in shown(page)
    assert choice(page, "partner").locator("option").all_inner_texts()[1] == "=cmd|'/c calc'!A1"
    choice(page, "group").select_option("unknown")
    assert len(shown(page)) == 1
    page.locator("#sales [role=rowheader] a").click()
    assert page.get_by_role("dialog").get_by_role("heading", level=2).inner_text().startswith("<script>")
    assert page.get_by_role("dialog").locator("b").all_inner_texts() == []
    assert page.evaluate("location.hash").endswith("&sale=" + quote(SCRIPT, safe="").replace("%20", "+"))


def test_each_figure_is_the_number_of_the_sales_that_it_leads_to(page):
    from playwright.sync_api import expect  # not needed where there is no browser

    figures = page.locator("a.rows[href^='#']:not([href*='sale=']):not([href*='sort='])").all()
    counted = 0
    for figure in figures:
        text, filters = figure.inner_text(), figure.get_attribute("href")
        pieces_or_files = figure.evaluate("each => Boolean(each.closest('.cards'))")
        findings = filters.startswith("#partner=") and "only=" in filters
        if text.isdigit() and not pieces_or_files and not findings:
            figure.click()
            # The page hears of the new address after the click has returned.
            expect(page.get_by_role("grid"), filters).to_have_attribute("aria-rowcount", str(int(text) + 1))
            counted += 1
    assert counted > 20


def test_the_address_holds_the_view(page, browser):
    choice(page, "group").select_option("B")
    choice(page, "sort").select_option("-ageDays")
    page.locator("[role=rowheader] a").first.click()
    address = page.url
    assert address.endswith("#group=B&sort=-ageDays&sale=S-1")
    again = browser.new_page()
    again.goto(address)
    assert again.get_by_role("dialog").get_by_role("heading", level=2).inner_text() == "S-1"
    again.keyboard.press("Escape")
    assert shown(again) == ["S-1", "S-9"]
    assert again.url.endswith("#group=B&sort=-ageDays")
    again.close()
    page.go_back()
    page.get_by_role("dialog").wait_for(state="hidden")
    assert page.url.endswith("#group=B&sort=-ageDays")
    page.go_forward()
    assert page.get_by_role("dialog").get_by_role("heading", level=2).inner_text() == "S-1"
    page.get_by_role("button", name="Close").click()
    page.wait_for_url("**#group=B&sort=-ageDays")


def case_of(page):
    """The part of the panel that is unpacked when a sale is opened."""
    case = page.locator("dialog .case[aria-busy=false]")
    case.wait_for()
    return case


def lines(place):
    return [line for line in place.inner_text().split("\n") if line]


def test_a_sale_has_its_rule_records_with_files_findings_and_time_line_behind_its_row(open_report):
    opened = open_report([Told("S-1", "POV DC!~ POV!", group="B")])
    opened.locator("[role=rowheader] a").click()
    case = case_of(opened)
    pov, contract, again = (lines(each) for each in case.locator(".record").all())
    assert pov[:2] == ["Audio of the contracting party", "POV (1) counts for the sale"]
    assert pov[pov.index("File") + 1] == "1,234,567 bytes, 61.3 s"
    assert pov[pov.index("SHA-256") + 1] == "5ea15ea15ea15ea1\u2026"
    assert pov[pov.index("Looked at") + 1] == "fully verified"
    assert contract[1] == "DOC_CONTRATANTE credentials expired"
    assert "File" not in contract
    assert again[:2] == ["Audio of the contracting party", "POV (2) file unusable"]
    assert again[again.index("Fault") + 1].startswith("damaged The file is truncated or broken")
    rows = [[cell.inner_text() for cell in row.locator("td").all()] for row in case.locator("tbody tr").all()]
    assert rows == [
        ["20 Nov 2026, 16:00:00", "file observed in the bucket", "POV (2)"],
        ["20 Nov 2026, 18:00:00", "file observed in the bucket", "POV (1)"],
    ]
    assert case.locator("thead").inner_text().split("\t")[0] == "When (UTC-03:00)"
    findings = case.locator("section", has_text="Findings").inner_text()
    assert "MISSING_DOC_CONTRATANTE" in findings
    assert "27 Nov 2026, 23:59" in findings
    rule = opened.locator("dialog section", has_text="Rule").inner_text()
    assert "or exactly one KYC and nothing else" in rule
    assert "DOC_CONTRATANTE or Single document covering both" in rule
    assert "AUT" not in rule  # the contracting party pays


HOSTILE = "</script><img src=x onerror=\"document.title = 'broken'\">"


def test_hostile_records_and_events_stay_text_and_a_withdrawal_names_reason_and_people(open_report):
    told = Told("S-1", "POV KYC")
    first, second = evidence_of(told)
    taken = {"reason": f"{HOSTILE} $& \u202e", "withdrawn_by": f"ana {HOSTILE}", "approved_by": "bruno"}
    records = [first | {"evidence_type": HOSTILE, "event": HOSTILE}, second | taken | {"withdrawn_at": AS_OF}]
    opened = open_report([told], evidence={"S-1": records})
    opened.locator("[role=rowheader] a").click()
    case = case_of(opened)
    unknown, gone = (lines(each) for each in case.locator(".record").all())
    assert unknown[:2] == [HOSTILE, f"{HOSTILE} of a type that the contract does not know"]
    assert gone[1] == "KYC withdrawn"
    assert gone[gone.index("Withdrawn") + 1].endswith(f"by ana {HOSTILE}, approved by bruno")
    assert gone[gone.index("Reason") + 1] == f"{HOSTILE} $& \\u202e"
    assert f"{HOSTILE}\t{HOSTILE}" in case.locator("tbody").inner_text()
    assert opened.locator("img").count() == 0
    assert opened.title().startswith("Missing evidence")


def test_a_sale_without_its_records_in_the_page_says_why_and_names_the_command(open_report, tmp_path, monkeypatch):
    monkeypatch.setattr("toolkit.reports.page.CASES", 3)
    monkeypatch.setattr("toolkit.reports.page.AT_ONCE", 2)
    sales = [Told(f"S-{number}", "POV") for number in range(4)]
    opened = open_report(sales)

    def told(sale):
        opened.evaluate(f"location.hash = '#sale={sale}'")
        opened.locator("dialog h2", has_text=sale).wait_for()
        return str(case_of(opened).inner_text())

    assert evidence_of(sales[2])[0]["evidence_id"] in told("S-2")  # in the second block
    assert "the first 3 sales" in told("S-3")
    assert "toolkit sale show S-3" in opened.get_by_role("dialog").inner_text()
    page = (tmp_path / "missing-evidence.html").read_text(encoding="utf-8")
    (tmp_path / "cut.html").write_text(page[: page.index('<script class="cases"')], encoding="utf-8")
    opened.goto(f"{(tmp_path / 'cut.html').as_uri()}#sale=S-0")
    assert "the file of this page is not whole" in case_of(opened).inner_text()


def test_a_compliant_sale_with_a_finding_about_its_file_is_explained_too(page):
    page.evaluate("location.hash = '#sale=' + encodeURIComponent('<b>x</b>')")
    told = page.get_by_role("dialog").inner_text()
    assert "<b>x</b> is none of the sales to act on: it is compliant" in told
    assert "lies outside the layout" in told


def test_shown_sales_are_saved_as_csv(page, reports):
    choice(page, "group").select_option("unknown")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save these as CSV").click()
    text = Path(saved.value.path()).read_text(encoding="utf-8")
    assert saved.value.suggested_filename == "missing-evidence-filtered.csv"
    whole = (reports / "en" / "missing-evidence.csv").read_text(encoding="utf-8").splitlines()
    assert text.splitlines() == [whole[0], *(line for line in whole if line.startswith("<script>"))]
    assert ",'=cmd|" in text


@pytest.mark.parametrize("trusted", [False, True])
def test_a_frame_that_blocks_scripts_or_downloads_says_so(browser, reports, tmp_path, trusted):
    sandbox = "allow-scripts" if trusted else ""
    (tmp_path / "lab.html").write_text(f'<iframe sandbox="{sandbox}" src="{address(reports, "en")}"></iframe>')
    page = browser.new_page()
    page.goto((tmp_path / "lab.html").as_uri())
    frame = page.frame_locator("iframe")
    blocked, framed = frame.locator("noscript p"), frame.locator(".framed")
    (framed if trusted else blocked).wait_for()
    assert (blocked.is_visible(), framed.is_visible()) == (not trusted, trusted)
    assert frame.get_by_role("button", name="Save these as CSV").count() == 0
    assert frame.get_by_role("link", name="missing-evidence.xlsx").count() == (not trusted)
    assert frame.get_by_role("button", name="Show all").count() == trusted
    page.close()


def test_the_arrows_lead_through_the_grid(open_report):
    opened = open_report([Told(f"S-{number:03}") for number in range(500)])

    def focused():
        return str(opened.evaluate("document.activeElement.closest('[role=row]').firstChild.innerText"))

    grid = opened.get_by_role("grid")
    assert grid.get_attribute("aria-rowcount") == "501"
    opened.locator("[role=rowheader] a").first.focus()
    for key, sale in [("ArrowDown", "S-001"), ("End", "S-001"), ("Control+End", "S-499"), ("ArrowUp", "S-498")]:
        opened.keyboard.press(key)
        assert focused() == sale
    assert opened.evaluate("document.activeElement.closest('[role=row]').ariaRowIndex") == "500"
    assert grid.locator("[role=row]").count() < 40
    opened.keyboard.press("Enter")
    assert opened.get_by_role("dialog").is_visible()
    opened.keyboard.press("Escape")
    assert focused() == "S-498"


FLATTER_THAN_ITS_LABEL = """[...document.querySelectorAll('td')]
    .filter(cell => cell.offsetParent && getComputedStyle(cell, '::before').content !== 'none')
    .filter(cell => cell.clientHeight < parseFloat(getComputedStyle(cell, '::before').lineHeight))
    .map(cell => cell.outerHTML)"""
"""Cells of a narrow page whose label lies upon the next one, as one without a text would be."""


def test_no_width_scrolls_sideways_or_hinders_anybody(browser, reports):
    """By axe's rules for people who read with a screen reader, a keyboard or weak eyes.

    The style sheet has a layout for each of these widths. A language changes words, and the dark scheme colours.
    """
    axe = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    views = [address(reports, code) for code in LANGUAGES]
    views.append(f"{views[0]}#sale=S-9")
    opened = browser.new_page()

    def check(rules="{}"):
        violations = opened.evaluate(f"axe.run(document, {rules}).then(found => found.violations)")
        found = [(each["id"], each["nodes"][0]["html"]) for each in violations]
        assert found == [], (view, opened.viewport_size)

    for view in views:
        opened.goto("about:blank")
        opened.goto(view)
        opened.locator(".grid").wait_for()
        if "#sale" in view:
            case_of(opened)
        opened.context.new_cdp_session(opened).send("Runtime.evaluate", {"expression": axe})
        for width in (1440, 1024, 800, 320):
            opened.set_viewport_size({"width": width, "height": 800})
            assert opened.evaluate("document.documentElement.scrollWidth") <= width, (view, width)
            assert opened.evaluate(FLATTER_THAN_ITS_LABEL) == [], (view, width)
            if view == views[0] or width == 320:
                check()
        opened.emulate_media(color_scheme="dark")
        check("{runOnly: ['color-contrast']}")
        opened.emulate_media(color_scheme="light")
    opened.close()


def printed(page):
    return [normalize("NFKC", each.extract_text()) for each in PdfReader(BytesIO(page.pdf(format="A4"))).pages]


def test_a_sale_is_printed_whole_and_alone(open_report):
    opened = open_report([Told("S-1", "POV " * 30), Told("S-2")])
    opened.locator("[role=rowheader] a").first.click()
    case_of(opened)
    sheets = printed(opened)
    opened.get_by_role("button", name="Close").click()
    assert len(sheets) > 2
    assert "POV (1)" in sheets[0]
    assert "toolkit sale show S-1" in sheets[-1]
    assert "S-2" not in " ".join(sheets)
    assert "POV (1)" not in " ".join(printed(opened))


def test_a_filtered_page_prints_as_filtered_and_says_so(page):
    choice(page, "group").select_option("B")
    text = " ".join(" ".join(printed(page)).split())
    assert "Printed as filtered (Group: B): 2 of 5 sales. The sentence on top is of all sales." in text
    assert "S-9" in text
    assert [name for name in ("S-100", "S-10", "Jorge", "Open findings") if name in text] == []
    choice(page, "group").select_option("")
    assert "Open findings" in " ".join(printed(page))
