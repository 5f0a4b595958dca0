"""The bytes of an Arrow text column, without copying them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int32]


def offsets(column: pa.StringArray) -> Offsets:
    """Where each cell starts in the column's bytes, and where the last one ends."""
    return np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4)


def values(column: pa.StringArray) -> Bytes:
    """The bytes that the offsets of the column point into, up to its last cell."""
    data = column.buffers()[2]
    return np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[: offsets(column)[-1]]
