"""The page of a report in a real browser: sorting, filtering, and nothing that it should not do."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader

from tests.browser import chromium, needs_browser
from tests.reported import Told, result_of
from toolkit.domain.integrity import IntegrityFinding, IntegrityProblem
from toolkit.reports import write_report

pytestmark = needs_browser

SALES = (
    Told("S-10", "POV DC~", group="A", days=3, partner="São Jorge"),
    Told("S-9", "POV! DC?", group="B", days=40, partner="Luz & Cia"),
    Told("S-100", "KYC POV", group="D", days=7, partner=None),
    Told("S-1", "POV", group="B", payer=False, days=100, completed=True, partner="Norte"),
    Told("<script>document.title = 'broken'</script>", "", group='"><b>', days=0, partner="=cmd|'/c calc'!A1"),
    Told("fine", "KYC"),
)

FILE_FINDINGS = tuple(
    IntegrityFinding(problem, ("a/b.mp3",), (), sales)
    for problem, sales in (
        (IntegrityProblem.CONTENT_REUSED, ("S-10", "S-9")),
        (IntegrityProblem.WRITTEN_LATE, ("S-9",)),
        (IntegrityProblem.KEY_OUTSIDE_LAYOUT, ("<b>x</b>",)),
    )
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """The report opened from its file; at the end: no errors, no requests beyond the file."""
    write_report(result_of(SALES, file_findings=FILE_FINDINGS), tmp_path, ["html", "csv"])
    opened = browser.new_page()
    complaints: list[str] = []
    requests: list[str] = []
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("request", lambda request: requests.append(request.url))
    opened.goto((tmp_path / "missing-evidence.html").as_uri())
    yield opened
    assert complaints == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    opened.close()


def shown(page: Any) -> list[str]:
    return page.locator("#sales tbody tr:visible th").all_inner_texts()


def choice(page: Any, name: str) -> Any:
    return page.locator(f"select[name={name}]")


def test_headings_sort_both_ways(page: Any) -> None:
    age = page.get_by_role("button", name="Age, days")
    age.click()
    assert shown(page)[1:] == ["S-10", "S-100", "S-9", "S-1"]
    age.click()
    assert shown(page)[:-1] == ["S-1", "S-9", "S-100", "S-10"]
    assert page.locator("th[aria-sort]").all_inner_texts() == ["Age, days"]
    assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"
    page.get_by_role("button", name="Sale", exact=True).press("Enter")
    assert shown(page)[1:] == ["S-1", "S-9", "S-10", "S-100"]  # as people count, not as letters


def test_files_in_doubt_have_a_table_of_their_own(page: Any) -> None:
    def sales() -> list[str]:
        return page.locator("#file-findings tbody th").all_inner_texts()

    assert sales() == ["S-10, S-9", "S-9", "<b>x</b>"]
    page.locator("#file-findings").get_by_role("button", name="Sales").click()
    assert sales() == ["<b>x</b>", "S-9", "S-10, S-9"]
    assert len(shown(page)) == 5  # the sales stay as they were


def test_filters_narrow_the_table_down(page: Any) -> None:
    found = page.get_by_role("status")
    assert found.inner_text() == "5 shown"
    choice(page, "group").select_option("B")
    assert shown(page) == ["S-9", "S-1"]
    assert found.inner_text() == "2 of 5 shown"
    choice(page, "missing").select_option("DOC_CONTRATANTE")
    choice(page, "reason").select_option("NOT_UPLOADED")
    assert shown(page) == ["S-9"]
    choice(page, "reason").select_option("UNUSABLE")  # another piece of that sale is, this one is not
    assert shown(page) == []
    page.get_by_role("button", name="Show all").click()
    page.get_by_text("5 shown", exact=True).wait_for()
    assert len(shown(page)) == 5
    choice(page, "problem").select_option("COMPLETED_WITHOUT_EVIDENCE")
    assert shown(page) == ["S-1"]
    page.get_by_role("button", name="Show all").click()
    page.get_by_text("5 shown", exact=True).wait_for()
    choice(page, "status").select_option("conflict")
    assert shown(page)[0] == "S-100"


def test_search_looks_past_accents_and_case(page: Any) -> None:
    page.get_by_label("Search").fill("sao jorge")
    assert shown(page) == ["S-10"]
    page.get_by_label("Search").fill("982 norte")
    assert shown(page) == ["S-1"]


def test_what_a_sale_holds_stays_text(page: Any) -> None:
    assert page.title().startswith("Missing evidence: ")
    assert "<script>document.title = 'broken'</script>" in shown(page)
    options = choice(page, "group").locator("option").all_inner_texts()
    assert options == ["all", '"><b>', "A", "B", "D"]
    choice(page, "group").select_option('"><b>')
    assert len(shown(page)) == 1


def test_the_page_fits_a_phone_and_is_whole_without_its_script(browser: Any, tmp_path: Path) -> None:
    write_report(result_of(SALES), tmp_path, ["html"])
    context = browser.new_context(viewport={"width": 360, "height": 700}, java_script_enabled=False)
    page = context.new_page()
    page.goto((tmp_path / "missing-evidence.html").as_uri())
    assert len(shown(page)) == 5
    assert page.locator("form").is_hidden()
    sheet = page.locator("body").bounding_box()
    assert sheet["width"] <= 360
    assert page.locator("main").evaluate("each => each.scrollWidth") <= 360
    context.close()


def test_everything_can_be_reached_with_the_keyboard(page: Any) -> None:
    reached = []
    for _ in range(18):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.innerText || document.activeElement.name"))
    assert reached[0] == "Skip to the sales"
    assert {"text", "Show all", "Sale", "Completed", "missing-evidence.csv"} <= set(reached)


def test_a_cpf_is_found_by_its_digits(page: Any) -> None:
    search = page.get_by_role("searchbox")
    for typed in ("982247", "982.247"):
        search.fill(typed)
        assert len(shown(page)) == 5
    search.fill("982248")
    assert shown(page) == []


def test_what_is_not_completed_comes_after_what_is_by_day(page: Any) -> None:
    completed = page.get_by_role("button", name="Completed")
    completed.click()
    assert shown(page)[-1] == "S-1"
    completed.click()
    assert shown(page)[0] == "S-1"


def test_each_printed_page_repeats_the_headings(browser: Any, tmp_path: Path) -> None:
    write_report(result_of([Told(f"S-{number}") for number in range(60)]), tmp_path, ["html"])
    opened = browser.new_page()
    opened.goto((tmp_path / "missing-evidence.html").as_uri())
    printed = [page.extract_text() for page in PdfReader(BytesIO(opened.pdf(format="A4"))).pages]
    opened.close()
    with_sales = [text for text in printed if "S-" in text]
    assert len(with_sales) > 2
    assert all("Partner, client" in text for text in with_sales)
