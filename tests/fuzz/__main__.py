"""Fuzz the toolkit: ``python -m tests.fuzz [--seconds N] [--seed S] [NAME...]``, every part of it by default.

Each ``fuzz_*`` module has ``run(chance, until) -> Counter``: it makes input from ``chance`` alone until the time
is over, counts what came of it, and raises where something else than an answer or an error of the toolkit came.
The same seed makes the same input; the number of inputs depends on the machine.
"""

from __future__ import annotations

import random
import time
from argparse import ArgumentParser

from tests.support.parts import chosen_parts

if __name__ == "__main__":
    parser = ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="time for each part, 60 by default")
    parser.add_argument("--seed", type=int, default=1, help="where chance begins, 1 by default")
    for name, part, asked in chosen_parts(parser, "tests.fuzz", "fuzz_"):
        began = time.monotonic()
        counts = part.run(random.Random(asked.seed), began + asked.seconds)
        told = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
        print(f"{name} (seed {asked.seed}, {time.monotonic() - began:.0f} s): {counts.total()} inputs: {told}")
