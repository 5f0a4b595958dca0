"""The Merkle tree of RFC 9162 over the entries of the log, its hashes kept in tiles of 256.

A tile of level 0 holds the hashes of entries, one of level L + 1 those of the full tiles of level L. From them the
root of the tree and of any earlier one, the proof that it has an entry, and the proof that it goes on where an
earlier one ended are computed, each from a few tiles.
"""

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Final

HASH_BYTES: Final = 32
TILE: Final = 256  # hashes in a full tile
LONGEST_PROOF: Final = 63  # hashes in a proof at most: no tree has more entries than 63 bits count
EMPTY: Final = sha256().digest()  # the root of a tree without entries
ReadTile = Callable[[int, int], bytes]  # returns the hashes of a tile, by its level and number


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
    _, beside = _way(index, index + 1, size)
    return [_subtree(tile, *each) for each in beside]


def consistency_proof(tile: ReadTile, old: int, size: int) -> list[bytes]:
    """Return the hashes that show that the tree of ``size`` entries begins with that of ``old`` ones."""
    if not old:
        return []
    start, beside = _way(0, old, size)
    return [_subtree(tile, *each) for each in ([(start, old), *beside] if start else beside)]


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
    if not 0 <= index < size:
        return None
    found, (_, beside) = leaf, _way(index, index + 1, size)
    if len(path) != len(beside):
        return None
    for (start, _), other in zip(beside, path, strict=True):
        found = node_hash(other, found) if start < index else node_hash(found, other)
    return found


def is_consistent(old: int, old_root: bytes, size: int, new_root: bytes, path: Sequence[bytes]) -> bool:
    """Tell whether a proof shows that the tree of ``size`` entries begins with that of ``old`` ones."""
    if not 0 <= old <= size:
        return False
    if not old:
        return not path and old_root == EMPTY
    start, beside = _way(0, old, size)
    hashes = list(path) if start else [old_root, *path]
    if len(hashes) != 1 + len(beside):
        return False
    before = after = hashes[0]
    for (start, _), other in zip(beside, hashes[1:], strict=True):
        if start < old:
            before, after = node_hash(other, before), node_hash(other, after)
        else:
            after = node_hash(after, other)
    return (before, after) == (old_root, new_root)


def _way(first: int, last: int, size: int) -> tuple[int, list[tuple[int, int]]]:
    """Walk down from the root to the first subtree within these entries, ``last`` excluded, that ends with them.

    Returns:
        The first entry of that subtree, and each one beside the way, nearest first: from which entry up to which.
    """
    start, end, beside = 0, size, list[tuple[int, int]]()
    while start < first or end > last:
        middle = start + _split(end - start)
        if last <= middle:
            beside.append((middle, end))
            end = middle
        else:
            beside.append((start, middle))
            start = middle
    return start, beside[::-1]


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
