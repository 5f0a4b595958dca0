"""Large files of made-up clients, written by columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tests.support.client_rows import FIELDS
from toolkit.intake.cells import values

_CHUNK = 100_000
_GIVEN = ("Ana", "João", "Maria", "José", "Antônio", "Francisca", "Carlos", "Luíza", "Adriana", "Inês")
_FAMILY = ("Silva", "Souza", "Oliveira", "da Conceição", "Araújo", "Lima", "dos Santos", "Ávila")
_CITIES = ("São Paulo", "Rio de Janeiro", "Goiânia", "Belém", "Curitiba", "Maceió")


def write_clients(path: Path, rows: int, *, bad: float = 0.02, seed: int = 1, delimiter: str = ";") -> Path:
    """``rows`` different clients, of whom the share ``bad`` has a wrong check digit or a short installation."""
    random = np.random.default_rng(seed)
    with path.open("wb") as stream:
        stream.write(f"{delimiter.join(FIELDS)}\n".encode())
        for start in range(0, rows, _CHUNK):
            cells = _clients(random, start, min(_CHUNK, rows - start), bad, seed)
            lines = _join(pc.binary_join_element_wise(*cells, delimiter), "\n")
            values(lines).tofile(stream)
    return path


def _clients(random: np.random.Generator, start: int, count: int, bad: float, seed: int) -> list[pa.StringArray]:
    numbers = pa.array(np.arange(start, start + count))
    order = pc.utf8_lpad(numbers.cast(pa.string()), 8, "0")
    wrong = random.random(count) < bad
    in_cpf = random.random(count) < 0.5
    cells = {
        "externalId": _join("P", order),
        "cpf": _cpfs(start + seed * 40_000_000, count, wrong & in_cpf),
        "rg": _digits(random, count, 8),
        "numberOnDealership": _join("D", order),
        "enrollment": _digits(random, count, 6),
        "firstName": _of(random, count, _GIVEN),
        "lastName": _of(random, count, _FAMILY),
        "email": _join("cliente.", order, "@correio.example.com"),
        "birthdate": _join("19", _digits(random, count, 2, 40, 99), "-0", _digits(random, count, 1, 1, 9), "-17"),
        "phoneNumber": _join("119", _digits(random, count, 8)),
        "address.neighborhood": _join("Jardim ", _of(random, count, _FAMILY)),
        "address.installationNumber": pc.if_else(pa.array(wrong & ~in_cpf), "12345", _digits(random, count, 10)),
        "address.address": _join("Rua ", _of(random, count, _GIVEN), " ", _of(random, count, _FAMILY)),
        "address.addressNumber": _digits(random, count, 4, 1, 5000),
        "address.city": _of(random, count, _CITIES),
        "address.zipCode": _join("0", _digits(random, count, 7, 1_000_000, 9_999_999)),
    }
    return [cells[name] for name in FIELDS]


def _cpfs(first: int, count: int, wrong: npt.NDArray[np.bool_]) -> pa.StringArray:
    digits = np.empty((count, 11), np.uint8)
    rest = np.arange(first, first + count, dtype=np.int64) * 7 % 999_999_937
    for place in range(8, -1, -1):
        rest, digits[:, place] = np.divmod(rest, 10)
    for place in (9, 10):
        weights = np.arange(place + 1, 1, -1)
        digits[:, place] = digits[:, :place].astype(np.int64) @ weights * 10 % 11 % 10
    digits[wrong, 10] = (digits[wrong, 10] + 1) % 10
    return pa.array(["".join(map(str, row)) for row in digits.tolist()])


def _digits(
    random: np.random.Generator, count: int, width: int, low: int = 0, high: int | None = None
) -> pa.Array:
    numbers = random.integers(low, 10**width if high is None else high, count)
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")


def _of(random: np.random.Generator, count: int, choices: tuple[str, ...]) -> pa.Array:
    return pa.array(choices).take(pa.array(random.integers(0, len(choices), count)))


def _join(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")
