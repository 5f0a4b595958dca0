"""`toolkit run`: a notebook runs to its end, or leaves nothing at its place."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time

import nbformat
import psutil
import pytest

from tests.support.notebook_files import write_notebook
from tests.support.waiting import PATIENCE, wait_until
from toolkit.cli import main
from toolkit.errors import NotebookFailed
from toolkit.notebooks import running
from toolkit.notebooks.packaged import RESULT_TYPE
from toolkit.notebooks.running import run_notebook


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "odd {name} with spaces"
    folder.mkdir()
    return folder


def write(folder, *sources):
    return write_notebook(folder / "job.ipynb", *sources, parameters='cpf = "0"  # whose\nfiles = []')


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_values_reach_the_notebook_as_they_were_written(folder):
    path = write(folder, "print(repr(cpf), files)", "import os; print(sorted(os.environ.get('MARK')))")
    out = folder / "done" / "out.ipynb"
    given = [("cpf", "00123456789"), ("files", "a.csv"), ("files", "b.csv")]
    run = run_notebook(path, given, out, environ={"MARK": "x"})
    outputs = [cell.outputs[0].text for cell in nbformat.read(out, 4).cells if cell.get("outputs")]
    assert outputs == ["'00123456789' ['a.csv', 'b.csv']\n", "['x']\n"]
    assert (run.path, names(out.parent)) == (out, {"out.ipynb"})


def test_an_executed_notebook_and_what_its_kernel_writes_are_for_owner_and_group(folder):
    path = write(folder, f"open({str(folder / 'written')!r}, 'w').close()")
    assert main(["run", str(path), "--out", str(folder / "out.ipynb")], {}) == 0
    assert {stat.S_IMODE((folder / name).stat().st_mode) for name in ("out.ipynb", "written")} == {0o640}


def test_what_a_notebook_found_can_decide_the_exit_status(run, folder):
    found = {"rejected": 2, "needsAttention": True}
    shown = {"text/plain": "2 rejected", RESULT_TYPE: found}
    path = write(folder, f"from IPython.display import display\ndisplay({shown}, raw=True)")
    out = folder / "out.ipynb"
    printed = run("run", path, "--out", out, "--fail-on", "attention", "--json", ends=3, within={}).told
    assert (printed["out"], printed["results"]) == (str(out), [found])


def test_an_error_of_others_by_a_name_of_ours_is_not_quoted(folder):
    query = "import pandas, sqlalchemy\npandas.read_sql('SELECT maria', sqlalchemy.create_engine('sqlite://'))"
    path = write(folder, query)
    with pytest.raises(NotebookFailed, match=r": DatabaseError: \(its text is left out"):
        run_notebook(path, out=folder / "out.ipynb", environ={})
    kept = nbformat.read(folder / "out.failed.ipynb", 4)
    assert "maria" not in json.dumps([cell.get("outputs") for cell in kept.cells])


def test_a_failed_run_leaves_what_was_there_and_quotes_no_data(folder):
    path = write(
        folder, "print('before')", "def load(row):\n    raise ValueError(row.upper())", "load('m' + 'aria')"
    )
    out = folder / "out.ipynb"
    out.write_text("yesterday's")
    with pytest.raises(NotebookFailed, match=r"failed at In \[5\]: ValueError: \(its text is left out"):
        run_notebook(path, [("cpf", "1")], out, environ={})
    assert out.read_text() == "yesterday's"
    assert names(folder) == {"job.ipynb", "out.ipynb", "out.failed.ipynb"}
    failed = (folder / "out.failed.ipynb").read_text()
    assert "before" in failed
    assert "Cell In[4], line 2" in failed
    assert "MARIA" not in failed


def test_leaving_early_is_a_failure(folder):
    with pytest.raises(NotebookFailed, match=r"left at In \[2\], before its end"):
        run_notebook(write(folder, "import sys; sys.exit(0)", "print(1)"), out=folder / "out.ipynb", environ={})
    assert "out.ipynb" not in names(folder)


def test_a_run_that_takes_too_long_is_stopped_with_its_kernel(folder, monkeypatch):
    begun = folder / "begun"
    path = write(folder, f"import os; open({str(begun)!r}, 'w'); print(os.getpid())", "while True: pass")
    spent = property(lambda _: 598 + time.time() - begun.stat().st_mtime if begun.exists() else 0.0)
    monkeypatch.setattr(running.Watch, "seconds", spent)
    with pytest.raises(NotebookFailed, match="took longer than 600 seconds"):
        run_notebook(path, out=folder / "out.ipynb", timeout=600, environ={})
    assert names(folder) == {"begun", "job.ipynb", "out.failed.ipynb"}
    [kernel] = [cell.outputs[0].text for cell in nbformat.read(folder / "out.failed.ipynb", 4).cells[1:2]]
    assert not psutil.pid_exists(int(kernel))


def test_no_executed_notebook_keeps_a_secret_of_its_environment(folder):
    secrets = {"DATABASE_URL": "postgresql://ana:gehe%C3%AFm-1@db/x", "AWS_SECRET_ACCESS_KEY": 'geheim"2'}
    path = write(
        folder, "import os; [print(os.environ[name]) for name in ('DATABASE_URL', 'AWS_SECRET_ACCESS_KEY')]"
    )
    run_notebook(path, out=folder / "out.ipynb", environ={**secrets, "MARK": "geheim"})
    write(folder, "import os; print(os.environ['DATABASE_URL'], 'geheïm-1')", "1 / 0")
    with pytest.raises(NotebookFailed):
        run_notebook(path, out=folder / "broken.ipynb", environ=secrets)
    for name, number in (("out.ipynb", 2), ("broken.failed.ipynb", 3)):
        kept = nbformat.read(folder / name, 4)
        assert str(kept).count("(a secret, left out)") == number
        assert not re.search("gehe(im|ïm|%)", json.dumps([cell.get("outputs") for cell in kept.cells]))


def test_a_signal_stops_the_run_with_its_kernel_and_keeps_apart_what_ran(tmp_path):
    runs, environ = [], os.environ | {"TOOLKIT_JWT_SECRET": "geheim-jwt"}
    for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        folder = tmp_path / number.name
        folder.mkdir()
        asleep = "import os, time; open('kernel', 'w').write(str(os.getpid())); time.sleep(600)"
        path = write(folder, "import os; print('before', os.environ['TOOLKIT_JWT_SECRET'])", asleep)
        command = [sys.executable, "-m", "toolkit", "run", str(path), "--out", "out.ipynb"]
        process = subprocess.Popen(command, cwd=folder, env=environ, stderr=subprocess.PIPE, text=True)
        runs.append((folder, number, status, process))
    for folder, number, status, process in runs:
        wait_until(lambda folder=folder: (folder / "kernel").exists() and (folder / "kernel").read_text())
        kernel = psutil.Process(int((folder / "kernel").read_text()))
        process.send_signal(number)
        _, printed = process.communicate(timeout=PATIENCE)
        assert process.returncode == status
        assert "Traceback" not in printed
        assert names(folder) == {"job.ipynb", "kernel", "out.failed.ipynb"}
        [_, before, asleep] = nbformat.read(folder / "out.failed.ipynb", 4).cells[-3:]
        assert (before.outputs[0].text, asleep.outputs) == ("before (a secret, left out)\n", [])
        assert not kernel.is_running()
