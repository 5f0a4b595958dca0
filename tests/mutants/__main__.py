"""Plant each fault of ``faults.txt`` in a copy of this checkout, and name those that the tests do not notice.

A line there is a fault: its name, the file, the text before, the text after (``\\n`` is a line break), and the
tests of which one must fail.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_LEFT_OUT = (".*", "__pycache__")
_SECONDS = 600
_TESTS_FAILED = 1


@dataclass(frozen=True, slots=True)
class Fault:
    """One replaced text, and the tests of which one must fail then."""

    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]


def faults():
    """Read the list of the faults."""
    found = []
    for line in Path(__file__).with_name("faults.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            name, file, before, after, tests = (each.strip() for each in line.split(" || "))
            texts = (text.replace("\\n", "\n") for text in (before, after))
            found.append(Fault(name, file, *texts, tuple(tests.split())))
    return found


def survives(fault, folder):
    """Plant a fault in the copy and run its tests; return what is wrong, ``None`` where it was noticed."""
    path = folder / fault.file
    text = path.read_text("utf-8")
    if text.count(fault.before) != 1:
        return f"its text stands {text.count(fault.before)} times in {fault.file}"
    path.write_text(text.replace(fault.before, fault.after), "utf-8")
    try:
        status, _ = _status(fault.tests, folder)
    except subprocess.TimeoutExpired:
        return None  # a test that does not end is noticed too
    finally:
        path.write_text(text, "utf-8")
    if status == _TESTS_FAILED:
        return None
    return "SURVIVED" if status == 0 else f"pytest ended with status {status}: are the names of its tests right?"


def _status(tests, folder):
    command = [sys.executable, "-m", "pytest", "-q", "-x", *tests]
    environ = {**os.environ, "PYTHONPATH": str(folder)}
    process = subprocess.run(  # the tests of this list
        command, cwd=folder, env=environ, timeout=_SECONDS, capture_output=True, check=False, text=True
    )
    return process.returncode, process.stdout


def main():
    """Plant all faults, or those whose names hold one of the words that are given."""
    parser = argparse.ArgumentParser(prog="tests.mutants", description="Plant faults; name those that survive.")
    parser.add_argument("names", nargs="*")
    names = parser.parse_args().names
    chosen = [fault for fault in faults() if not names or any(name in fault.name for name in names)]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy")
        shutil.copytree(_ROOT, copy, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        wrong = 0
        status, told = _status(tuple(dict.fromkeys(test for fault in chosen for test in fault.tests)), copy)
        if status:
            print(f"Without a fault these tests end with status {status}:\n{told[-4000:]}")
            return 2
        for fault in chosen:
            found = survives(fault, copy)
            wrong += found is not None
            print(f"{fault.name}: {found or 'noticed'}", flush=True)
    print(f"{len(chosen) - wrong} of {len(chosen)} faults were noticed.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
