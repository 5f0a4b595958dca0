"""The desk of a reviewer in JupyterLab, with the keyboard alone, in a real browser."""

import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from ipywidgets import HTML, Button, Image
from playwright import sync_api

from tests.integration.test_reviews import office  # noqa: F401  # a fixture
from tests.support.browser import needs_browser
from tests.support.jupyter import jupyter_lab
from tests.support.uploaded_sales import rows
from tests.support.waiting import PATIENCE, wait_until
from toolkit.kit.desk import _mark, _Widgets

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "12_review.ipynb"


@pytest.fixture
def lab(office, tmp_path):  # noqa: F811
    """The address of a JupyterLab whose folder has the notebook, for Ana Souza."""
    work = tmp_path / "work"
    work.mkdir()
    text = NOTEBOOK.read_text("utf-8").replace('reviewer = \\"\\"', 'reviewer = \\"Ana Souza\\"')
    (work / "review.ipynb").write_text(text, "utf-8")
    command = (sys.executable, "-m", "jupyterlab", "--allow-root", f"--ServerApp.root_dir={work}")
    with jupyter_lab(command, environ={**os.environ, **office.environ}) as started:
        yield started.address, work / "review.ipynb"


def drawn_in_time(page):
    """Tell whether the first question has the focus; on a busy machine it is drawn after the desk gave it."""
    with suppress(sync_api.TimeoutError):
        page.wait_for_function("document.activeElement.placeholder === 'yes / no / not applicable'", timeout=4000)
        return True
    return False


@needs_browser
def test_files_are_reviewed_with_the_keyboard_and_nothing_of_them_is_saved(office, lab, database, browser):  # noqa: F811
    office.kit.draw_review(per_partner=3, second_share=0)
    address, notebook = lab
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.set_default_timeout(PATIENCE * 1000)
    page.goto(f"{address}/lab/tree/review.ipynb?token=t")
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    seen = []
    for number in range(1, 6):
        wait_until(lambda: set(page.locator("h3", has_text="· POV").all_inner_texts()) - set(seen))
        if not drawn_in_time(page):
            page.locator("input[placeholder='yes / no / not applicable']").first.focus()
        seen.append(page.locator("h3", has_text="· POV").inner_text())
        for typed in ("y", "n" if number == 3 else "y", "heard it"):
            page.keyboard.type(typed)
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        wait_until(lambda: rows(database, "SELECT count(*) FROM audit.review_answers") == [(number,)])  # noqa: B023
    assert len(set(seen)) == 5
    page.keyboard.press("Control+s")
    wait_until(lambda: "widget-view" in notebook.read_text("utf-8"))
    page.close()
    saved = notebook.read_text("utf-8")
    assert [each for each in ("X-Amz", "V-1", "Norte", "heard it") if each in saved] == []
    answers = [answer for (answer,) in rows(database, "SELECT answers FROM audit.review_answers ORDER BY id")]
    assert [each["heard"] for each in answers] == ["yes", "yes", "no", "yes", "yes"]


def parts(widget):
    yield widget
    for each in getattr(widget, "children", ()):
        yield from parts(each)


def test_what_is_missing_is_said_and_a_document_is_drawn(office):  # noqa: F811
    card = office.card.read_text().replace('of = ["POV"]', 'of = ["POV", "DOC_CONTRATANTE"]')
    office.card.write_text(card)
    office.kit.draw_review(per_partner=1, of="DOC_CONTRATANTE", second_share=0)
    widgets = _Widgets(office.kit.desk("Ana Souza"))
    widgets.show()
    shown = [*parts(widgets.box)]
    [picture] = [each for each in shown if isinstance(each, Image)]
    assert bytes(picture.value[:4]) == b"\x89PNG"
    next(each for each in shown if isinstance(each, Button)).click()
    told = "".join(each.value for each in shown if isinstance(each, HTML))
    assert "utility group: A" in told
    assert "Does the client say yes? Must be yes, no or notApplicable" in told
    assert [*map(str, map(_mark, ("Y", "n", "not", "x", "")))] == ["yes", "no", "notApplicable", "x", ""]
