"""The shape of the package: rooms two levels deep, modules that one reads in a sitting, contracts that hold."""

import ast
from collections import defaultdict
from pathlib import Path

from tests.mutants.__main__ import faults

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
            assert f"def {function}" in (ROOT / module).read_text("utf-8"), fault.name
