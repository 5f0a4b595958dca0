"""The notebooks of the project: their form, a first run on nothing, and the main job on the sample."""

import ast
import json
import re
import sys
from datetime import UTC, datetime
from inspect import signature
from pathlib import Path
from typing import Any

import nbformat
import papermill
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

from tests.support.observations import Story
from toolkit.errors import SettingsError
from toolkit.notebooks import load_clients, missing_evidence_report
from toolkit.notebooks.packaged import results_of
from toolkit.notebooks.parameters import read_parameters
from toolkit.reports import DEFAULT_FORMATS

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
NAMES = ("01_bulk_load_clients", "02_request_credentials", "03_missing_evidence_report", "04_job_history")
QUESTIONS = (
    "05_one_sale",
    "06_compare_moments",
    "07_partners",
    "08_verify_contents",
    "09_load_sales",
    "10_client_quality",
)


def notebook(name: str) -> nbformat.NotebookNode:
    return nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)


def test_these_are_the_notebooks():
    assert sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb")) == sorted((*NAMES, *QUESTIONS))


@pytest.mark.parametrize("name", [*NAMES, *QUESTIONS])
def test_a_notebook_is_text_parameters_imports_one_call_and_a_display(name):
    cells = notebook(name).cells
    assert [cell.cell_type for cell in cells] == ["markdown", "code", "code", "code", "markdown", "code"]
    assert [cell.metadata.get("tags") for cell in cells if cell.cell_type == "code"] == [["parameters"]] + [
        None
    ] * 3
    for heading in ("**Question:**", "**In:**", "**Out:**", "**Pergunta:**", "**Entrada:**", "**Saída:**"):
        assert heading in cells[0].source
    imports, call, shown = (ast.parse(cells[position].source).body for position in (2, 3, 5))
    assert {type(statement) for statement in imports} == {ast.ImportFrom}
    assert [type(statement.value) for statement in call] == [ast.Call]
    assert [type(statement.value) for statement in shown] == [ast.Name]
    assert all(not cell.get("outputs") for cell in cells)


@pytest.mark.parametrize("name", [*NAMES, *QUESTIONS])
def test_every_parameter_has_a_comment_and_reaches_the_call(name):
    parameters = read_parameters(notebook(name))
    assert all(parameter.comment for parameter in parameters.values())
    [call] = ast.parse(notebook(name).cells[3].source).body
    used = {node.id for node in ast.walk(call.value) if isinstance(node, ast.Name)}
    assert set(parameters) <= used


def outputs(executed: nbformat.NotebookNode) -> str:
    """Everything that a reader can see."""
    return "\n".join(json.dumps(cell.get("outputs", []), ensure_ascii=False) for cell in executed.cells)


@pytest.fixture
def office(embedded_environment, database, monkeypatch, tmp_path):
    """A folder from which notebooks reach a service with one sale."""
    Story(database).sale("S-1")
    for variable, value in embedded_environment.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_notebook_runs_by_papermill_from_anywhere(office):
    given = {"sale_id": "S-1"}
    ran = papermill.execute_notebook(
        NOTEBOOKS / "05_one_sale.ipynb", office / "out.ipynb", given, progress_bar=False
    )
    [sale] = results_of(ran)
    assert (sale["status"], sale["needsAttention"]) == ("incomplete", True)
    for told in ("MISSING_POV", "DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO", "Time line"):
        assert told in outputs(ran)


@pytest.fixture
def executed_here():
    """Execute the cells of a notebook in this process as a kernel does, in a fraction of its time."""
    main = sys.modules["__main__"]  # whose place the shell takes
    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))

    def executed(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
        shell.reset()
        with capture_output() as captured:
            for cell in notebook.cells:
                if cell.cell_type == "code":
                    shell.run_cell(cell.source, store_history=True).raise_error()
        shown = [nbformat.v4.new_output("display_data", each.data) for each in captured.outputs]
        cells = [nbformat.v4.new_code_cell(outputs=shown)]
        return nbformat.v4.new_notebook(cells=cells, metadata=notebook.metadata)

    yield executed
    InteractiveShell.clear_instance()
    sys.modules["__main__"] = main


def test_each_notebook_runs_on_a_service_with_one_sale(office, executed_here):
    def ran(name: str) -> tuple[dict[str, Any], str]:
        executed = executed_here(notebook(name))
        [found] = results_of(executed)
        return found, outputs(executed)

    clients, told = ran("01_bulk_load_clients")
    assert (clients["dryRun"], clients["accepted"], clients["rejected"]) == (True, 180, 11)
    assert "made up" in told
    credentials, told = ran("02_request_credentials")
    assert (credentials["rows"], credentials["needsAttention"]) == (0, False)
    assert "Nothing was requested" in told
    report, told = ran("03_missing_evidence_report")
    assert (report["sales"], report["needsAttention"]) == (1, True)
    assert "1 of 1 sale lacks evidence" in told
    assert (office / "reports").is_dir()
    history, told = ran("04_job_history")
    assert history["runs"] == 0
    assert "Nothing ran yet" in told
    assert ran("06_compare_moments")[0]["resolved"] == 0
    assert ran("07_partners")[0]["partners"] == 1
    verified, _ = ran("08_verify_contents")
    assert (verified["verified"], verified["needsAttention"]) == (0, False)
    assert ran("09_load_sales")[0]["rows"] == 0
    quality, _ = ran("10_client_quality")
    assert (quality["clients"], quality["alike"]) == (0, {})


def test_the_script_of_the_readme_prints_its_answer_alone(office, database, monkeypatch, capsys):
    monkeypatch.setattr(InteractiveShell, "initialized", lambda: False)
    created = datetime(2026, 10, 2, tzinfo=UTC)
    story = Story(database)
    for sale_id, partner in (("S-2", "Luz do Vale"), ("S-3", "another")):
        story.sale(sale_id, partner=partner, created_at=created)
        story.record(sale_id, "POV")
    guide = (NOTEBOOKS / "README.md").read_text("utf-8")
    script, _ = re.findall(r"```python\n(.+?)```", guide, flags=re.DOTALL)
    exec(compile(script, "README.md", "exec"), known := {})  # type: ignore[var-annotated]
    printed = capsys.readouterr()
    assert printed.out == "S-2 POV EXPIRED None\n"
    assert repr(known["report"]).startswith("3 of 3 sales lack evidence: sales 3")


def test_a_mistake_is_told_in_one_line(run, tmp_path):
    out = tmp_path / "out.ipynb"
    missing = tmp_path / "nowhere.csv"
    path = NOTEBOOKS / f"{NAMES[0]}.ipynb"
    printed = run("run", path, "-p", "files", missing, "--out", out, ends=1).err
    assert "UnreadableFile" in printed
    assert str(missing) in printed
    assert not out.exists()
    [error] = [
        output
        for cell in nbformat.read(tmp_path / "out.failed.ipynb", 4).cells
        for output in cell.get("outputs", ())
        if output.output_type == "error"
    ]
    assert len(error.traceback) == 1


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: missing_evidence_report(as_of=2026), "as_of must be a text, and not a value of the type int"),
        (
            lambda: missing_evidence_report(sync="false"),
            "sync must be True or False, and not a value of the type str",
        ),
        (lambda: missing_evidence_report(out=""), "out must name the folder"),
        (lambda: missing_evidence_report(engine="oracle"), "An engine is duckdb or spark, not .oracle."),
        (lambda: load_clients([5]), "named by a text, and not by a value of the type int"),
    ],
)
def test_what_papermill_alone_takes_for_another_kind_is_refused(call, told):
    """``papermill -p upload false`` gives the text "false", which counts as true."""
    with pytest.raises(SettingsError, match=told):
        call()


def test_notebook_and_command_write_the_same_files():
    formats = read_parameters(notebook(NAMES[2]))["formats"].default
    assert formats == ",".join(DEFAULT_FORMATS) == signature(missing_evidence_report).parameters["formats"].default


def test_the_demo_keeps_out_of_shared_services(run):
    assert "--shared" in run("demo", ends=2).err
