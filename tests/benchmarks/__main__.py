"""Run the benchmarks: ``python -m tests.benchmarks [--scale X] [NAME...]``, all of them by default.

Each measures a floor, the toolkit and a peer in the same run and prints ratios; seconds on another machine
say little. ``--scale 1`` is the size that the documentation speaks of; less is a quick look.
"""

from argparse import ArgumentParser
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    known = sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))
    parser = ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="size of the work, 1 by default")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of: {', '.join(known)}")
    asked = parser.parse_args()
    for name in asked.names or known:
        print(f"\n== {name} (scale {asked.scale:g})", flush=True)
        import_module(f"tests.benchmarks.bench_{name}").main(asked.scale)
