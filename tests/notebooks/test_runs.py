"""`toolkit run`: a notebook runs to its end, or leaves nothing at its place."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import nbformat
import psutil
import pytest

from tests.support.notebook_files import write_notebook
from tests.support.waiting import PATIENCE, wait_until
from toolkit.errors import NotebookFailed
from toolkit.notebooks import running
from toolkit.notebooks.running import run_notebook


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
