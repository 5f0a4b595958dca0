"""`make lab`: copies of the notebooks in a working folder at the top of the browser; nothing asks about news."""

import os
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.support.browser import needs_browser, well_behaved
from tests.support.jupyter import jupyter_lab
from tests.support.waiting import PATIENCE, wait_until
from toolkit.kit.connection import Kit

ROOT = Path(__file__).parents[2]
SALES = """
import pandas as pd
days = pd.Series([9, 10, 1], dtype="int64[pyarrow]")
pd.DataFrame({"sale": ["V-10", "V-2", "<b>9</b>"], "days": days})
"""
NEWS = "@jupyterlab/apputils-extension:notification"


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    return tmp_path_factory.mktemp("lab") / "my work"


@pytest.fixture(scope="module")
def asked(work):
    """Ask the JupyterLab that `make lab` starts."""
    command = ("make", "--old-file=.venv/.ready", "lab", f"WORK={work}")
    with jupyter_lab(command, as_option="LAB", folder=ROOT) as lab:
        yield lab.ask


def test_the_browser_shows_the_working_folder_and_copies_of_the_notebooks_in_it(asked, work):
    (work / "reports").mkdir()
    (work / "january.csv").write_text("cpf\n")
    shown = {each["name"]: each["type"] for each in asked("/api/contents")["content"]}
    assert shown == {"notebooks": "directory", "reports": "directory", "january.csv": "file"}
    copies = {path.name: path.read_bytes() for path in (work / "notebooks").iterdir()}
    assert copies == {path.name: path.read_bytes() for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert work.stat().st_mode & 0o777 == 0o700
    assert not any(path.is_symlink() for path in (work / "notebooks", *(work / "notebooks").iterdir()))


def test_jupyterlab_asks_nothing_about_news_and_looks_for_no_newer_version(asked):
    settings = asked(f"/lab/api/settings/{NEWS}")["schema"]["properties"]
    assert (settings["fetchNews"]["default"], settings["checkForUpdates"]["default"]) == ("false", False)


@needs_browser
def test_a_data_frame_is_sorted_by_its_headings(embedded_environment, tmp_path, browser):
    cells = ("import toolkit", "kit = toolkit.connect()", SALES)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    client = NotebookClient(notebook, timeout=PATIENCE, resources={"metadata": {"path": str(tmp_path)}})
    client.execute(env={**os.environ, **embedded_environment, "TOOLKIT_WORK": str(tmp_path)})
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    (tmp_path / "lab.html").write_text("".join(output["data"]["text/html"] for output in outputs))
    with well_behaved(browser, "file:", "blob:") as page:
        page.goto((tmp_path / "lab.html").as_uri())
        heading = page.locator("table.dataTable thead th", has_text="days")
        sales = page.locator("table.dataTable tbody tr td:first-child")
        for order in (["<b>9</b>", "V-10", "V-2"], ["V-2", "V-10", "<b>9</b>"]):
            heading.click()
            wait_until(lambda order=order: sales.all_inner_texts() == order)


def test_relative_paths_start_at_the_top_of_the_browser(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLKIT_WORK", str(tmp_path))
    monkeypatch.setitem(sys.modules, "ipykernel", object())
    assert Kit().path("january.csv") == tmp_path / "january.csv"
