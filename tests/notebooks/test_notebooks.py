"""The notebooks: their names, form, parameters, displays and runs, which leave nothing where they fail."""

import ast
import json
import os
import re
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import nbformat
import papermill
import psutil
import pytest

import toolkit
from tests.support.notebook_files import write_notebook
from tests.support.uploaded_sales import Story
from tests.support.waiting import PATIENCE, wait_until
from toolkit.errors import NotebookFailed
from toolkit.kit.shown import figures, table
from toolkit.notebooks import running
from toolkit.notebooks.packaged import RESULT_TYPE, results_of
from toolkit.notebooks.parameters import Parameter, chosen_values, read_parameters
from toolkit.notebooks.running import run_notebook
from toolkit.reports import FORMATS
from toolkit.reports.report import DEFAULT_FORMATS
from toolkit.samples.dataset import make_samples, write_samples

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
OWN, MONTHS = "11_own_questions", "13_months_of_partners"
NAMES = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))


def notebook(name):
    return nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)


@pytest.mark.parametrize("name", sorted({*NAMES} - {OWN, MONTHS}))
def test_a_notebook_is_text_parameters_the_toolkit_and_each_call_with_its_display(name):
    first, *cells = notebook(name).cells
    for heading in ("**Question:**", "**In:**", "**Out:**", "**Pergunta:**", "**Entrada:**", "**Saída:**"):
        assert heading in first.source
    code = [cell for cell in cells if cell.cell_type == "code"]
    assert [cell.metadata.get("tags") for cell in code] == [["parameters"]] + [None] * (len(code) - 1)
    assert not any(cell.get("outputs") for cell in code)
    imports, *steps = (ast.parse(cell.source).body for cell in code[1:])
    assert all(isinstance(statement, ast.Import | ast.ImportFrom) for statement in imports)
    for call, [shown] in zip(steps[::2], steps[1::2], strict=True):
        assert all(isinstance(statement.value, ast.Call) for statement in call)
        assert isinstance(shown.value, ast.Name)


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_has_a_comment_and_reaches_a_call(name):
    parameters = read_parameters(notebook(name))
    assert all(parameter.comment for parameter in parameters.values())
    calls = "\n".join(cell.source for cell in notebook(name).cells[3:] if cell.cell_type == "code")
    assert set(parameters) <= {node.id for node in ast.walk(ast.parse(calls)) if isinstance(node, ast.Name)}


def outputs(executed):
    """Everything that a reader can see."""
    return "\n".join(json.dumps(cell.get("outputs", []), ensure_ascii=False) for cell in executed.cells)


def test_notebooks_ask_their_own_questions_of_the_sample_with_pandas_and_pictures(workplace):
    write_samples(make_samples(), workplace / "samples")
    with toolkit.connect() as kit:
        kit.load_sales(workplace / "samples" / "sales.csv", overwrite=True)
    assert len(notebook(OWN).cells) == 12
    imports = ast.parse(notebook(OWN).cells[2].source).body
    assert {name.name for each in imports for name in each.names} == {"matplotlib.pyplot", "pandas", "toolkit"}
    ran = papermill.execute_notebook(NOTEBOOKS / f"{OWN}.ipynb", "own.ipynb", progress_bar=False)
    loaded, again, audit, _ = results_of(ran)
    assert (loaded["accepted"], loaded["rejected"], again["accepted"], again["rejected"]) == (135, 9, 1, 0)
    assert audit["sales"] == 90
    assert "Must have at least 3 characters" in outputs(ran)
    assert ran.cells[-2].outputs[0].data["image/png"]
    [dossier] = (workplace / "dossiers").iterdir()
    assert f"dossiers/{dossier.name}" in outputs(ran)
    months = papermill.execute_notebook(NOTEBOOKS / f"{MONTHS}.ipynb", "months.ipynb", progress_bar=False)
    assert "Luz do Vale" in outputs(months)
    assert months.cells[-1].outputs[0].data["image/png"]
    assert "object at 0x" not in outputs(ran) + outputs(months)


def test_each_notebook_runs_on_a_service_with_one_sale(workplace, database):
    """In this process, in a fraction of the time that a kernel takes."""
    Story(database).sale("S-1")

    def ran(name):
        code = [cell.source for cell in notebook(name).cells if cell.cell_type == "code"]
        exec("\n".join(code), known := {})
        known["kit"].close()
        shown = known[code[3]]._repr_mimebundle_()
        return shown[RESULT_TYPE], shown["text/html"]

    audit, told = ran("03_missing_evidence_report")
    assert (audit["sales"], audit["needsAttention"]) == (1, True)
    assert ("missing" in audit, audit["lists"]["missing"]) == (False, 4)  # a row for each type
    assert "1 of 1 sale lacks evidence" in told
    assert (workplace / "reports").is_dir()
    history, told = ran("04_job_history")
    assert history["lists"]["runs"] == 0
    assert "nightly never ran; see: toolkit job list" in told
    assert ran("06_compare_moments")[0]["lists"]["resolved"] == 0
    assert ran("07_partners")[0]["partners"] == 0
    verified, _ = ran("08_verify_contents")
    assert (verified["verified"], verified["needsAttention"]) == (0, False)
    quality, _ = ran("10_client_quality")
    assert (quality["clients"], quality["groups"]) == (0, {})


def test_the_script_of_the_readme_prints_its_answer_alone(workplace, database, capsys):
    created = datetime(2026, 10, 2, tzinfo=UTC)
    story = Story(database)
    for sale_id, partner in (("S-2", "Luz do Vale"), ("S-3", "another")):
        story.sale(sale_id, partner=partner, created_at=created)
        story.record(sale_id, "POV")
    guide = (NOTEBOOKS / "README.md").read_text("utf-8")
    script, _ = re.findall(r"```python\n(.+?)```", guide, flags=re.DOTALL)
    exec(compile(script, "README.md", "exec"), known := {})
    assert capsys.readouterr().out == "S-2 POV EXPIRED None\n"
    assert "2 of 2 sales lack evidence." in repr(known["audit"])
    known["kit"].close()


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_report_notebook_names_every_format_and_has_the_default_of_the_command():
    formats = read_parameters(notebook("03_missing_evidence_report"))["formats"]
    assert formats.described.endswith(", ".join(FORMATS))
    assert formats.default == ",".join(DEFAULT_FORMATS)


@pytest.mark.parametrize(
    ("default", "text", "value"),
    [
        ("000", "00123456789", "00123456789"),
        ("000", "1e3", "1e3"),
        ("", "2026-11-01", "2026-11-01"),
        (3, "-7", -7),
        (0.5, "1", 1.0),
        (True, "False", False),
        ([], "a, b.csv", ["a, b.csv"]),
        ([], '["a", "b"]', ["a", "b"]),
        ([1], "[2, 3]", [2, 3]),
        ([1], "2", [2]),
        ({}, '{"a": 1}', {"a": 1}),
    ],
)
def test_a_text_becomes_a_value_of_the_default_s_type(default, text, value):
    found = chosen_values({"name": Parameter("name", default, "")}, [("name", text)], "some.ipynb")["name"]
    assert found == value
    assert type(found) is type(value)


def test_a_table_is_shown_whole_and_holds_nothing_but_text():
    long = f"<script>alert(1)</script>{'x' * 80}"
    markup = table("<i>", ["<b>"], [(long,)] * 56).html
    assert "&lt;i&gt; (56)" in markup
    assert markup.count(f"&lt;script&gt;alert(1)&lt;/script&gt;{'x' * 80}") == 56
    assert not any(f"<{tag}" in markup for tag in ("script", "i>", "b>"))
    assert table("Waivers", ["reason", "owner"], []).text == "\nWaivers: none"
    assert "<p>&lt;i&gt;</p>" in figures("Sales", {"rejected": 1200}, "<i>").html


def write(folder, *sources):
    return write_notebook(folder / "job.ipynb", *sources, parameters='cpf = "0"  # whose')


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_a_run_that_takes_too_long_is_stopped_with_its_kernel(tmp_path, monkeypatch):
    begun = tmp_path / "begun"
    path = write(tmp_path, f"import os; open({str(begun)!r}, 'w'); print(os.getpid())", "while True: pass")
    spent = property(lambda _: 598 + time.time() - begun.stat().st_mtime if begun.exists() else 0.0)
    monkeypatch.setattr(running.Watch, "seconds", spent)
    with pytest.raises(NotebookFailed, match="took longer than 600 seconds"):
        run_notebook(path, out=tmp_path / "out.ipynb", timeout=600, environ={})
    assert names(tmp_path) == {"begun", "job.ipynb", "out.failed.ipynb"}
    [kernel] = [cell.outputs[0].text for cell in nbformat.read(tmp_path / "out.failed.ipynb", 4).cells[1:2]]
    assert not psutil.pid_exists(int(kernel))


def test_no_executed_notebook_keeps_a_secret_of_its_environment(tmp_path):
    secrets = {"DATABASE_URL": "postgresql://ana:gehe%C3%AFm-1@db/x", "AWS_SECRET_ACCESS_KEY": 'geheim"2'}
    path = write(
        tmp_path, "import os; [print(os.environ[name]) for name in ('DATABASE_URL', 'AWS_SECRET_ACCESS_KEY')]"
    )
    run_notebook(path, out=tmp_path / "out.ipynb", environ={**secrets, "MARK": "geheim"})
    write(tmp_path, "import os; print(os.environ['DATABASE_URL'], 'geheïm-1')", "1 / 0")
    with pytest.raises(NotebookFailed):
        run_notebook(path, out=tmp_path / "broken.ipynb", environ=secrets)
    for name, number in (("out.ipynb", 2), ("broken.failed.ipynb", 3)):
        kept = nbformat.read(tmp_path / name, 4)
        assert str(kept).count("(a secret, left out)") == number
        assert not re.search("gehe(im|ïm|%)", json.dumps([cell.get("outputs") for cell in kept.cells]))


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_stops_the_run_with_its_kernel_and_keeps_apart_what_ran(tmp_path, number, status):
    (of_another := tmp_path / "kernels" / "python3").mkdir(parents=True)
    (of_another / "kernel.json").write_text('{"argv": ["false"], "display_name": "", "language": ""}')
    environ = os.environ | {"TOOLKIT_JWT_SECRET": "geheim-jwt", "JUPYTER_PATH": str(tmp_path)}
    asleep = "import os, time; open('kernel', 'w').write(str(os.getpid())); time.sleep(600)"
    path = write(tmp_path, "import os; print('before', os.environ['TOOLKIT_JWT_SECRET'])", asleep)
    command = [sys.executable, "-m", "toolkit", "run", str(path), "--out", "out.ipynb"]
    process = subprocess.Popen(command, cwd=tmp_path, env=environ, stderr=subprocess.PIPE, text=True)
    begun = tmp_path / "kernel"
    wait_until(lambda: begun.exists() and begun.read_text())
    kernel = psutil.Process(int(begun.read_text()))
    process.send_signal(number)
    _, printed = process.communicate(timeout=PATIENCE)
    assert process.returncode == status
    assert "Traceback" not in printed
    assert names(tmp_path) == {"job.ipynb", "kernel", "kernels", "out.failed.ipynb"}
    [_, before, asleep] = nbformat.read(tmp_path / "out.failed.ipynb", 4).cells[-3:]
    assert (before.outputs[0].text, asleep.outputs) == ("before (a secret, left out)\n", [])
    assert not kernel.is_running()
