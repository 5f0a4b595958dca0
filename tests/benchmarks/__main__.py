"""Run the benchmarks: ``python -m tests.benchmarks [--scale X] [NAME...]``, all of them by default.

Each measures a floor, the toolkit and a peer in the same run and prints ratios; seconds on another machine
say little. ``--scale 1`` is the size that the documentation speaks of; less is a quick look.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

PREFIX = "bench_"


def names() -> list[str]:
    """The benchmarks of this folder."""
    return sorted(path.stem.removeprefix(PREFIX) for path in Path(__file__).parent.glob(f"{PREFIX}*.py"))


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of: {', '.join(names())}")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the work, 1 by default")
    asked = parser.parse_args()
    unknown = set(asked.names) - set(names())
    if unknown:
        parser.error(f"unknown benchmark: {', '.join(sorted(unknown))}")
    for name in asked.names or names():
        print(f"\n== {name} (scale {asked.scale:g})", flush=True)
        importlib.import_module(f"tests.benchmarks.{PREFIX}{name}").main(asked.scale)


if __name__ == "__main__":
    main()
