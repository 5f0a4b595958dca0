"""`make lab`: copies of the notebooks in a working folder at the top of the browser; nothing asks about news."""

import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.support.browser import needs_browser
from tests.support.jupyter import jupyter_lab
from tests.support.waiting import PATIENCE, wait_until
from toolkit.kit.connection import Kit

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
    """The JupyterLab that `make lab` starts."""
    command = ("make", "--old-file=.venv/.ready", "lab", f"WORK={work}")
    with jupyter_lab(command, as_option="LAB", folder=ROOT) as started:
        yield started


def test_the_browser_shows_the_working_folder_and_copies_of_the_notebooks_in_it(lab, work):
    (work / "reports").mkdir()
    (work / "january.csv").write_text("cpf\n")
    shown = {each["name"]: each["type"] for each in lab.ask("/api/contents")["content"]}
    assert shown.items() >= {"notebooks": "directory", "reports": "directory", "january.csv": "file"}.items()
    copies = {path.name: path.read_bytes() for path in (work / "notebooks").iterdir()}
    assert copies == {path.name: path.read_bytes() for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert work.stat().st_mode & 0o777 == 0o700
    assert not any(path.is_symlink() for path in (work / "notebooks", *(work / "notebooks").iterdir()))


def test_jupyterlab_asks_nothing_about_news_and_looks_for_no_newer_version(lab):
    settings = lab.ask(f"/lab/api/settings/{NEWS}")["schema"]["properties"]
    assert (settings["fetchNews"]["default"], settings["checkForUpdates"]["default"]) == ("false", False)


@needs_browser
def test_tables_are_sorted_by_their_headings_and_are_whole_where_scripts_may_not_run(
    lab, work, embedded_environment, browser
):
    cells = (f"import os\nos.environ.update({embedded_environment})", *CELLS)
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)"}}
    notebook = nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, cells)], metadata=kernel)
    NotebookClient(notebook, timeout=PATIENCE).execute()  # as a job does: JupyterLab trusts no script of it
    nbformat.write(notebook, work / "own.ipynb")
    assert (work / "own.ipynb").stat().st_size < 25_000
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.set_default_timeout(PATIENCE * 1000)
    page.goto(f"{lab.address}/lab/tree/own.ipynb?token=t")
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()

    def shown(number):
        return page.locator("table").nth(number).locator("tbody tr td:first-child").all_inner_texts()

    wait_until(lambda: page.locator("table tbody tr").count() == 1 + 60 + 3)
    assert page.locator("table [role=button]").count() == 0
    assert (shown(1)[:2], shown(2)) == (["2", "3"], ["V-10", "V-2", "<b>9</b>"])
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    for table, heading in ((1, "line"), (2, "days")):
        button = page.locator("table").nth(table).get_by_role("button", name=heading)
        button.click()
        button.press("Enter")
    wait_until(lambda: (shown(1)[:2], shown(2)) == (["61", "60"], ["V-2", "V-10", "<b>9</b>"]))
    page.close()


def test_relative_paths_start_at_the_top_of_the_browser(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLKIT_WORK", str(tmp_path))
    monkeypatch.setitem(sys.modules, "ipykernel", object())
    assert Kit().path("january.csv") == tmp_path / "january.csv"
