"""Have an authority stamp a state of the log (RFC 3161): its answer is kept as it came.

The custody log has the hash of each answer, so that a later one, over a later state, renews it.
"""

from datetime import datetime
from hashlib import sha256

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.contract.events import CustodyEvent
from toolkit.database.connection import Database
from toolkit.database.tables import log_timestamps
from toolkit.errors import InvalidInput
from toolkit.log.asking import post
from toolkit.log.events import record_event
from toolkit.log.sealing import newest_checkpoint
from toolkit.log.stamps import told_by


def ask_authority(database: Database, url: str, now: datetime) -> tuple[int, datetime | None]:
    """Have an authority stamp the newest checkpoint, and keep its answer.

    Returns:
        The number of entries that it stamped, and the time; ``None`` where that cannot be read here.

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
        detail = {"size": signed.size, "token": sha256(token).hexdigest()}
        record_event(connection, CustodyEvent.TIMESTAMPED, now, detail)
    return signed.size, told_at


def stamp_of(connection: Connection, size: int) -> bytes | None:
    """Return the first answer about the state of this size, ``None`` where there is none."""
    kept = log_timestamps.c
    query = sa.select(kept.token).where(kept.size == size).order_by(kept.id).limit(1)
    token: bytes | None = connection.execute(query).scalar_one_or_none()
    return token
