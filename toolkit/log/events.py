"""Events that the toolkit records itself, since evidence records lie in a table of the service."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.contract.events import CustodyEvent
from toolkit.database.tables import custody_events


def record_issued(connection: Connection) -> None:
    """Record that this very transaction stores the records in its temporary table ``new_records``."""
    connection.execute(sa.text(RECORD_ISSUED))


def record_reissued(connection: Connection, evidence_ids: Sequence[UUID], now: datetime) -> None:
    """Record that records stored before have another form: with it, too, their files can be written."""
    if evidence_ids:
        connection.execute(_REISSUED, {"ids": list(evidence_ids), "now": now})


def record_unmasking(connection: Connection, account: str, reason: str, what: str, now: datetime) -> None:
    """Record that somebody was shown personal data unmasked: the account, the reason, and what was shown."""
    _record(connection, CustodyEvent.UNMASKED, now, {"account": account, "reason": reason, "what": what})


def record_completion(
    connection: Connection, sale_id: str, completed_at: datetime, files: Sequence[Mapping[str, object]]
) -> None:
    """Record that a sale was completed, and which versions of its files allowed it."""
    detail = {"sale": sha256(sale_id.encode()).hexdigest(), "files": list(files)}
    _record(connection, CustodyEvent.COMPLETED, completed_at, detail)


def record_report(connection: Connection, files: Mapping[str, str], now: datetime) -> int:
    """Record that a report or an audit was written, with the SHA-256 of its files; return the event's id."""
    return _record(connection, CustodyEvent.REPORTED, now, {"files": dict(files)})


def record_partner_told(
    connection: Connection, notice: UUID, partner: str, files: Mapping[str, str], findings: int, now: datetime
) -> None:
    """Record that a partner was told of its findings: the notice, how many, and the SHA-256 of each file sent."""
    hashed = sha256(partner.encode()).hexdigest()
    detail = {"notice": str(notice), "partner": hashed, "files": dict(files), "findings": findings}
    _record(connection, CustodyEvent.PARTNER_TOLD, now, detail)


def record_answer(
    connection: Connection, answer: UUID, finding: UUID, said: str, answered_by: str, now: datetime
) -> None:
    """Record that a partner answered a finding: the answer's id and kind, and the subject as a hash."""
    by = sha256(answered_by.encode()).hexdigest()
    detail = {"answer": str(answer), "finding": str(finding), "said": said, "by": by}
    _record(connection, CustodyEvent.FINDING_ANSWERED, now, detail)


def record_draw(connection: Connection, draw: UUID, files: int, seed: int, drawn_by: str, now: datetime) -> None:
    """Record that files were drawn to be looked at by people: how many, by which seed, and who as a hash."""
    by = sha256(drawn_by.encode()).hexdigest()
    _record(
        connection, CustodyEvent.REVIEW_DRAWN, now, {"draw": str(draw), "files": files, "seed": seed, "by": by}
    )


def record_review(
    connection: Connection,
    evidence: UUID,
    observation: int,
    turn: int,
    failures: Sequence[str],
    by: str,
    now: datetime,
) -> None:
    """Record that a person looked at a version of a file: the questions that it fails, and who as a hash."""
    hashed = sha256(by.encode()).hexdigest()
    detail = {
        "evidence": str(evidence),
        "version": observation,
        "turn": turn,
        "failures": [*failures],
        "by": hashed,
    }
    _record(connection, CustodyEvent.REVIEWED, now, detail)


def record_key_change(connection: Connection, old: str, new: str, now: datetime) -> None:
    """Record that the log is signed by another key from now on; the next checkpoint is signed by both."""
    _record(connection, CustodyEvent.KEY_ROTATED, now, {"old": old, "new": new})


def record_timestamp(connection: Connection, size: int, token: str, now: datetime) -> None:
    """Record that an authority stamped the state of so many entries: the SHA-256 of its answer."""
    _record(connection, CustodyEvent.TIMESTAMPED, now, {"size": size, "token": token})


def record_privacy(
    connection: Connection,
    kind: CustodyEvent,
    now: datetime,
    plain: Mapping[str, object],
    hashed: Mapping[str, str],
) -> None:
    """Record a hold, a request of a person, its answer or an erasure; names and texts as hashes."""
    told = {name: sha256(value.encode()).hexdigest() for name, value in hashed.items()}
    _record(connection, kind, now, {**plain, **told})


def _record(connection: Connection, kind: CustodyEvent, now: datetime, detail: Mapping[str, object]) -> int:
    statement = sa.insert(custody_events).returning(custody_events.c.id)
    number: int = connection.scalar(statement, {"kind": kind, "happened_at": now, "detail": detail})
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
"""  # made of constants, as is the one below
"""Records that the rows of ``new_records`` are stored, in the statement or the transaction that stores them."""

_REISSUED: Final = sa.text(
    f"""
    INSERT INTO audit.custody_events (kind, happened_at, detail)
    SELECT '{CustodyEvent.REISSUED}', :now, jsonb_build_object('evidence', id)
    FROM unnest(:ids) WITH ORDINALITY AS reissued (id, place)
    ORDER BY place
    """
).bindparams(sa.bindparam("ids", type_=sa.ARRAY(sa.Uuid)), sa.bindparam("now", type_=sa.TIMESTAMP(timezone=True)))
