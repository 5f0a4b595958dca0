"""Fuzz the toolkit: ``python -m tests.fuzz [--seconds N] [--seed S] [NAME...]``, every part of it by default.

Each ``fuzz_*`` module has ``run(chance, until) -> Counter``: it makes input from ``chance`` alone until the time
is over, counts what came of it, and raises where something else than an answer or an error of the toolkit came.
The same seed makes the same input; the number of inputs depends on the machine.
"""

import random
import time
from argparse import ArgumentParser
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    known = sorted(path.stem.removeprefix("fuzz_") for path in Path(__file__).parent.glob("fuzz_*.py"))
    parser = ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="time for each part, 60 by default")
    parser.add_argument("--seed", type=int, default=1, help="where chance begins, 1 by default")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of: {', '.join(known)}")
    asked = parser.parse_args()
    for name in asked.names or known:
        part = import_module(f"tests.fuzz.fuzz_{name}")
        found = part.run(random.Random(asked.seed), time.monotonic() + asked.seconds)
        told = ", ".join(f"{count} {what}" for what, count in sorted(found.items()))
        print(f"{name} (seed {asked.seed}): {found.total()} inputs: {told}")
