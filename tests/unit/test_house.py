"""The project as a whole: its shape, its public face, what its guides say and forget, and how it is set up."""

import ast
import doctest
import os
import re
import runpy
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import get_args

import pytest

import toolkit
from tests.mutants.__main__ import faults
from tests.support.message_catalogue import english_in
from tests.support.readme_commands import check_usage, commands, paths
from toolkit.contract.evidence import KIND_OF, EvidenceType
from toolkit.contract.rules import GROUP_RULES, REPLACES_ALL
from toolkit.errors import NotInstalled
from toolkit.extras import Extra, modules_of, require
from toolkit.reports import FORMATS
from toolkit.reports.audited import ROW_COLUMNS
from toolkit.reports.wording import COLUMN_NAMES, TYPE_NAMES

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "toolkit"
MODULES = sorted(PACKAGE.rglob("*.py"))


def test_a_module_stands_in_a_room_and_has_at_most_500_lines():
    assert [path for path in PACKAGE.glob("*/*/**/*.py") if "migrations" not in path.parts] == []
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


PROJECT = tomllib.loads(text("pyproject.toml"))["project"]


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
    version = re.escape(PROJECT["version"])
    newest = re.search(r"^## (.+)$", text("CHANGELOG.md"), re.MULTILINE)
    assert re.fullmatch(rf"Unreleased \({version}\)|{version} - \d{{4}}-\d\d-\d\d", newest[1])


@pytest.mark.parametrize("guide", GUIDES)
def test_every_path_that_a_guide_names_is_there(guide):
    named = re.findall(r"`((?:toolkit|tests|notebooks|reports|\.ci)/[\w./-]+)`", text(guide))
    assert [path for path in named if "NN_" not in path and not (ROOT / path).exists()] == []
    links = re.findall(r"\]\(([^)#:]+)\)", text(guide))
    assert [link for link in links if not (ROOT / guide).parent.joinpath(link).exists()] == []


README = text("README.md")
GUIDE_TEXTS = "\n".join(map(text, ("README.md", "notebooks/README.md", "toolkit/jobs/README.md")))
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
    targets = set(re.findall(r"^([a-z]+):", text("Makefile"), flags=re.MULTILINE))
    assert set(re.findall(r"(?:`|\$ )make ([a-z]+)", README + text("CONTRIBUTING.md"))) <= targets


def test_every_notebook_has_its_question():
    notebooks = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    for guide in (README, text("notebooks/README.md")):
        assert set(re.findall(r"^\| `(\d\d_\w+)` \|", guide, flags=re.MULTILINE)) == notebooks


def test_the_portuguese_page_tells_the_same():
    fact = re.compile(r"^\$ (.+?)(?:\s{2,}#.*)?$|^    (--.+)$|^\| (`\w+`) \||^>>> (.+)$", re.MULTILINE)
    assert fact.findall(text("README.pt-BR.md")) == fact.findall(README)


def test_every_variable_of_the_settings_is_described_and_no_other():
    read = {*re.findall(r'"(TOOLKIT_[A-Z_]+)"', text("toolkit/settings.py"))} | SYSTEM_VARIABLES
    described = {
        name
        for line in (README + text("toolkit/README.md")).splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`([A-Z][A-Z_]{5,})`", line.split("|")[1])
    }
    assert described == read


def test_the_example_of_the_package_runs():
    assert doctest.testmod(toolkit).failed == 0


@pytest.mark.parametrize("path", [*paths()], ids=" ".join)
def test_every_command_has_help_in_each_language(run, path):
    assert english_in(run(*path, "--help", within={"TOOLKIT_LANGUAGE": "pt-BR"}).out) == {}
    shown = run(*path, "--help", within={}).out
    assert "Usage: toolkit " + " ".join(path) in shown
    assert re.search(r"^  (Examples?|A first walk):\n    \S", shown, re.MULTILINE)
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


def ran(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


@pytest.mark.parametrize(
    ("program", "loaded"),
    [(CALLS, []), ("import toolkit.evidence.inspection", ["numpy"])],
    ids=["commands", "the process that looks at files"],
)
def test_what_needs_no_database_loads_nothing_heavy(program, loaded):
    shown = f"{program}\nimport sys; print(sorted({HEAVY} & set(sys.modules)))"
    assert ran(sys.executable, "-c", shown, check=True).stdout.endswith(f"{loaded}\n")


EXTRAS = get_args(Extra)
UV = runpy.run_path(str(ROOT / ".make" / "uv.py"), run_name="uv")
WHEELS = runpy.run_path(str(ROOT / ".make" / "wheels.py"), run_name="wheels")

PIP = """
[global]
index-url = https://a.example/simple
extra-index-url =
  https://b.example
  https://c.example
find-links = /wheels /more
proxy = http://p
[install]
proxy = http://q
"""


def test_what_pip_is_told_is_told_to_uv_but_for_what_uv_itself_is_told(tmp_path):
    """A variable wins over a file, and install over global."""
    (tmp_path / "pip.conf").write_text(PIP)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    environ |= {"PIP_CONFIG_FILE": str(tmp_path / "pip.conf"), "PIP_INDEX_URL": "https://e.example"}
    listed = subprocess.check_output([sys.executable, "-m", "pip", "config", "list"], env=environ, text=True)
    expected = {"UV_DEFAULT_INDEX": "https://e.example", "UV_INDEX": "https://b.example https://c.example"}
    expected |= {"UV_FIND_LINKS": "/wheels,/more", "ALL_PROXY": "http://q"}
    found = UV["uv_settings"](listed, {})
    assert {name: " ".join(found[name].split()) for name in expected} == expected
    assert not set(expected) & set(UV["uv_settings"](listed, dict.fromkeys(expected, "mine")))


@pytest.mark.parametrize("lock", sorted(ROOT.glob("*.lock")), ids=lambda lock: lock.name)
def test_each_locked_package_has_a_hash(lock):
    packages = WHEELS["requirements"](lock.read_text("utf-8"))
    assert packages
    assert [name for (name, _), requirement in packages.items() if "--hash=sha256:" not in requirement] == []


def installed(folder, wheel, files):
    """Install a package by hand, as a wheel of this kind."""
    about = folder / "sound-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: sound\nVersion: 1.0\n")
    (about / "WHEEL").write_text(wheel)
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    (about / "RECORD").write_text("".join(f"{path},,\n" for path in files))


ANY_PLATFORM = "Root-Is-Purelib: true\nTag: py3-none-any\n"
HASH = f"    --hash=sha256:{'0' * 64}"
LOCK = "\n".join(["sound==1.0 \\", f"{HASH} \\", f"{HASH} \\", HASH, "    # via a"])


@pytest.mark.parametrize(
    ("wheel", "files", "lock", "again"),
    [
        (ANY_PLATFORM, {"sound.py": b""}, LOCK, True),
        (ANY_PLATFORM, {"sound.py": b"", "lib.so": b"\x7fELF"}, LOCK, False),
        ("Root-Is-Purelib: false\n", {"sound.py": b""}, LOCK, False),
        (ANY_PLATFORM, {"sound.py": b""}, LOCK.replace("    --hash", "", 1), False),
    ],
    ids=["without the library", "with the library", "for this platform", "no other"],
)
def test_a_wheel_for_every_platform_is_replaced_where_the_lock_has_others(
    tmp_path, monkeypatch, wheel, files, lock, again
):
    installed(tmp_path, wheel, files)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    found = WHEELS["for_every_platform"](lock)
    assert len(found) == again
    assert all(text.count("--hash") == 3 and "via" not in text for text in found)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"sound.py": b"raise OSError('cannot load library libsndfile.so')"}, "cannot load library libsndfile.so"),
        ({"sound/__init__.py": b"1 / 0"}, "division by zero"),
        ({"sound.py": b"", "sound.libs/libx.so.1": b"\x7fELF"}, "libx.so.1"),
        ({"sound.py": b"import a_package_that_is_optional"}, ""),
        ({"sound.py": b"value = 1"}, ""),
    ],
)
def test_setting_up_names_a_package_that_does_not_work(tmp_path, files, said):
    installed(tmp_path, ANY_PLATFORM, files)
    lock = tmp_path / "requirements.lock"
    lock.write_text(LOCK)
    done = ran(
        sys.executable, ROOT / ".make" / "imports.py", lock, env={**os.environ, "PYTHONPATH": str(tmp_path)}
    )
    assert done.returncode == bool(said), done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_what_the_shell_says_for_other_python_projects_stays_out_of_make():
    others = {"PYTHONPATH": "elsewhere", "PYTHONWARNINGS": "error", "PIP_USER": "1", "PIP_TARGET": "elsewhere"}
    target = ("make", "--silent", "--eval", "environment: ; @env", "environment")
    seen = ran(*target, cwd=ROOT, env=os.environ | others, check=True)
    assert not {*others} & {line.partition("=")[0] for line in seen.stdout.splitlines()}


def test_the_last_part_of_ci_runs_what_a_new_machine_leaves_out():
    last = (ROOT / ".ci" / "run").read_text()
    optional = ("needs_browser", "needs_openssl", "object_gateway", "shutil.which(")
    modules = [
        path
        for path in (ROOT / "tests").glob("*/test_*.py")
        if path != Path(__file__) and any(word in path.read_text() for word in optional)
    ]
    assert len(modules) > 5
    assert [path.stem for path in modules if path.stem.removeprefix("test_") not in last] == []


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


def without(modules, call):
    block = f"import sys; sys.modules.update(dict.fromkeys({[*modules]}))"
    return ran(sys.executable, "-c", f"{block}\n{call}")


BASE = ("clients load", "sales load", "sales complete", "credentials request", "db map", "up", "status")


def test_the_core_works_without_any_extra():
    extras = sorted({module for extra in EXTRAS for module in modules_of(extra).values()})
    commands = [[*each.split(), "--help"] for each in BASE]
    calls = (
        f"from toolkit.cli import main; print([main(each, {{}}) for each in {commands}]); import toolkit.partner"
    )
    done = without(extras, calls)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"{[0] * len(commands)}\n")


@pytest.mark.parametrize(
    ("extra", "command"),
    [
        ("embedded", f"clients load {__file__}"),
        ("serve", "serve"),
        ("serve", "token issue --subject p"),
        ("audit", "audit"),
    ],
)
def test_who_lacks_an_extra_is_told_what_to_install(extra, command, tmp_path):
    call = f"main({command.split()}, {{'TOOLKIT_HOME': {str(tmp_path)!r}}})"
    done = without(modules_of(extra).values(), f"from toolkit.cli import main; sys.exit({call})")
    [line] = done.stderr.splitlines()
    assert (done.returncode, line.partition("lacks: ")[2]) == (1, f"pip install 'evidence-toolkit[{extra}]'")


def test_who_lacks_pdf_is_told_what_to_install(tmp_path, monkeypatch):
    for module in modules_of("pdf").values():
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(NotInstalled, match=re.escape("pip install 'evidence-toolkit[pdf]'")):
        FORMATS["pdf"](None, tmp_path / "report.pdf")
