"""Run the benchmarks: ``python -m tests.benchmarks [--scale X] [NAME...]``, all of them by default.

Each measures a floor, the toolkit and a peer in the same run and prints ratios; seconds on another machine
say little. ``--scale 1`` is the size that the documentation speaks of; less is a quick look.
"""

from __future__ import annotations

from argparse import ArgumentParser

from tests.support.parts import chosen_parts

if __name__ == "__main__":
    parser = ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="size of the work, 1 by default")
    for name, part, asked in chosen_parts(parser, "tests.benchmarks", "bench_"):
        print(f"\n== {name} (scale {asked.scale:g})", flush=True)
        part.main(asked.scale)
