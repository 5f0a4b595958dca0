"""Find clients who are registered already: same CPF, installation number and number on the dealership."""

from collections.abc import Mapping, Sequence
from typing import Final, cast
from uuid import UUID

import numpy as np
import numpy.typing as npt
import psycopg
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.operations.spreadsheets.text_bytes import Mask, offsets, values

KEY: Final = ("cpf", "installation_number", "number_on_dealership")

Hashes = npt.NDArray[np.uint64]
Key = tuple[str, str, str]


class SeenKeys:
    """Remembers keys by 64-bit hashes, in one table that doubles when it is well filled.

    Two different keys may share a hash (once in some ten million loads of a million rows): whoever needs
    certainty looks the few repeated ones up in the database.
    """

    _FILLED: Final = 0.7
    _AT_ONCE: Final = 1 << 16
    """Hashes that are put into a larger table at a time; all at once would take four times their own memory."""

    def __init__(self, capacity: int = 1 << 18) -> None:
        self._slots = np.zeros(capacity, dtype=np.uint64)
        self._count = 0

    def add(self, hashes: Hashes) -> Mask:
        """Remember these hashes; return which of them were known before, or stand earlier among them."""
        distinct, first = np.unique(hashes, return_index=True)
        repeated = np.ones(len(hashes), dtype=bool)
        if self._count + len(distinct) > self._FILLED * len(self._slots):
            self._grow()
        repeated[first] = self._insert(distinct)
        self._count += len(distinct)
        return repeated

    @property
    def hashes(self) -> Hashes:
        """All that were added."""
        found: Hashes = self._slots[self._slots != 0]
        return found

    def _insert(self, hashes: Hashes) -> Mask:
        there = np.zeros(len(hashes), dtype=bool)
        last_slot = np.uint64(len(self._slots) - 1)
        rest, slot = np.arange(len(hashes)), hashes & last_slot
        while rest.size:
            wanted, found = hashes[rest], self._slots[slot]
            there[rest[found == wanted]] = True
            free = found == 0
            self._slots[slot[free]] = wanted[free]  # where two want the same slot, one of them gets it
            lost = self._slots[slot] != wanted
            rest, slot = rest[lost], (slot[lost] + np.uint64(1)) & last_slot
        return there

    def _grow(self) -> None:
        remembered = self.hashes
        self._slots = np.zeros(2 * len(self._slots), dtype=np.uint64)
        for start in range(0, len(remembered), self._AT_ONCE):
            self._insert(remembered[start : start + self._AT_ONCE])


_SEPARATOR: Final = "\x1f"  # never part of a valid text
_BASE: Final = 0x9E3779B97F4A7C15
_STRETCH: Final = 1 << 18


def _powers(base: int) -> Hashes:
    powers = np.full(_STRETCH, base, dtype=np.uint64)
    powers[0] = 1
    return np.cumprod(powers)


_POWERS: Final = _powers(_BASE)
_INVERSE_POWERS: Final = _powers(pow(_BASE, -1, 1 << 64))


def hash_keys(settled: Mapping[str, pa.StringArray]) -> Hashes:
    """Return a hash other than zero for the key of each row.

    It is a polynomial of the key's bytes modulo 2**64, whose bits are then mixed. The polynomials come from
    sums over the bytes of many keys: the power that a key starts with is divided out.
    """
    keys = pc.binary_join_element_wise(*(settled[column] for column in KEY), _SEPARATOR)
    ends, data = offsets(keys).astype(np.int64), values(keys)
    hashes = np.empty(len(keys), dtype=np.uint64)
    row = 0
    while row < len(keys):
        begin = ends[row]
        until = max(row + 1, int(np.searchsorted(ends, begin + _STRETCH, side="left")) - 1)
        text, bounds = data[begin : ends[until]], ends[row : until + 1] - begin
        if len(text) > _STRETCH:  # one key alone is as long; Python's own hash will do
            hashes[row] = np.uint64(hash(text.tobytes()) & 0xFFFFFFFFFFFFFFFF)
        else:
            sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(text * _POWERS[: len(text)])))
            hashes[row:until] = (sums[bounds[1:]] - sums[bounds[:-1]]) * _INVERSE_POWERS[bounds[:-1]]
        row = until
    hashes ^= hashes >> np.uint64(32)
    hashes *= np.uint64(0xD6E8FEB86659FD93)
    hashes ^= hashes >> np.uint64(29)
    hashes[hashes == 0] = 1
    return hashes


def registered(
    connection: psycopg.Connection[tuple[object, ...]], settled: Mapping[str, pa.StringArray]
) -> dict[Key, UUID]:
    """Return the clients in the database with a CPF of these rows, by key; of several with one key the first."""
    found = connection.execute(
        """
        SELECT client.cpf, address.installation_number, client.number_on_dealership, client.id
        FROM audit_service.clients AS client
        JOIN audit_service.addresses AS address ON address.client_id = client.id
        WHERE client.cpf = ANY (string_to_array(%s, ','))
        ORDER BY client.created_at DESC, client.id DESC
        """,
        [",".join(pc.unique(settled["cpf"]).to_pylist())],
    )
    return {
        (str(cpf), str(installation), str(number)): cast("UUID", key) for cpf, installation, number, key in found
    }


def keys_of(settled: Mapping[str, pa.StringArray]) -> Sequence[Key]:
    """Return the key of each row."""
    return list(zip(*(settled[column].to_pylist() for column in KEY), strict=True))
