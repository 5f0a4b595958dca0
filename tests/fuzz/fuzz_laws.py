"""The laws that the property tests state, each time on examples that no run of the suite draws."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

_LAWS = Path(__file__).parents[1] / "property"


def run(chance: random.Random, until: float) -> Counter[str]:
    """Run one module of property tests after another, at least one, each with a seed of its own."""
    counts: Counter[str] = Counter()
    modules = sorted(_LAWS.glob("test_*.py"))
    while not counts or time.monotonic() < until:
        module, seed = chance.choice(modules), chance.getrandbits(32)
        # The profile of the suite would draw the same examples each time.
        options = ["-q", "-p", "no:cacheprovider", "--hypothesis-profile=default", f"--hypothesis-seed={seed}"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", str(module), *options], capture_output=True, text=True
        )
        assert done.returncode == 0, f"{module.name} with seed {seed}:\n{done.stdout}"
        counts[module.stem.removeprefix("test_")] += 1
    return counts
