"""The README tells the truth: commands exist, the example runs, variables are read, files are there."""

import ast
import re
from pathlib import Path

import pytest

from tests.support.readme_commands import check_usage, commands

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDES = "\n".join(
    (ROOT / path).read_text(encoding="utf-8")
    for path in ("README.md", "notebooks/README.md", "toolkit/jobs/README.md")
)
SYSTEM_VARIABLES = {"DATABASE_URL", "DATABASE_READ_URL"} | {
    f"EVIDENCE_{name}" for name in ("BUCKET", "ROLE_ARN", "PREFIX", "IGNORE_PREFIXES")
}


@pytest.mark.parametrize("line", sorted(set(commands(GUIDES))))
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
