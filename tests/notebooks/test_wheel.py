"""The wheel with the extras audit and notebooks, in an environment of its own, does the main job."""

import json
import re
import shutil
import subprocess
import sys
import sysconfig
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial
from html import unescape
from pathlib import Path
from typing import get_args

import nbformat
import pytest

from tests.integration.test_custody_proof import assert_strangers_accept
from tests.notebooks.test_nightly_job import leaks_in
from tests.support.audit_results import csv_rows
from tests.support.client_rows import client, write_csv
from tests.support.readme_commands import run_the_readme
from tests.support.report_figures import wrong_figures
from tests.unit.test_samples import OF_OTHER_TABLES, UNTOLD, verdict_of
from toolkit.audit.folder import open_audit
from toolkit.contract.codes import CODES, REQUEST_OVERDUE, SALE_GONE
from toolkit.contract.service_rows import JUMPS, code_of
from toolkit.extras import Extra, modules_of
from toolkit.language import LANGUAGES, language
from toolkit.reports import FORMATS
from toolkit.samples.dataset import make_samples

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The programs of an environment that has the wheel and two extras; its dependencies are those of this one."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    no_caches = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "runs")
    for name in ("toolkit", "notebooks"):
        shutil.copytree(ROOT / name, source / name, ignore=no_caches)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    environment = folder / "environment"
    output_of(sys.executable, "-m", "venv", "--without-pip", str(environment))
    [packages] = environment.glob("lib/python*/site-packages")
    left_out = {*get_args(Extra)} - {"audit", "notebooks"}
    extras = sorted({module for extra in left_out for module in modules_of(extra).values()} - {"cryptography"})
    without_extras = f"import sys; sys.modules.update(dict.fromkeys({extras}))"
    (packages / "dependencies.pth").write_text(f"{without_extras}\n{sysconfig.get_path('purelib')}\n")
    pip = (sys.executable, "-m", "pip", "--python", environment, "--disable-pip-version-check", "install")
    output_of(*pip, "--no-deps", "--no-index", "--no-build-isolation", "--ignore-installed", source)
    return environment / "bin"


def test_the_wheel_holds_every_file_of_the_package(installed):
    [packages] = installed.parent.glob("lib/python*/site-packages")
    files = (path.relative_to(ROOT) for path in (ROOT / "toolkit").rglob("*") if path.is_file())
    needed = {path for path in files if path.suffix not in {".md", ".pyc"}}
    assert {path for path in needed if not (packages / path).exists()} == set()


def output_of(*command, cwd=None, environ=None):
    done = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_hands_out_its_notebooks_and_runs_them_by_name(installed, embedded_environment, tmp_path):
    told = partial(output_of, str(installed / "toolkit"), cwd=tmp_path, environ=embedded_environment)
    paths = [Path(each["path"]) for each in json.loads(told("notebooks", "list", "--json"))["notebooks"]]
    assert all(path.is_relative_to(installed.parent) for path in paths)
    assert {path.name for path in paths} == {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}
    clients = write_csv(tmp_path / "clients.csv", [client(1)]).name
    assert Path(told("run", "01_bulk_load_clients", "-p", "files", clients).strip()).parent == tmp_path / "runs"


def test_the_wheel_does_the_main_job_with_two_extras_and_the_readme_goes_on(
    installed, embedded_environment, run, tmp_path, monkeypatch
):
    words, out = ("demo", "--shared"), tmp_path / "reports"
    audits = Path(embedded_environment["TOOLKIT_HOME"], "audits")
    first = output_of(str(installed / "toolkit"), *words, cwd=tmp_path, environ=embedded_environment)
    assert "180 registered, 11 rejected, 1 skipped" in first
    assert (
        "161 of the 193 files, others send the rest: 145 uploaded before, 16 requested, 0 requested again" in first
    )
    assert "10 uploaded by this manifest, 6 of it not there yet" in first
    statuses = Counter(verdict_of(sale.scenario).status for sale in make_samples().sales)
    told = "Audit: {0} sales: {compliant} compliant, {incomplete} incomplete, {conflict} in conflict"
    assert told.format(statuses.total(), **statuses) in first
    assert "Report: reports" in first
    judged = {row["saleId"]: (row["status"], row["missing"], row["problems"]) for row in csv_rows(out)}
    assert judged == deserved()
    assert_everything_appears(
        json.loads((out / "missing-evidence.json").read_text(encoding="utf-8")),
        (out / "missing-evidence.html").read_text(encoding="utf-8"),
    )
    audit = open_audit(max(audits.glob("2*")))
    for folder in (out, audit.folder):
        assert_strangers_accept(Path(folder))
    assert wrong_figures(out) == []
    since = datetime.now(UTC).date() - timedelta(days=28)
    for code in LANGUAGES:
        told = ("--since", since, "--language", code, "--format", ",".join(FORMATS), "--out", tmp_path / code)
        run("report", "--audit", audit.folder, *told, within=embedded_environment)
        assert wrong_figures(tmp_path / code, language(code)) == []
    assert_nothing_leaked(out, embedded_environment)
    monkeypatch.chdir(tmp_path)
    run_the_readme(run, embedded_environment)


def deserved():
    """The sales of the sample that are not compliant, as their scenarios say."""
    verdicts = {sale.id: verdict_of(sale.scenario) for sale in make_samples().sales}
    return {
        sale_id: (told.status, "|".join(piece.evidence_type for piece in told.missing), "|".join(told.problems))
        for sale_id, told in verdicts.items()
        if told.status != "compliant"
    }


def assert_everything_appears(report, page):
    """The sample tells of whatever a report can show: every code of the catalogue among its findings of now."""
    newest = datetime.fromisoformat(report["withdrawals"][0]["withdrawnAt"])
    assert datetime.now(UTC) - newest < timedelta(hours=12)  # that of the story's last day
    codes = {each["code"] for each in report["findings"] if each["status"] != "resolved"}
    codes |= {each["reason"] for each in report["findings"]} - {None}
    codes |= {each["code"] for each in report["unusableFiles"]}
    # Only the sales system deletes sales; speech needs an extra; every recording of the sample can be decoded.
    untold = {*UNTOLD, *OF_OTHER_TABLES, SALE_GONE, "REVIEW_FAILED", "NO_SPEECH", "SILENCE_UNKNOWN"}
    untold |= {*map(code_of, JUMPS), REQUEST_OVERDUE}  # its service has no odd rows, and its persons ask nothing
    assert set(CODES) - codes == untold
    page = page.replace("<wbr>", "")
    shown = unescape(re.sub(r"<(script|style|option)\b.*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL)).lower()
    assert {code for code in CODES if CODES[code].name.lower() not in shown} == untold
    assert all(report["findingCounts"].values()), report["findingCounts"]
    assert [name for name, number in report["changes"].items() if not number] == ["between", "saleGone"]
    assert len({day["present"] for day in report["trend"]}) > 5
    partners = {each["partner"]: each for each in report["partners"]}
    of_nobody = partners.pop("")
    assert (of_nobody["sales"], of_nobody["findings"]) == (0, 2)
    assert len(partners) == 3
    assert all(each["overdue"] and each["trend"] and each["medianDays"] for each in partners.values())
    assert len(report["withdrawals"]) == 3
    assert [each["daysLeft"] <= 9 for each in report["waivers"]] == [True]
    assert {len(each["missing"]) for each in report["rows"]} == {0, 1, 2, 4}
    assert len(report["warnings"]) == 2


def assert_nothing_leaked(out, environ):
    """No executed notebook holds a CPF in any form, a name, an address, or anything of the credentials."""
    credentials = [*Path(environ["TOOLKIT_HOME"], "credentials").glob("*.jsonl")]
    assert {path.stat().st_mode & 0o777 for path in credentials} == {0o600}
    executed = sorted((out / "notebooks").glob("*.ipynb"))
    assert len(executed) == 3
    masked = {f"{person['cpf'][3:6]}.{person['cpf'][6:9]}" for person in make_samples().clients}
    for path in executed:
        assert str(ROOT) not in path.read_text()
        text = "\n".join(str(cell) for cell in nbformat.read(path, 4).cells)
        assert "V-2026-" in text or "clients.csv" in text
        assert leaks_in(text, environ, credentials) == []
        assert [each for each in masked if each in text] == []
