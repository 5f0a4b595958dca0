"""Bytes that are nearly right: good input with a few changes."""

from __future__ import annotations

import random
from collections.abc import Sequence


def mutated(chance: random.Random, good: bytes, words: Sequence[bytes]) -> bytes:
    """``good`` after one to six changes; ``words`` are pieces that mean something to whoever reads it."""
    data = bytearray(good)
    for _ in range(chance.randint(1, 6)):
        here, there = sorted(chance.randrange(len(data) + 1) for _ in range(2))
        there = min(there, here + 200)
        match chance.randrange(7):
            case 0:
                data[here:here] = chance.choice(words)
            case 1:
                data[here:there] = chance.choice(words)
            case 2:
                del data[here:there]
            case 3:
                data[here:here] = data[here:there] * chance.randint(1, 50)
            case 4 if here < len(data):
                data[here] = chance.randrange(256)
            case 5:
                data[here:here] = chance.randbytes(chance.randint(1, 20))
            case _:
                del data[max(here, len(data) // 2) :]
    return bytes(data)
