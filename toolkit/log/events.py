"""Events that the toolkit records itself, since evidence records lie in a table of the service."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.contract.events import HIDDEN, CustodyEvent
from toolkit.database.observation_clock import stamp
from toolkit.database.tables import custody_events


def record_reissued(connection: Connection, evidence_ids: Sequence[UUID]) -> None:
    """Record that records stored before have another form: with it, too, their files can be written."""
    if evidence_ids:
        connection.execute(sa.text(_REISSUED), {"ids": list(evidence_ids), "now": stamp(connection)})


def record_event(connection: Connection, kind: CustodyEvent, now: datetime, detail: Mapping[str, object]) -> int:
    """Record an event, and return its id; of the texts that ``HIDDEN`` names its detail holds the SHA-256.

    Who was shown whole personal data, and why, is written nowhere else: there it holds the texts.
    """
    hidden = HIDDEN.get(kind, ()) if kind != CustodyEvent.UNMASKED else ()
    texts = {name: text for name in hidden if isinstance(text := detail.get(name), str)}
    hashes = {name: sha256(text.encode()).hexdigest() for name, text in texts.items()}
    row = {"kind": kind, "happened_at": now, "detail": {**detail, **hashes}}
    number: int = connection.scalar(sa.insert(custody_events).returning(custody_events.c.id), row)
    return number


RECORD_ISSUED: Final = f"""
    INSERT INTO audit.custody_events (kind, happened_at, detail)
    SELECT kind, requested_at,
           CASE kind
               WHEN '{CustodyEvent.ASKED}' THEN jsonb_build_object(
                   'evidence', id, 'request', encode(sha256(convert_to(
                   concat_ws(E'\\n', sale_id, file_name, file_format, type, evidence_type, requested_by), 'UTF8'
               )), 'hex'))
               ELSE jsonb_build_object(
                   'evidence', id, 'evidenceType', evidence_type, 'record', encode(sha256(convert_to(
                   concat_ws(E'\\n', sale_id, file_name, file_format, type, object_key, requested_by), 'UTF8'
               )), 'hex'))
           END
    FROM new_records, (VALUES ('{CustodyEvent.ASKED}'), ('{CustodyEvent.ISSUED}')) AS told (kind)
    ORDER BY id, kind
"""
"""Records that the rows of ``new_records`` are stored, in the statement or the transaction that stores them."""

_REISSUED: Final = f"""
    INSERT INTO audit.custody_events (kind, happened_at, detail)
    SELECT '{CustodyEvent.REISSUED}', :now, jsonb_build_object('evidence', id)
    FROM unnest(CAST(:ids AS uuid[])) WITH ORDINALITY AS reissued (id, place)
    ORDER BY place
"""
