"""The Merkle tree of RFC 9162 over the entries of the log, its hashes kept in tiles of 256.

A tile of level 0 holds the hashes of entries, one of level L + 1 those of the full tiles of level L. From them the
root of the tree and of any earlier one, the proof that it has an entry, and the proof that it goes on where an
earlier one ended are computed, each from a few tiles.
"""

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Final

HASH_BYTES: Final = 32
TILE: Final = 256
"""Hashes in a full tile."""

LONGEST_PROOF: Final = 63
"""Hashes in a proof at most: no tree has more entries than 63 bits count."""

EMPTY: Final = sha256().digest()
"""The root of a tree without entries."""

ReadTile = Callable[[int, int], bytes]
"""Returns the hashes of a tile, by its level and number."""


def leaf_hash(entry: bytes) -> bytes:
    """Return the hash of an entry."""
    return sha256(b"\0" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of two subtrees together."""
    return sha256(b"\1" + left + right).digest()


def root(tile: ReadTile, size: int) -> bytes:
    """Return the root of the tree of the first ``size`` entries."""
    return _subtree(tile, 0, size) if size else EMPTY


def inclusion_proof(tile: ReadTile, index: int, size: int) -> list[bytes]:
    """Return the hashes that lead from an entry to the root of the tree of ``size`` entries, nearest first."""
    start, end, path = 0, size, []
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            path.append(_subtree(tile, middle, end))
            end = middle
        else:
            path.append(_subtree(tile, start, middle))
            start = middle
    return path[::-1]


def consistency_proof(tile: ReadTile, old: int, size: int) -> list[bytes]:
    """Return the hashes that show that the tree of ``size`` entries begins with that of ``old`` ones."""
    if not old:
        return []
    start, end, path = 0, size, []
    while end > old:
        middle = start + _split(end - start)
        if old <= middle:
            path.append(_subtree(tile, middle, end))
            end = middle
        else:
            path.append(_subtree(tile, start, middle))
            start = middle
    if start:
        path.append(_subtree(tile, start, end))
    return path[::-1]


def append(tile: ReadTile, size: int, leaves: Iterable[bytes]) -> dict[tuple[int, int], bytes]:
    """Return the tiles that are new or longer when these hashes of entries follow the first ``size`` ones."""
    changed: dict[tuple[int, int], bytes] = {}
    level, place, hashes = 0, size, b"".join(leaves)
    while hashes:
        number, filled = divmod(place, TILE)
        hashes = (tile(level, number)[: filled * HASH_BYTES] if filled else b"") + hashes
        full = []
        for first in range(0, len(hashes), TILE * HASH_BYTES):
            each = hashes[first : first + TILE * HASH_BYTES]
            changed[level, number] = each
            number += 1
            if len(each) == TILE * HASH_BYTES:
                full.append(_folded(each))
        level, place, hashes = level + 1, place // TILE, b"".join(full)
    return changed


def root_of_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """Return the root that a proof of inclusion leads to; ``None`` where no entry has this proof."""
    if not 0 <= index < size or len(path) > LONGEST_PROOF:
        return None
    place, last, found = index, size - 1, leaf
    for other in path:
        if last == 0:
            return None
        if place % 2 or place == last:
            found = node_hash(other, found)
            while place and place % 2 == 0:
                place, last = place // 2, last // 2
        else:
            found = node_hash(found, other)
        place, last = place // 2, last // 2
    return found if last == 0 else None


def is_consistent(old: int, old_root: bytes, size: int, new_root: bytes, path: Sequence[bytes]) -> bool:
    """Tell whether a proof shows that the tree of ``size`` entries begins with that of ``old`` ones."""
    if not 0 <= old <= size or len(path) > LONGEST_PROOF:
        return False
    if old in {0, size}:
        return not path and (old_root == new_root if old else old_root == EMPTY)
    place, last, hashes = old - 1, size - 1, list(path)
    while place % 2:
        place, last = place // 2, last // 2
    if not hashes and place:
        return False
    before = after = hashes.pop(0) if place else old_root
    for other in hashes:
        if last == 0:
            return False
        if place % 2 or place == last:
            before, after = node_hash(other, before), node_hash(other, after)
            while place and place % 2 == 0:
                place, last = place // 2, last // 2
        else:
            after = node_hash(after, other)
        place, last = place // 2, last // 2
    return last == 0 and (before, after) == (old_root, new_root)


def _split(count: int) -> int:
    """Return the largest power of two below ``count``."""
    return 1 << (count - 1).bit_length() - 1


def _subtree(tile: ReadTile, start: int, end: int) -> bytes:
    """Return the root of the entries from ``start`` up to ``end``, a part of the tree."""
    count = end - start
    if count & count - 1:
        middle = start + _split(count)
        return node_hash(_subtree(tile, start, middle), _subtree(tile, middle, end))
    level, depth = divmod(count.bit_length() - 1, 8)
    number, first = divmod(start >> 8 * level, TILE)
    return _folded(tile(level, number)[first * HASH_BYTES : (first + (1 << depth)) * HASH_BYTES])


def _folded(hashes: bytes) -> bytes:
    """Return the root over hashes, whose number is a power of two."""
    while len(hashes) > HASH_BYTES:
        pairs = range(0, len(hashes), 2 * HASH_BYTES)
        hashes = b"".join(sha256(b"\1" + hashes[at : at + 2 * HASH_BYTES]).digest() for at in pairs)
    return hashes
