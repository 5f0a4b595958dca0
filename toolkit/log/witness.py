"""Witnesses: others who sign a state of the log after they saw that it goes on from the one they signed before.

A request is what C2SP ``tlog-witness`` sends to ``add-checkpoint``, in a file or over HTTP; the answer is a
cosignature line (``tlog-cosignature``, version 1) for each key of the witness. An operator's own witness makes a
second history detectable, and prevents none.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql import insert

from toolkit.database.connection import Database
from toolkit.database.tables import log_checkpoints, log_cosignatures
from toolkit.errors import InvalidInput
from toolkit.log.asking import post
from toolkit.log.notes import VerifierKey, cosigned_at, lines_of, text_of
from toolkit.log.sealing import consistency, newest_checkpoint

_KNOWN: Final = 1000
"""The newest checkpoints, of which a witness may have signed one."""


def request_for(database: Database, witness: VerifierKey | None = None, old: int | None = None) -> str:
    """Return the request to sign the newest checkpoint: the size that the witness knows, the proof, and it.

    That size is ``old``, else that of the newest cosignature of the witness that is kept here, else none.

    Raises:
        InvalidInput: nothing is in the log yet, or it has no such size.
    """
    with database.transaction() as connection:
        signed = newest_checkpoint(connection)
        if signed is None:
            raise InvalidInput("Nothing is in the custody log yet.")
        known = old if old is not None else _last_of(connection, witness)
        proof = consistency(connection, known, signed.size) if 0 < known < signed.size else []
    return f"old {known}\n{lines_of(proof)}\n{signed.note}"


def keep_cosignature(database: Database, witness: VerifierKey, lines: str, now: datetime) -> tuple[int, datetime]:
    """Keep the line that a witness answered with, whichever checkpoint of this log it signed.

    Returns:
        The number of entries of that checkpoint, and when the witness signed it.

    Raises:
        InvalidInput: no line is a signature of this witness under a checkpoint of this log.
    """
    with database.transaction() as connection:
        newest = sa.select(log_checkpoints.c.size, log_checkpoints.c.note, log_checkpoints.c.vkey)
        for size, note, vkey in connection.execute(newest.order_by(log_checkpoints.c.size.desc()).limit(_KNOWN)):
            if VerifierKey.parse(vkey).public == witness.public:
                raise InvalidInput("The key of the log is no witness of it.")
            for line in lines.splitlines():
                if (moment := cosigned_at(witness, text_of(note), line)) is not None:
                    row = {"size": size, "witness": str(witness), "line": f"{line}\n"}
                    row |= {"signed_at": moment, "added_at": now}
                    connection.execute(insert(log_cosignatures).values(row).on_conflict_do_nothing())
                    return size, moment
    raise InvalidInput("No line is a signature of {} under a checkpoint of this log.", witness.name)


def ask_witness(database: Database, witness: VerifierKey, url: str, now: datetime) -> tuple[int, datetime]:
    """Ask a witness over HTTP (``add-checkpoint``) to sign the newest checkpoint; as ``keep_cosignature``.

    Raises:
        InvalidInput: it does not answer, refuses, or its answer is no signature of it.
    """
    body = request_for(database, witness)
    status, answer = _asked(url, body)
    if status == 409 and answer.strip().isdecimal():  # the size that it knows
        status, answer = _asked(url, request_for(database, witness, int(answer.strip())))
    if status != 200:
        raise InvalidInput("The witness {} refused: status {}. {}", witness.name, status, answer[:200].strip())
    return keep_cosignature(database, witness, answer, now)


def _asked(url: str, body: str) -> tuple[int, str]:
    status, answer = post(f"{url.rstrip('/')}/add-checkpoint", body.encode(), "text/plain")
    return status, answer.decode("utf-8", "replace")


def cosignatures_of(connection: Connection, size: int) -> str:
    """Return the lines of every witness under the checkpoint of this size."""
    kept = log_cosignatures.c
    return "".join(connection.scalars(sa.select(kept.line).where(kept.size == size).order_by(kept.witness)))


def _last_of(connection: Connection, witness: VerifierKey | None) -> int:
    kept = log_cosignatures.c
    query = sa.select(sa.func.max(kept.size)).where(kept.witness == str(witness))
    return (connection.scalar(query) or 0) if witness is not None else 0
