"""`-p NAME VALUE`: known names only, and each value of its default's type."""

from pathlib import Path

import nbformat
import pytest

from toolkit.errors import NotebookFailed, SettingsError
from toolkit.notebooks.parameters import chosen_values, read_parameters
from toolkit.reports import DEFAULT_FORMATS, FORMATS

CELL = """\
cpf = "000"  # whose
count = 3  # how many
ratio = 0.5
dry_run = True  # look only
files = []  # which ones
sizes = [1]
options = {}
as_of = ""
"""


def notebook(source, tags):
    cell = nbformat.v4.new_code_cell(source, metadata={"tags": tags})
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Title"), cell])


PARAMETERS = read_parameters(notebook(CELL, ["parameters"]))


def chosen(*given):
    return chosen_values(PARAMETERS, given, "some.ipynb")


def test_the_report_notebook_names_every_format_and_writes_what_the_command_does():
    path = Path(__file__).parents[2] / "notebooks" / "03_missing_evidence_report.ipynb"
    parameters = read_parameters(nbformat.read(path, as_version=4))
    assert parameters["formats"].described.endswith(", ".join(FORMATS))
    assert parameters["formats"].default == ",".join(DEFAULT_FORMATS)


def test_parameters_are_read_with_default_and_comment():
    assert [parameter.described for parameter in PARAMETERS.values()][:3] == [
        "cpf = '000'   whose",
        "count = 3   how many",
        "ratio = 0.5",
    ]
    assert read_parameters(notebook(CELL, [])) == {}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("cpf", "00123456789", "00123456789"),
        ("cpf", "1e3", "1e3"),
        ("as_of", "2026-11-01", "2026-11-01"),
        ("count", "-7", -7),
        ("ratio", "1", 1.0),
        ("dry_run", "False", False),
        ("files", "a, b.csv", ["a, b.csv"]),
        ("files", '["a", "b"]', ["a", "b"]),
        ("sizes", "[2, 3]", [2, 3]),
        ("sizes", "2", [2]),
        ("options", '{"a": 1}', {"a": 1}),
    ],
)
def test_a_text_becomes_a_value_of_the_default_s_type(name, text, value):
    [(_, found)] = chosen((name, text)).items()
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("count", "1.5", "count must be a whole number"),
        ("count", "1_000", "count must be a whole number"),
        ("count", "٣", "count must be a whole number"),
        ("ratio", "nan", "ratio must be a number"),
        ("dry_run", "yes", "dry_run must be true or false"),
        ("sizes", "[1, true]", "sizes must be a list of int values"),
        ("options", "[]", "options must be a table"),
    ],
)
def test_a_text_that_does_not_fit_is_refused(name, text, message):
    with pytest.raises(SettingsError, match=message):
        chosen((name, text))


def test_an_unknown_name_is_refused_with_those_that_there_are():
    with pytest.raises(SettingsError, match=r"no parameter 'dryrun'(?s:.*)dry_run = True   look only"):
        chosen(("dryrun", "true"))
    with pytest.raises(SettingsError, match="takes no parameters"):
        chosen_values({}, [("a", "1")], "some.ipynb")


@pytest.mark.parametrize(
    "secret", ["postgresql://ana:hunter2@host/sales", "eyJhbGciOiJIUzI1NiJ9.e30.abc", "AKIAABCDEFGHIJKLMNOP"]
)
def test_a_secret_is_refused_and_not_repeated(secret):
    with pytest.raises(SettingsError, match="looks like a secret") as refused:
        chosen(("as_of", secret))
    assert secret not in str(refused.value)


@pytest.mark.parametrize("source", ["a = 1\nb = a + 1", "import os", "a, b = 1, 2", "a = 1\nprint(a)", "a: int"])
def test_a_parameters_cell_with_more_than_literals_is_refused(source):
    with pytest.raises(NotebookFailed, match="no plain `name = value`"):
        read_parameters(notebook(source, ["parameters"]))
