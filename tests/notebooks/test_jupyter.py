"""JupyterLab: `make lab` with copies of the notebooks, and the desk of a reviewer with the keyboard alone."""

import subprocess
import sys
from pathlib import Path

import httpx
import nbformat
import pytest
from ipywidgets import HTML, Button, Image, VBox
from nbclient import NotebookClient
from playwright import sync_api

from tests.integration.test_reviews import office  # noqa: F401  # a fixture
from tests.support.browser import needs_browser
from tests.support.uploaded_sales import rows
from tests.support.waiting import PATIENCE, free_port, listens, started, wait_until
from toolkit.kit.connection import Kit
from toolkit.kit.desk import _mark


def ask(address, path):
    return httpx.get(f"{address}{path}?token=t", timeout=PATIENCE).json()


ROOT = Path(__file__).parents[2]
CELLS = (
    "import pandas as pd\nimport toolkit\nkit = toolkit.connect()",
    'sales = pd.DataFrame({"saleId": range(60), "clientId": "", "utilityGroup": "A", "createdAt": "soon"})',
    'kit.load_sales(sales.assign(isClientFinancialResponsible="no"))',
    'pd.DataFrame({"sale": ["V-10", "V-2", "<b>9</b>"], "days": pd.Series([9, 10, 1], dtype="int64[pyarrow]")})',
)
NEWS = "@jupyterlab/apputils-extension:notification"


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    return tmp_path_factory.mktemp("lab") / "my work"


@pytest.fixture(scope="module")
def lab(work):
    """The address of the JupyterLab that `make lab` starts."""
    port = free_port()
    options = f"--no-browser --port={port} --ServerApp.port_retries=0 --IdentityProvider.token=t"
    command = ("make", "--old-file=.venv/.ready", "lab", f"WORK={work}", f"LAB={options}")
    with started(command, lambda: listens(port), cwd=ROOT, stderr=subprocess.DEVNULL):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def page(browser):
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.set_default_timeout(PATIENCE * 1000)
    yield page
    page.close()


def open_notebook(page, lab, name):
    page.goto(f"{lab}/lab/tree/{name}?reset&token=t")  # without the notebooks of other tests
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()


def run_all_cells(page):
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()


def reaching(environ):
    """The cell with which a notebook reaches the services of a test."""
    return nbformat.v4.new_code_cell(f"import os\nos.environ.update({environ})")


def test_the_browser_shows_the_working_folder_and_copies_of_the_notebooks_in_it(lab, work):
    (work / "reports").mkdir()
    (work / "january.csv").write_text("cpf\n")
    shown = {each["name"]: each["type"] for each in ask(lab, "/api/contents")["content"]}
    assert shown.items() >= {"notebooks": "directory", "reports": "directory", "january.csv": "file"}.items()
    copies = {path.name: path.read_bytes() for path in (work / "notebooks").iterdir()}
    assert copies == {path.name: path.read_bytes() for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert work.stat().st_mode & 0o777 == 0o700
    assert not any(path.is_symlink() for path in (work / "notebooks", *(work / "notebooks").iterdir()))


def test_jupyterlab_asks_nothing_about_news_and_looks_for_no_newer_version(lab):
    settings = ask(lab, f"/lab/api/settings/{NEWS}")["schema"]["properties"]
    assert (settings["fetchNews"]["default"], settings["checkForUpdates"]["default"]) == ("false", False)


@needs_browser
def test_tables_are_sorted_by_their_headings_and_are_whole_where_scripts_may_not_run(
    lab, work, embedded_environment, page
):
    cells = [reaching(embedded_environment), *map(nbformat.v4.new_code_cell, CELLS)]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)"}}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=kernel)
    NotebookClient(notebook, timeout=PATIENCE).execute()  # as a job does: JupyterLab trusts no script of it
    nbformat.write(notebook, work / "own.ipynb")
    assert (work / "own.ipynb").stat().st_size < 25_000
    open_notebook(page, lab, "own.ipynb")

    def shown(number):
        return page.locator("table").nth(number).locator("tbody tr td:first-child").all_inner_texts()

    wait_until(lambda: page.locator("table tbody tr").count() == 1 + 60 + 3)
    assert page.locator("table [role=button]").count() == 0
    assert (shown(1)[:2], shown(2)) == (["2", "3"], ["V-10", "V-2", "<b>9</b>"])
    run_all_cells(page)
    for table, heading in ((1, "line"), (2, "days")):
        button = page.locator("table").nth(table).get_by_role("button", name=heading)
        button.click()
        button.press("Enter")
    wait_until(lambda: (shown(1)[:2], shown(2)) == (["61", "60"], ["V-2", "V-10", "<b>9</b>"]))


def test_relative_paths_start_at_the_top_of_the_browser(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLKIT_WORK", str(tmp_path))
    monkeypatch.setitem(sys.modules, "ipykernel", object())
    assert Kit().path("january.csv") == tmp_path / "january.csv"


ANSWERS = "yes / no / not applicable"


@needs_browser
def test_files_are_reviewed_with_the_keyboard_and_nothing_of_them_is_saved(lab, work, office, database, page):  # noqa: F811
    office.kit.draw_review(per_partner=3, second_share=0)
    notebook = nbformat.read(ROOT / "notebooks" / "12_review.ipynb", 4)
    notebook.cells[1].source = notebook.cells[1].source.replace('reviewer = ""', 'reviewer = "Ana Souza"')
    notebook.cells.insert(1, reaching(office.environ))
    nbformat.write(notebook, work / "review.ipynb")
    open_notebook(page, lab, "review.ipynb")
    run_all_cells(page)
    seen = []
    for number in range(1, 6):
        wait_until(lambda: set(page.locator("h3", has_text="· POV").all_inner_texts()) - set(seen))
        try:
            page.wait_for_function(f"document.activeElement.placeholder === '{ANSWERS}'", timeout=4000)
        except sync_api.TimeoutError:  # on a busy machine the question is drawn after the desk gave it the focus
            page.locator(f"input[placeholder='{ANSWERS}']").first.focus()
        seen.append(page.locator("h3", has_text="· POV").inner_text())
        for typed in ("y", "n" if number == 3 else "y", "heard it"):
            page.keyboard.type(typed)
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        wait_until(lambda: rows(database, "SELECT count(*) FROM audit.review_answers") == [(number,)])  # noqa: B023
    assert len(set(seen)) == 5
    page.keyboard.press("Control+s")
    wait_until(lambda: "widget-view" in (work / "review.ipynb").read_text("utf-8"))
    saved = (work / "review.ipynb").read_text("utf-8")
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
    box = VBox()
    office.kit.desk("Ana Souza").show(box)
    shown = [*parts(box)]
    [picture] = [each for each in shown if isinstance(each, Image)]
    assert bytes(picture.value[:4]) == b"\x89PNG"
    next(each for each in shown if isinstance(each, Button)).click()
    told = "".join(each.value for each in shown if isinstance(each, HTML))
    assert "utility group: A" in told
    assert "Does the client say yes? Must be yes, no or notApplicable" in told
    assert [*map(str, map(_mark, ("Y", "n", "not", "x", "")))] == ["yes", "no", "notApplicable", "x", ""]
