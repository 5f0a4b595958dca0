"""Make time-ordered ids (UUID version 7, RFC 9562), so that new rows are at the end of an index."""

import os
import time
from uuid import UUID

import numpy as np
import numpy.typing as npt

_RANDOM_BYTES = 10


def new_id() -> UUID:
    """Return one id of this millisecond."""
    return UUID(bytes=new_ids(1).tobytes())


def new_ids(count: int) -> npt.NDArray[np.uint8]:
    """Return ``count`` ids of this millisecond, ascending, as a ``(count, 16)`` array of bytes."""
    ids = np.empty((count, 16), dtype=np.uint8)
    milliseconds = time.time_ns() // 1_000_000
    ids[:, :6] = np.frombuffer(milliseconds.to_bytes(6, "big"), dtype=np.uint8)
    tail = np.frombuffer(os.urandom(count * _RANDOM_BYTES), dtype=np.uint8).reshape(count, _RANDOM_BYTES)
    order = np.lexsort((tail[:, 2], tail[:, 1], tail[:, 0] & 0x0F)) if count > 1 else slice(None)
    ids[:, 6:] = tail[order]
    ids[:, 6] = (ids[:, 6] & 0x0F) | 0x70
    ids[:, 8] = (ids[:, 8] & 0x3F) | 0x80
    return ids
