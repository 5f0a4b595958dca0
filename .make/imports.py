"""Imports every locked package and loads its extension modules and libraries; names each that fails.

A library that a package needs and does not bring along is found here, not by the first command that uses it.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import re
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

LIBRARY = re.compile(r"\.(so(\.\d+)*|pyd|dll|dylib)$")
BEFORE = {"psycopg_binary": "psycopg"}
"""What has to be imported before a module."""


def locked(lock: str) -> list[str]:
    """The installed ones of the packages in the lock."""
    names = set(re.findall(r"^([a-z0-9-]+)==", lock, re.MULTILINE))
    return sorted(
        name
        for each in distributions()
        if (name := re.sub(r"[-_.]+", "-", each.metadata["Name"]).lower()) in names
    )


def modules(package: Distribution) -> list[str]:
    """The modules and packages at the top of what it installed."""
    found = set()
    for file in package.files or ():
        name = file.parts[0].partition(".")[0]
        if (
            file.suffix in {".py", ".so", ".pyd"}
            and name.isidentifier()
            and (len(file.parts) == 1 or _has_init(file))
        ):
            found.add(name)
    return sorted(found)


def _has_init(file: os.PathLike[str]) -> bool:
    return len(Path(file).parts) == 2 and Path(file).name == "__init__.py"


def failures(name: str) -> list[str]:
    """What of the package cannot be imported or loaded, and why."""
    package, found = distribution(name), []
    warnings.simplefilter("ignore")
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        for module in modules(package):
            try:
                importlib.import_module(BEFORE.get(module, module))
                importlib.import_module(module)
            except ModuleNotFoundError:
                pass  # everything locked is installed, so this one needs a package that is optional
            except BaseException as problem:
                found.append(f"{name}: import {module}: {problem}")
        for file in package.files or ():
            if LIBRARY.search(file.name):
                try:
                    ctypes.CDLL(str(file.locate()))
                except OSError as problem:
                    if "undefined symbol" not in str(problem):  # a plugin finds those in its program
                        found.append(f"{name}: {problem}")
    return found


def main(lock: Path) -> None:
    """Check all of them, and end with a sentence where one fails."""
    with ProcessPoolExecutor(2) as processes:  # each holds what it imported
        found = [line for lines in processes.map(failures, locked(lock.read_text("utf-8"))) for line in lines]
    if found:
        sys.exit("These locked packages do not work on this machine:\n  " + "\n  ".join(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
