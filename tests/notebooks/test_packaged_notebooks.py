"""Notebooks by name: a file of that name first, then the toolkit's own; copies keep what somebody changed."""

import pytest

from toolkit.errors import SettingsError
from toolkit.notebooks.packaged import copy_notebooks, find_notebook, packaged_notebooks

REPORT = "03_missing_evidence_report"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("named", [REPORT, f"{REPORT}.ipynb", f"notebooks/{REPORT}.ipynb", f"notebooks/{REPORT}"])
def test_a_notebook_of_the_toolkit_is_known_by_its_name_anywhere(named):
    assert find_notebook(named) == packaged_notebooks()[REPORT]


def test_a_file_of_the_same_name_comes_first(tmp_path):
    copy_notebooks(tmp_path / "notebooks")
    assert find_notebook(f"notebooks/{REPORT}.ipynb").absolute() == tmp_path / "notebooks" / f"{REPORT}.ipynb"


def test_a_path_elsewhere_never_means_the_toolkits_own():
    with pytest.raises(SettingsError, match=f"Did you mean {REPORT}?"):
        find_notebook(f"mine/{REPORT}.ipynb")


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("missing", f"Did you mean {REPORT}?"),
        ("03_missing_evidense", f"Did you mean {REPORT}?"),
        ("", "comes with 01_"),
    ],
)
def test_an_unknown_name_is_wrong_usage_and_gets_a_suggestion(run, named, told):
    assert told in run("run", named, ends=2, within={}).err


def test_a_changed_copy_is_replaced_only_when_asked_for(tmp_path):
    (first, second, *_), kept = copy_notebooks(tmp_path / "mine")
    assert kept == []
    first.write_text("{}")
    second.unlink()
    assert copy_notebooks(tmp_path / "mine")[1] == [first]
    assert (first.read_text(), second.exists()) == ("{}", True)
    assert copy_notebooks(tmp_path / "mine", replace=True)[1] == []
    assert first.read_bytes() == packaged_notebooks()[first.stem].read_bytes()
