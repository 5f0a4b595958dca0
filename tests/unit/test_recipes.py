"""The recipes in CONTRIBUTING.md hold: a part that is forgotten in one place is noticed."""

import re
import tomllib
from pathlib import Path

import pytest

from toolkit.contract.evidence import KIND_OF, EvidenceType
from toolkit.contract.rules import GROUP_RULES, REPLACES_ALL
from toolkit.reports import FORMATS
from toolkit.reports.audited import ROW_COLUMNS
from toolkit.reports.wording import COLUMN_NAMES, TYPE_NAMES

ROOT = Path(__file__).parents[2]
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
