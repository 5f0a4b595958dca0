"""Make ids for new rows of the service: UUIDs, or numbers of the sequence where its keys are numbers."""

from uuid import UUID

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from toolkit.storage.database import Database
from toolkit.storage.identifiers import new_ids
from toolkit.storage.service_map.triggers import NUMBERED, ONE_ROW
from toolkit.storage.service_map.writing import told_of
from toolkit.storage.tables import SERVICE


def next_ids(database: Database, name: str, count: int) -> npt.NDArray[np.uint8]:
    """Return ``count`` ids for new rows of the relation, ascending, as a ``(count, 16)`` array of bytes."""
    if not count or not database.mapped or f"{name}.{NUMBERED}" not in told_of(database):
        return new_ids(count)
    with database.statement() as connection:
        query = sa.text(f"SELECT {SERVICE}.next_{name}(:count)")  # the name of a relation
        numbers = connection.execute(query, {"count": count}).scalars().all()
    written = b"".join(bytes.fromhex(f"{number:032d}") for number in numbers)
    return np.frombuffer(written, dtype=np.uint8).reshape(count, 16)


def next_client_ids(database: Database, count: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Return ids for new clients and for their addresses; the same where the service has one row for both."""
    ids = next_ids(database, "clients", count)
    one_row = database.mapped and f"addresses.{ONE_ROW}" in told_of(database)
    return ids, ids if one_row else next_ids(database, "addresses", count)


def next_id(database: Database, name: str) -> UUID:
    """Return one such id."""
    return UUID(bytes=next_ids(database, name, 1).tobytes())
