"""Keep what partners answer to their findings; an answer changes no verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from toolkit.contract.answers import AnswerKind, FindingAnswer
from toolkit.contract.codes import NOT_TOLD_TO_PARTNERS
from toolkit.contract.deadlines import Clock
from toolkit.database.tables import finding_answers, finding_observations, new_id
from toolkit.errors import FindingNotFound, InvalidField, InvalidFields
from toolkit.log.events import record_answer

if TYPE_CHECKING:
    from toolkit.audit.folder import Audit
    from toolkit.database.connection import Database


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """One answer, with the code and the sale of its finding."""

    id: UUID
    finding_id: UUID
    partner: str
    code: str | None
    sale_id: str | None
    answer: AnswerKind
    until: date | None
    text: str | None
    answered_at: datetime
    answered_by: str


def keep_answer(
    database: Database,
    audit: Audit,
    finding_id: UUID,
    answer: FindingAnswer,
    *,
    partner: str,
    answered_by: str,
    clock: Clock,
) -> UUID:
    """Keep a partner's answer to a finding of the newest audit; return the answer's id.

    Raises:
        FindingNotFound: no finding of the audit has this id, or it is not one that the partner is told.
        InvalidFields: ``until`` is a day that has passed in the time zone of the audit.
    """
    if not audit.sql(_OWN, str(finding_id), partner, NOT_TOLD_TO_PARTNERS).num_rows:
        raise FindingNotFound
    now = clock()
    if answer.until is not None and answer.until < now.astimezone(ZoneInfo(audit.facts.timezone)).date():
        raise InvalidFields([InvalidField("until", "Must not be in the past")])
    id_ = new_id()
    row = {
        "id": id_,
        "finding_id": finding_id,
        "partner": partner,
        **answer.model_dump(mode="python"),
        "answered_at": now,
        "answered_by": answered_by,
    }
    with database.transaction() as connection:
        connection.execute(sa.insert(finding_answers), row)
        record_answer(connection, id_, finding_id, answer.answer, answered_by, now)
    return id_


def kept_answers(database: Database, partner: str | None = None) -> Sequence[KeptAnswer]:
    """Return the answers, the newest first, of all partners or of one."""
    kept, seen = finding_answers.c, finding_observations.c
    finding = (
        sa.select(seen.code, seen.sale_id)
        .where(seen.finding_id == kept.finding_id)
        .order_by(seen.seen_at.desc())
        .limit(1)
        .lateral("finding")
    )
    query = (
        sa.select(
            *(kept.id, kept.finding_id, kept.partner, finding.c.code, finding.c.sale_id, kept.answer, kept.until),
            *(kept.text, kept.answered_at, kept.answered_by),
        )
        .outerjoin(finding, sa.true())
        .where(sa.true() if partner is None else kept.partner == partner)
        .order_by(kept.answered_at.desc(), kept.id.desc())
    )
    with database.transaction() as connection:
        return [KeptAnswer(**row) for row in connection.execute(query).mappings()]


_OWN: Final = "SELECT 1 FROM findings WHERE id = $1 AND partner = $2 AND NOT list_contains($3, code)"
