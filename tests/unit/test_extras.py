"""Extras: what each brings, and the sentence for those who lack it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from toolkit.errors import NotInstalled
from toolkit.extras import Extra, modules_of, require
from toolkit.reports import FORMATS

EXTRAS = get_args(Extra)
PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def names(requirements):
    return {re.match(r"[\w-]+", each)[0].lower() for each in requirements}


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_is_known_by_the_modules_of_its_packages(extra):
    require(extra, "Tests")
    assert modules_of(extra).keys() == names(PROJECT["optional-dependencies"][extra])


def test_extras_are_no_part_of_a_small_core():
    [everything] = PROJECT["optional-dependencies"]["all"]
    assert everything == f"evidence-toolkit[{','.join(EXTRAS)}]"
    assert {name for extra in EXTRAS for name in modules_of(extra)} & names(PROJECT["dependencies"]) == set()
    assert len(PROJECT["dependencies"]) <= 20


@pytest.mark.parametrize("command", [["audit"], ["up"], ["clients", "load", __file__]], ids=" ".join)
def test_who_lacks_the_embedded_services_is_told_what_to_install(run, command, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ministack", None)
    [line] = run(*command, ends=1, within={"TOOLKIT_HOME": str(tmp_path)}).err.splitlines()
    assert line.endswith("which this installation lacks: pip install 'evidence-toolkit[embedded]'")


def without(modules, call):
    block = f"import sys; sys.modules.update(dict.fromkeys({[*modules]}))"
    return subprocess.run([sys.executable, "-c", f"{block}\n{call}"], capture_output=True, text=True)


@pytest.mark.parametrize("command", [["serve"], ["token", "issue", "--subject", "p"]], ids=" ".join)
def test_who_lacks_serving_is_told_what_to_install(command):
    done = without(modules_of("serve").values(), f"from toolkit.cli import main; sys.exit(main({command}))")
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.endswith("pip install 'evidence-toolkit[serve]'")


BASE = ("clients load", "sales load", "sales complete", "credentials request", "db map", "up", "status")


def test_the_core_works_without_any_extra():
    extras = sorted({module for extra in EXTRAS for module in modules_of(extra).values()})
    commands = [[*each.split(), "--help"] for each in BASE]
    calls = f"from toolkit.cli import main; print([main(each) for each in {commands}]); import toolkit.partner"
    done = without(extras, calls)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"{[0] * len(commands)}\n")
    done = without(extras, "from toolkit.cli import main; sys.exit(main(['audit']))")
    assert done.stderr.rstrip().endswith("pip install 'evidence-toolkit[audit]'")


def test_who_lacks_pdf_is_told_what_to_install(tmp_path, monkeypatch):
    for module in modules_of("pdf").values():
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(NotInstalled, match=re.escape("pip install 'evidence-toolkit[pdf]'")):
        FORMATS["pdf"](None, tmp_path / "report.pdf")
