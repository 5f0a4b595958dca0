"""Have an authority stamp a state of the log (RFC 3161): its answer is kept as it came.

The custody log has the hash of each answer, so that a later one, over a later state, renews it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.database.connection import Database
from toolkit.database.tables import log_timestamps
from toolkit.errors import InvalidInput
from toolkit.log.asking import post
from toolkit.log.events import record_timestamp
from toolkit.log.sealing import newest_checkpoint
from toolkit.log.stamps import told_by

if TYPE_CHECKING:
    from toolkit.log.notes import SignedState


@dataclass(frozen=True, slots=True)
class TimeStamp:
    """An authority's answer about a state of the log, and its time; ``None`` where that cannot be read here."""

    signed: SignedState
    told_at: datetime | None


def ask_authority(database: Database, url: str, now: datetime) -> TimeStamp:
    """Have an authority stamp the newest checkpoint, and keep its answer.

    Raises:
        InvalidInput: nothing is in the log yet; nobody answers; the authority refused, or stamped something else.
    """
    from rfc3161_client import HashAlgorithm, TimestampRequestBuilder

    with database.transaction() as connection:
        signed = newest_checkpoint(connection)
    if signed is None:
        raise InvalidInput("Nothing is in the custody log yet.")
    stamped = signed.note.encode()
    asked = TimestampRequestBuilder().data(stamped).hash_algorithm(HashAlgorithm.SHA256).build()
    status, token = post(url, asked.as_bytes(), "application/timestamp-query")
    if status != 200:
        raise InvalidInput("The authority refused: {}", f"status {status}")
    told_at = told_by(token, stamped, asked.nonce)
    with database.transaction() as connection:
        row = {"size": signed.size, "token": token, "added_at": now}
        connection.execute(sa.insert(log_timestamps), row)
        record_timestamp(connection, signed.size, sha256(token).hexdigest(), now)
    return TimeStamp(signed, told_at)


def stamp_of(connection: Connection, size: int) -> bytes | None:
    """Return the first answer about the state of this size, ``None`` where there is none."""
    kept = log_timestamps.c
    query = sa.select(kept.token).where(kept.size == size).order_by(kept.id).limit(1)
    token: bytes | None = connection.execute(query).scalar_one_or_none()
    return token
