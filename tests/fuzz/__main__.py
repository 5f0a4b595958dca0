"""Fuzz the toolkit: ``python -m tests.fuzz [--seconds N] [--seed S] [NAME...]``, every part of it by default.

Each ``fuzz_*`` module has ``run(chance, until) -> Counter``: it makes input from ``chance`` alone until the time
is over, counts what came of it, and raises where something else than an answer or an error of the toolkit came.
The same seed makes the same input; the number of inputs depends on the machine.
"""

from __future__ import annotations

import argparse
import importlib
import random
import time
from pathlib import Path

PREFIX = "fuzz_"


def names() -> list[str]:
    """The parts of this folder."""
    return sorted(path.stem.removeprefix(PREFIX) for path in Path(__file__).parent.glob(f"{PREFIX}*.py"))


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of: {', '.join(names())}")
    parser.add_argument("--seconds", type=float, default=60.0, help="time for each part, 60 by default")
    parser.add_argument("--seed", type=int, default=1, help="where chance begins, 1 by default")
    asked = parser.parse_args()
    unknown = set(asked.names) - set(names())
    if unknown:
        parser.error(f"unknown part: {', '.join(sorted(unknown))}")
    for name in asked.names or names():
        began = time.monotonic()
        part = importlib.import_module(f"tests.fuzz.{PREFIX}{name}")
        counts = part.run(random.Random(asked.seed), began + asked.seconds)
        told = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
        print(
            f"{name} (seed {asked.seed}, {time.monotonic() - began:.0f} s): {sum(counts.values())} inputs: {told}"
        )


if __name__ == "__main__":
    main()
