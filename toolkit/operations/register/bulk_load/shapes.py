"""Find the cells of an Arrow text column that are storable, or written in a shape, all at once, by their bytes."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from toolkit.operations.spreadsheets.text_bytes import Bytes, Mask, offsets, values

_ZERO = ord("0")


def cells_of(column: pa.StringArray, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the cells that the bytes at ``positions`` belong to; bytes before the first cell are left out."""
    cells = np.searchsorted(offsets(column), positions, side="right") - 1
    return np.asarray(cells[cells >= 0])


def storable(column: pa.StringArray) -> Mask:
    """Mark the cells that surely hold no control character (U+0000 to U+001F, U+007F to U+009F).

    Nor have they a character of the rows of U+0600, U+2000 and U+2040, where those for the direction of text are.
    """
    data = values(column)
    sure = np.ones(len(column), dtype=bool)
    if (data - np.uint8(0x20) < 0x5F).all():  # printable ASCII
        return sure
    control = (data < 0x20) | (data == 0x7F)
    before, after = data[:-1], data[1:]
    control[:-1] |= ((before == 0xC2) & (after < 0xA0)) | (before == 0xD8) | ((before == 0xE2) & (after < 0x82))
    positions = np.flatnonzero(control)
    if positions.size:
        sure[cells_of(column, positions)] = False
    return sure


class Shape:
    """A way to write a value of so many digits: ``9`` stands for any digit, all else for itself.

    ``order`` says where each digit goes, for shapes that swap the parts of a value.
    """

    def __init__(self, pattern: str, order: Sequence[int] | None = None) -> None:
        self.length = len(pattern)
        at_digits = np.array([position for position, letter in enumerate(pattern) if letter == "9"])
        self.digits_at = at_digits if order is None else at_digits[list(order)]
        self.literals_at = np.array(
            [position for position, letter in enumerate(pattern) if letter != "9"], dtype=int
        )
        self.literals = np.array([ord(letter) for letter in pattern if letter != "9"], dtype=np.uint8)

    def match(self, cells: Bytes) -> tuple[Bytes, Mask]:
        """Return the digits in ``cells`` (one row each, as long as the shape), and which cells have the shape."""
        digits = cells[:, self.digits_at] - np.uint8(_ZERO)  # other characters wrap to above nine
        fits = (digits <= 9).all(axis=1)
        if self.literals.size:
            fits &= (cells[:, self.literals_at] == self.literals).all(axis=1)
        return digits.astype(np.uint8, copy=False), np.asarray(fits)


def read(column: pa.StringArray, shapes: Sequence[Shape]) -> tuple[Bytes, npt.NDArray[np.int8]]:
    """Return the digits of every cell in one of ``shapes`` (all hold equally many), and in which one; else -1."""
    starts = offsets(column)
    lengths = np.diff(starts)
    data = values(column)
    digits = np.zeros((len(column), len(shapes[0].digits_at)), np.uint8)
    which = np.full(len(column), -1, np.int8)
    for length, rows in _by_length(lengths, {shape.length for shape in shapes}):
        whole = rows is None
        begin = starts[:-1] if rows is None else starts[rows]
        if whole:
            cells = data[starts[0] : starts[-1]].reshape(len(column), length)
        else:
            cells = data[begin[:, None] + np.arange(length, dtype=np.int32)]
        for number, shape in enumerate(shapes):
            if shape.length != length:
                continue
            found, fits = shape.match(cells)
            if whole and fits.all():
                return found, np.full(len(column), number, np.int8)
            at = np.flatnonzero(fits) if rows is None else rows[fits]
            digits[at] = found[fits]
            which[at] = number
    return digits, which


def _by_length(
    lengths: npt.NDArray[np.int32], wanted: set[int]
) -> Iterator[tuple[int, npt.NDArray[np.int64] | None]]:
    """Yield the rows of each wanted length; ``None`` for all rows."""
    if lengths.size and lengths[0] in wanted and (lengths == lengths[0]).all():
        yield int(lengths[0]), None
        return
    for length in wanted:
        rows = np.flatnonzero(lengths == length)
        if rows.size:
            yield length, rows


def column_of(cells: Bytes) -> pa.StringArray:
    """Return rows of bytes, all equally long, as a text column."""
    count, length = cells.shape
    ends = np.arange(0, (count + 1) * length, length, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(cells)))


def digits_column(digits: Bytes) -> pa.StringArray:
    """Return rows of digits as a text column."""
    return column_of(digits + np.uint8(_ZERO))
