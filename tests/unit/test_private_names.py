"""The names that other packages keep to themselves and that the toolkit uses all the same.

Each of these packages has an upper bound in ``pyproject.toml``, raised when these tests pass with the new one.
"""

import tomllib
from pathlib import Path

import pytest

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
REQUIREMENTS = [
    *PROJECT["dependencies"],
    *(each for extra in PROJECT["optional-dependencies"].values() for each in extra),
]


@pytest.mark.parametrize("package", ["psycopg"])
def test_a_package_whose_private_names_are_used_has_an_upper_bound(package):
    bounds = [each for each in REQUIREMENTS if each.startswith(package)]
    assert any("<" in each for each in bounds), f"{package} may change any day: give it an upper bound"
