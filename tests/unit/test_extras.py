"""Extras: what each brings, and the sentence for those who lack it."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from toolkit.errors import NotInstalled
from toolkit.extras import MODULES
from toolkit.reports import FORMATS

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def names(requirements: list[str]) -> set[str]:
    return {re.match(r"[\w-]+", each)[0].lower() for each in requirements}


def test_the_modules_of_an_extra_are_those_of_its_packages():
    distributions = packages_distributions()
    declared = {extra: names(PROJECT["optional-dependencies"][extra]) for extra in MODULES}
    assert {
        extra: {distributions[each][0].lower().replace("_", "-") for each in modules}
        for extra, modules in MODULES.items()
    } == declared


def test_all_means_every_extra():
    [everything] = PROJECT["optional-dependencies"]["all"]
    assert everything == f"evidence-toolkit[{','.join(sorted(MODULES))}]"


def test_no_extra_is_part_of_the_core():
    optional = {name for extra in MODULES for name in names(PROJECT["optional-dependencies"][extra])}
    assert optional & names(PROJECT["dependencies"]) == set()


@pytest.mark.parametrize("command", [["audit"], ["up"], ["clients", "load", __file__]], ids=" ".join)
def test_who_lacks_the_embedded_services_is_told_what_to_install(run, command, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ministack", None)
    [line] = run(*command, ends=1, within={"TOOLKIT_HOME": str(tmp_path)}).err.splitlines()
    assert line.endswith("which this installation lacks: pip install 'evidence-toolkit[embedded]'")


@pytest.mark.parametrize(
    "command", [["serve"], ["token", "issue", "--subject", "p"], ["serve", "--help"]], ids=" ".join
)
def test_who_lacks_serving_is_told_what_to_install(command):
    block = f"import sys; sys.modules.update(dict.fromkeys({MODULES['serve']}))"
    call = f"from toolkit.cli import main; sys.exit(main({command}))"
    done = subprocess.run([sys.executable, "-c", f"{block}\n{call}"], capture_output=True, text=True)
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.endswith("pip install 'evidence-toolkit[serve]'")


BASE = """
    clients load --help / sales load --help / sales complete --help / credentials request --help / db map --help
    up --help / status --help
"""


def test_the_core_works_without_any_extra():
    block = f"import sys; sys.modules.update(dict.fromkeys({sorted({m for ms in MODULES.values() for m in ms})}))"
    commands = [line.split() for each in BASE.strip().splitlines() for line in each.split("/")]
    calls = f"from toolkit.cli import main; print([main(each) for each in {commands}]); import toolkit.partner"
    done = subprocess.run([sys.executable, "-c", f"{block}\n{calls}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"{[0] * len(commands)}\n")
    refused = "from toolkit.cli import main; sys.exit(main(['audit']))"
    done = subprocess.run([sys.executable, "-c", f"{block}\n{refused}"], capture_output=True, text=True)
    assert done.stderr.rstrip().endswith("pip install 'evidence-toolkit[audit]'")


def test_the_core_has_at_most_twenty_dependencies():
    assert len(PROJECT["dependencies"]) <= 20


def test_who_lacks_pdf_is_told_what_to_install(tmp_path, monkeypatch):
    for module in MODULES["pdf"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(NotInstalled, match=re.escape("pip install 'evidence-toolkit[pdf]'")):
        FORMATS["pdf"](None, tmp_path / "report.pdf")
