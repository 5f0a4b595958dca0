"""Events that the toolkit records itself, since evidence records lie in a table of the service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.domain.masking import Unmasking
from toolkit.storage.tables import custody_events


def tell_issued(connection: Connection, evidence_ids: Sequence[UUID]) -> None:
    """Tell of records that this very transaction has stored."""
    connection.execute(_ISSUED, {"ids": list(evidence_ids)})


def tell_reissued(connection: Connection, evidence_ids: Sequence[UUID], now: datetime) -> None:
    """Tell that records stored before have another form: with it, too, their files can be written."""
    if evidence_ids:
        connection.execute(_REISSUED, {"ids": list(evidence_ids), "now": now})


def record_unmasking(connection: Connection, unmasking: Unmasking, what: str, now: datetime) -> None:
    """Tell that somebody was shown personal data unmasked: the account, the reason, and what was shown."""
    detail = {"account": unmasking.account, "reason": unmasking.reason, "what": what}
    connection.execute(sa.insert(custody_events), {"kind": "UNMASKED", "happened_at": now, "detail": detail})


def tell_completed(
    connection: Connection, sale_id: str, completed_at: datetime, files: Sequence[Mapping[str, object]]
) -> None:
    """Tell that a sale was completed, and which versions of its files allowed it."""
    detail = {"sale": sha256(sale_id.encode()).hexdigest(), "files": list(files)}
    connection.execute(
        sa.insert(custody_events), {"kind": "COMPLETED", "happened_at": completed_at, "detail": detail}
    )


_TELL: Final = """
    INSERT INTO audit.custody_events (kind, happened_at, detail)
    SELECT kind, requested_at,
           CASE kind
               WHEN 'ASKED' THEN jsonb_build_object('evidence', id, 'request', encode(sha256(convert_to(
                   concat_ws(E'\\n', sale_id, file_name, file_format, type, evidence_type, requested_by), 'UTF8'
               )), 'hex'))
               ELSE jsonb_build_object(
                   'evidence', id, 'evidenceType', evidence_type, 'record', encode(sha256(convert_to(
                   concat_ws(E'\\n', sale_id, file_name, file_format, type, object_key, requested_by), 'UTF8'
               )), 'hex'))
           END
    FROM {records}, (VALUES ('ASKED'), ('ISSUED')) AS told (kind)
    WHERE {condition}
    ORDER BY id, kind
"""

TELL_ISSUED: Final = _TELL.format(records="record", condition="TRUE")
"""Tells of the rows that a statement stores in ``evidences`` and calls ``record``, in that same statement."""

_ISSUED: Final = sa.text(_TELL.format(records="audit_service.evidences", condition="id = ANY(:ids)")).bindparams(
    sa.bindparam("ids", type_=sa.ARRAY(sa.Uuid))
)

_REISSUED: Final = sa.text(
    """
    INSERT INTO audit.custody_events (kind, happened_at, detail)
    SELECT 'REISSUED', :now, jsonb_build_object('evidence', id)
    FROM unnest(:ids) WITH ORDINALITY AS reissued (id, place)
    ORDER BY place
    """
).bindparams(sa.bindparam("ids", type_=sa.ARRAY(sa.Uuid)), sa.bindparam("now", type_=sa.TIMESTAMP(timezone=True)))
