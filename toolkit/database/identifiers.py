"""Make time-ordered ids (UUID version 7, RFC 9562), so that new rows are at the end of an index.

Ids of one process ascend, also within a millisecond and between threads. Those of several processes do not: what
happened first is told by a time or a number, never by an id.
"""

from uuid import UUID

import numpy as np
import numpy.typing as npt
import uuid_utils
from uuid_utils.compat import uuid7


def new_id() -> UUID:
    """Return one id."""
    return uuid7()


def new_ids(count: int) -> npt.NDArray[np.uint8]:
    """Return ``count`` ids, ascending, as a ``(count, 16)`` array of bytes."""
    ids = bytearray().join(uuid_utils.uuid7().bytes for _ in range(count))
    return np.frombuffer(ids, dtype=np.uint8).reshape(count, 16)
