"""The wheel in an environment of its own, without extras, does the main job outside of a checkout."""

import json
import shutil
import subprocess
import sys
import sysconfig
from collections import Counter
from pathlib import Path

import pytest

from toolkit.extras import MODULES
from toolkit.samples.dataset import make_samples

ROOT = Path(__file__).parents[2]
BUILD = "import sys; from setuptools.build_meta import build_wheel; print(build_wheel(sys.argv[1]))"


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The programs of an environment that has the wheel without extras; its dependencies are those of this one."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    no_caches = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "runs")
    for name in ("toolkit", "notebooks"):
        shutil.copytree(ROOT / name, source / name, ignore=no_caches)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    run(sys.executable, "-c", BUILD, str(folder), cwd=source)
    [wheel] = folder.glob("*.whl")
    environment = folder / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", str(environment))
    python = environment / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check")
    run(*pip, "install", "--no-deps", "--no-index", str(wheel))
    [packages] = environment.glob("lib/python*/site-packages")
    extras = sorted({module for modules in MODULES.values() for module in modules} - {"cryptography"})
    without_extras = f"import sys; sys.modules.update(dict.fromkeys({extras}))"
    (packages / "dependencies.pth").write_text(f"{without_extras}\n{sysconfig.get_path('purelib')}\n")
    return environment / "bin"


def test_the_wheel_holds_every_file_of_the_package(installed):
    [packages] = installed.parent.glob("lib/python*/site-packages")
    files = (path.relative_to(ROOT) for path in (ROOT / "toolkit").rglob("*") if path.is_file())
    needed = {path for path in files if path.suffix not in {".md", ".pyc"}}
    assert {path for path in needed if not (packages / path).exists()} == set()


def run(*command: str, cwd: Path | None = None, environ: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_hands_out_its_notebooks_and_runs_them_by_name(installed, embedded_environment, tmp_path):
    toolkit = str(installed / "toolkit")
    listed = json.loads(run(toolkit, "notebooks", "list", "--json", cwd=tmp_path, environ=embedded_environment))
    paths = [Path(each["path"]) for each in listed["notebooks"]]
    assert all(path.is_relative_to(installed.parent) for path in paths)
    run(toolkit, "notebooks", "copy", "mine", cwd=tmp_path, environ=embedded_environment)
    assert {path.name for path in (tmp_path / "mine").iterdir()} == {
        path.name for path in (ROOT / "notebooks").glob("*.ipynb")
    }
    out = run(toolkit, "run", "01_bulk_load_clients", cwd=tmp_path, environ=embedded_environment)
    assert Path(out.strip()).parent == tmp_path / "runs"


def test_the_wheel_does_the_main_job_without_extras(installed, embedded_environment, tmp_path):
    out = run(str(installed / "toolkit"), "demo", "--shared", cwd=tmp_path, environ=embedded_environment)
    judged = Counter(sale.scenario.verdict.status for sale in make_samples().sales)
    told = "Audit: {0} sales: {compliant} compliant, {incomplete} incomplete, {conflict} in conflict"
    assert told.format(judged.total(), **judged) in out
    assert (tmp_path / "reports" / "missing-evidence.html").is_file()
    executed = (tmp_path / "reports" / "notebooks" / "03_missing_evidence_report.ipynb").read_text()
    assert str(ROOT) not in executed
