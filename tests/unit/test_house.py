"""The project as a whole: the shape of the package, its public face, what its guides say, and what they forget."""

import ast
import doctest
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

import toolkit
from tests.mutants.__main__ import faults
from tests.support.readme_commands import check_usage, commands, paths
from toolkit.contract.evidence import KIND_OF, EvidenceType
from toolkit.contract.rules import GROUP_RULES, REPLACES_ALL
from toolkit.reports import FORMATS
from toolkit.reports.audited import ROW_COLUMNS
from toolkit.reports.wording import COLUMN_NAMES, TYPE_NAMES

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "toolkit"
MODULES = sorted(PACKAGE.rglob("*.py"))


def test_a_module_stands_in_a_room_and_has_at_most_500_lines():
    deep = [
        path for path in MODULES if len(path.relative_to(PACKAGE).parts) > 2 and "migrations" not in path.parts
    ]
    assert deep == []
    assert [path for path in MODULES if len(path.read_text("utf-8").splitlines()) > 500] == []


def test_no_class_name_stands_twice():
    named = defaultdict(list)
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                named[node.name].append(str(path.relative_to(ROOT)))
    assert {name: places for name, places in named.items() if len(places) > 1} == {}


def test_every_planted_fault_fits_the_code_and_names_tests_that_are_there():
    """Change the line in tests/mutants/faults.txt with the code that it names; `make mutants` plants them."""
    for fault in faults():
        assert (ROOT / fault.file).read_text("utf-8").count(fault.before) == 1, fault.name
        for test in fault.tests:
            module, _, function = test.partition("::")
            assert f"def {function.partition('[')[0]}" in (ROOT / module).read_text("utf-8"), fault.name


GUIDES = sorted(
    str(path.relative_to(ROOT))
    for path in (*ROOT.glob("*.md"), *(ROOT / "toolkit").rglob("*.md"), ROOT / "notebooks" / "README.md")
)


def text(path):
    return (ROOT / path).read_text(encoding="utf-8")


def test_an_evidence_type_has_a_kind_a_name_and_a_part_in_the_rules():
    accepted = {kind for rule in GROUP_RULES.values() for each in rule for kind in each.accepts}
    assert set(KIND_OF) == set(TYPE_NAMES) == set(EvidenceType) == accepted | {REPLACES_ALL}


def test_a_report_column_has_a_heading_and_an_explanation():
    explained = text("reports/README.md")
    assert [name for name in ROW_COLUMNS if name not in COLUMN_NAMES or f"`{name}`" not in explained] == []


def test_a_report_format_is_offered_and_explained(run):
    offered = run("report", "--help", within={}).out
    explained = text("reports/README.md")
    assert [name for name in FORMATS if name not in offered or f".{name}`" not in explained] == []


def test_the_version_of_the_project_heads_the_changelog():
    version = tomllib.loads(text("pyproject.toml"))["project"]["version"]
    newest = re.search(r"^## (.+)$", text("CHANGELOG.md"), re.MULTILINE)
    assert re.fullmatch(
        rf"Unreleased \({re.escape(version)}\)|{re.escape(version)} - \d{{4}}-\d\d-\d\d", newest[1]
    )


@pytest.mark.parametrize("guide", GUIDES)
def test_every_path_that_a_guide_names_is_there(guide):
    named = re.findall(r"`((?:toolkit|tests|notebooks|reports|\.ci)/[\w./-]+)`", text(guide))
    assert [path for path in named if "NN_" not in path and not (ROOT / path).exists()] == []
    links = re.findall(r"\]\(([^)#:]+)\)", text(guide))
    assert [link for link in links if not (ROOT / guide).parent.joinpath(link).exists()] == []


README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE_TEXTS = "\n".join(
    (ROOT / path).read_text(encoding="utf-8")
    for path in ("README.md", "notebooks/README.md", "toolkit/jobs/README.md")
)
SYSTEM_VARIABLES = {"DATABASE_URL", "DATABASE_READ_URL"} | {
    f"EVIDENCE_{name}" for name in ("BUCKET", "ROLE_ARN", "PREFIX", "IGNORE_PREFIXES")
}


@pytest.mark.parametrize("line", sorted(set(commands(GUIDE_TEXTS))))
def test_every_command_is_understood(line):
    check_usage(line)


def test_the_example_gives_what_it_says(capsys):
    (example,) = re.findall(r"```python\n(.+?)```", README, flags=re.DOTALL)
    exec(compile(ast.parse(example), "README.md", "exec"), {})
    expected = example.strip().splitlines()[-1].removeprefix("# ")
    assert capsys.readouterr().out.strip() == expected


def test_the_make_targets_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert set(re.findall(r"`make ([a-z]+)", README)) <= targets
    assert {"run", "test", "check", "lab", "bench"} <= targets


def test_every_notebook_has_its_question():
    notebooks = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    for guide in (README, (ROOT / "notebooks" / "README.md").read_text(encoding="utf-8")):
        assert set(re.findall(r"^\| `(\d\d_\w+)` \|", guide, flags=re.MULTILINE)) == notebooks


def test_the_portuguese_page_tells_the_same():
    fact = re.compile(r"^\$ (.+?)(?:\s{2,}#.*)?$|^    (--.+)$|^\| (`\w+`) \||^>>> (.+)$", re.MULTILINE)
    assert fact.findall((ROOT / "README.pt-BR.md").read_text(encoding="utf-8")) == fact.findall(README)


def test_every_variable_of_the_settings_is_described_and_no_other():
    source = (ROOT / "toolkit" / "settings.py").read_text()
    read = {*re.findall(r'"(TOOLKIT_[A-Z_]+)"', source)} | SYSTEM_VARIABLES
    described = {
        name
        for line in (README + (ROOT / "toolkit" / "README.md").read_text(encoding="utf-8")).splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`([A-Z][A-Z_]{5,})`", line.split("|")[1])
    }
    assert described == read


def test_public_names_are_there_and_sorted():
    assert toolkit.__all__ == sorted(toolkit.__all__)
    assert all(hasattr(toolkit, name) for name in toolkit.__all__)


def test_the_example_of_the_package_runs():
    assert doctest.testmod(toolkit).failed == 0


@pytest.mark.parametrize("path", [each for each in paths() if each], ids=" ".join)
def test_every_command_has_help(run, path):
    shown = run(*path, "--help", within={}).out
    assert "Usage: toolkit " + " ".join(path) in shown
    assert len(shown.splitlines()) > 4
    assert re.search(r"^  Examples?:\n    \S", shown, re.MULTILINE)
    assert not re.search(r"\w\.\.\.$", shown.replace("ARGS]...", "").partition("Commands:")[2], re.MULTILINE)


HEAVY = {
    *("alembic", "boto3", "ibis", "jinja2", "numpy", "pandas", "papermill", "psutil"),
    *("psycopg", "pyarrow", "sqlalchemy", "starlette", "tqdm", "urllib3"),
}
"""The packages that take longest to load."""


CALLS = """
from toolkit.cli import main
for call in (["--help"], ["--version"], ["notebooks", "list"]):
    assert main(call, {}) == 0
"""


@pytest.mark.parametrize(
    ("program", "loaded"),
    [(CALLS, []), ("import toolkit.evidence.inspection", ["numpy"])],
    ids=["commands", "the process that looks at files"],
)
def test_what_needs_no_database_loads_nothing_heavy(program, loaded):
    shown = f"{program}\nimport sys; print(sorted({HEAVY} & set(sys.modules)))"
    printed = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True).stdout
    assert printed.endswith(f"{loaded}\n")
