"""Each end of a notebook has its code, leaves no process and no half file, and is mended by the next start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest

from tests.support.embedded_homes import small_disk
from tests.support.notebook_files import write_notebook
from toolkit.cli import main
from toolkit.jobs.running import LeaseHolder

JOBS = """
[jobs.nightly]
schedule = "0 2 * * *"
grace = "2d"
timeout = "1h"

[[jobs.nightly.steps]]
name = "ends"
command = "run NOTEBOOK -p out {out} --out {out}/ends.ipynb"
"""


class Office:
    """A folder with a job of one notebook, whose last cell does what a test says until that is mended."""

    def __init__(self, folder: Path, environ: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        self.out = folder / "out"
        ours = {"TOOLKIT_JOBS": str(folder / "jobs.toml"), "TOOLKIT_JOBS_OUT": str(self.out)}
        self.environ = {**environ, **ours}

    def write(self, ends: str) -> None:
        (self.folder / "jobs.toml").write_text(JOBS.replace("NOTEBOOK", str(self.folder / "ends.ipynb")))
        sources = [
            f"import os, time\nfrom pathlib import Path\nPath('{self.folder}/pid').write_text(str(os.getpid()))",
            "Path(out, 'half').write_text('x')\nprint('before')",
            f"if not Path('{self.folder}/mended').exists():\n    {ends}",
        ]
        write_notebook(self.folder / "ends.ipynb", *sources, parameters="out = '.'  # folder")

    def run(self) -> tuple[int, dict[str, Any]]:
        status = main(["job", "run", "nightly", "--json"], self.environ)
        return status, json.loads(self.capsys.readouterr().out)

    def fails_and_is_mended(self, code: str) -> None:
        """Run the job, mend it, and run it again."""
        status, told = self.run()
        assert (status, told["code"]) == (1, code), told
        assert not psutil.pid_exists(int((self.folder / "pid").read_text()))
        [final] = (self.out / "nightly").iterdir()
        failed = final / "ends.failed"
        assert [path.name for path in final.iterdir()] == [failed.name]
        assert "before" in str(nbformat.read(failed / "ends.failed.ipynb", 4))
        (self.folder / "mended").touch()
        assert self.run()[0] == 0
        assert [path.name for path in final.iterdir()] == ["ends"]
        assert sorted(path.name for path in (final / "ends").iterdir()) == ["ends.ipynb", "half"]


@pytest.fixture
def office(embedded_environment, tmp_path, capsys):
    return Office(tmp_path, embedded_environment, capsys)


@pytest.mark.parametrize(
    ("ends", "code"), [("1 / 0", "NOTEBOOK_FAILED"), ("os.kill(os.getpid(), 9)", "KERNEL_DIED")]
)
def test_an_end_before_the_end_has_its_code_and_is_mended(ends, code, office):
    office.write(ends)
    office.fails_and_is_mended(code)


def test_a_run_whose_time_is_up_has_its_code(office, monkeypatch):
    """It is up as soon as the last cell began, however long a busy machine took to come there."""
    last, mended = office.folder / "last", office.folder / "mended"
    remaining = property(lambda _: 0.0 if last.exists() and not mended.exists() else 600.0)
    monkeypatch.setattr(LeaseHolder, "remaining", remaining)
    office.write(f"Path('{last}').touch(); time.sleep(600)")
    office.fails_and_is_mended("TIMED_OUT")


def test_a_disk_that_a_cell_finds_full_has_its_code(office, tmp_path):
    with small_disk(tmp_path / "small", megabytes=1):
        office.write(f"Path('{tmp_path}/small/filler').write_bytes(bytes(1 << 24))")
        office.fails_and_is_mended("DISK_FULL")
