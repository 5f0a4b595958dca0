"""The parts of a program whose names stand in a folder: benchmarks, and what is tried by chance."""

from __future__ import annotations

import importlib
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType


def chosen_parts(parser: ArgumentParser, package: str, prefix: str) -> Iterator[tuple[str, ModuleType, Namespace]]:
    """Read the command line; give each part that it names, or all of the package: name, module, options."""
    folder = Path(__file__).parents[2].joinpath(*package.split("."))
    names = sorted(path.stem.removeprefix(prefix) for path in folder.glob(f"{prefix}*.py"))
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of: {', '.join(names)}")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(names):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    for name in asked.names or names:
        yield name, importlib.import_module(f"{package}.{prefix}{name}"), asked
