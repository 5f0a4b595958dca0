"""Show partners their findings a page at a time, and keep what they answer; an answer changes no verdict.

They are told the findings of their own sales, without what is compliance's own: suspicions about files. They
answer over HTTP, one by one, or in the workbook that they were sent.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from pydantic import BeforeValidator, Field

from toolkit.contract.codes import CODES, NOT_TOLD_TO_PARTNERS
from toolkit.contract.events import CustodyEvent
from toolkit.contract.fields import Birthdate, invalid, required_text
from toolkit.contract.findings import FindingStatus
from toolkit.contract.resources import HEADINGS, Answer, AnswerKind, FindingAnswer
from toolkit.database.observation_clock import stamp
from toolkit.database.tables import finding_answers, finding_observations, new_id
from toolkit.errors import FindingNotFound, InvalidField, InvalidFields
from toolkit.intake.headings import Headings, plain
from toolkit.intake.sources import source_of
from toolkit.intake.tables import Rejected, Table, valid_rows
from toolkit.language import LANGUAGES, Language, language
from toolkit.log.events import record_event

if TYPE_CHECKING:
    from toolkit.audit.folder import Audit
    from toolkit.database.connection import Database


def findings_page(
    audit: Audit,
    partner: str,
    statuses: Collection[FindingStatus],
    *,
    limit: int,
    due_before: date | None = None,
    after: UUID | None = None,
) -> tuple[list[dict[str, Any]], UUID | None]:
    """Read one page of a partner's findings under the names that a partner gets them by.

    They are the ``limit`` whose ids come first, behind the id ``after``. With them is the ``after`` of the page
    behind it, if there is one. ``due_before`` is a day in the time zone of the audit.
    """
    wanted = partner, sorted(statuses), NOT_TOLD_TO_PARTNERS
    rows = audit.sql(_PAGE, *wanted, due_before, audit.facts.timezone, after, limit + 1).to_pylist()
    found = rows[:limit]
    for row in found:
        done = row["status"] == FindingStatus.RESOLVED
        row["whatToDo"] = None if done else CODES[row["reason"] or row["code"]].remedy
    return found, UUID(found[-1]["id"]) if len(rows) > limit else None


_PAGE: Final = """
    SELECT id, sale_id AS "saleId", code, evidence_type AS "evidenceType", reason, severity, status,
           first_seen AS "firstSeen", due_at AS "dueAt", overdue, owner
    FROM findings
    WHERE partner = $1 AND list_contains($2, status) AND NOT list_contains($3, code)
      AND ($4 IS NULL OR CAST(due_at AT TIME ZONE $5 AS DATE) < $4)
      AND ($6 IS NULL OR CAST(id AS UUID) > $6)
    ORDER BY CAST(id AS UUID)
    LIMIT $7
"""


@dataclass(frozen=True, slots=True)
class AnswersLoaded:
    """The answers in a file: its ``rows`` with one, those that are new, those known before, and the rejected."""

    rows: int
    new: int
    unchanged: int
    rejected: Rejected
    rejected_files: tuple[Path, ...]


def keep_answer(
    database: Database, audit: Audit, finding_id: UUID, answer: FindingAnswer, *, partner: str, answered_by: str
) -> UUID:
    """Keep a partner's answer to a finding of the newest audit; return the answer's id.

    Raises:
        FindingNotFound: no finding of the audit has this id, or it is not one that the partner is told.
        InvalidFields: ``until`` is a day that has passed in the time zone of the audit.
    """
    if not audit.sql(_OWN, str(finding_id), partner, NOT_TOLD_TO_PARTNERS).num_rows:
        raise FindingNotFound
    id_ = new_id()
    with database.transaction() as connection:
        now = stamp(connection)
        if answer.until is not None and answer.until < now.astimezone(ZoneInfo(audit.facts.timezone)).date():
            raise InvalidFields([InvalidField("until", "Must not be in the past")])
        row = {"id": id_, "finding_id": finding_id, "partner": partner, "answered_at": now}
        row |= {**answer.model_dump(mode="python"), "answered_by": answered_by}
        connection.execute(sa.insert(finding_answers), row)
        detail = {"answer": str(id_), "finding": str(finding_id), "said": answer.answer, "by": answered_by}
        record_event(connection, CustodyEvent.FINDING_ANSWERED, now, detail)
    return id_


def kept_answers(database: Database, partner: str | None = None) -> Sequence[sa.Row[Any]]:
    """Return the answers, the newest first, of all partners or of one, with the code and sale of the finding."""
    kept, seen = finding_answers.c, finding_observations.c
    finding = (
        sa.select(seen.code, seen.sale_id)
        .where(seen.finding_id == kept.finding_id)
        .order_by(seen.seen_at.desc())
        .limit(1)
        .lateral("finding")
    )
    query: sa.Select[Any] = (
        sa.select(
            *(kept.id, kept.finding_id, kept.partner, finding.c.code, finding.c.sale_id, kept.answer, kept.until),
            *(kept.text, kept.answered_at, kept.answered_by),
        )
        .outerjoin(finding, sa.true())
        .where(sa.true() if partner is None else kept.partner == partner)
        .order_by(kept.answered_at.desc(), kept.id.desc())
    )
    with database.transaction() as connection:
        return connection.execute(query).all()


_OPENED: Final = "SELECT id, opened_at FROM findings WHERE partner = $1"
_OWN: Final = "SELECT 1 FROM findings WHERE id = $1 AND partner = $2 AND NOT list_contains($3, code)"


def load_answers(
    database: Database,
    audit: Audit,
    path: Path,
    *,
    partner: str,
    answered_by: str,
    out: Path | None = None,
    spoken: Language,
) -> AnswersLoaded:
    """Keep the answers in a workbook or CSV file that ``partner`` sent back; rows without an answer are left out.

    An answer that the finding has already as its newest one since it came, or came back, is not kept again, so
    that a file can be read twice.
    Rejected rows are written to be corrected: into ``out``, or beside the file.

    Raises:
        UnreadableFile: the file is missing, no table, or lacks a column; nothing was kept.
    """
    table = Table(source_of(path), _HEADINGS)
    answered = [
        (line, body) for line, body in table.bodies() if any(body[name] for name in body if name != "findingId")
    ]
    valid, rejected = valid_rows(answered, _AnswerRow, lambda row: row.finding_id, _REPEATED)
    opened = {UUID(id_): at for id_, at in zip(*audit.sql(_OPENED, partner).to_pydict().values(), strict=True)}
    kept = reversed(kept_answers(database, partner))
    newest = {
        each.finding_id: each for each in kept if each.answered_at >= opened.get(each.finding_id, each.answered_at)
    }
    unchanged = 0
    for line, row in valid.items():
        before = newest.get(row.finding_id)
        if before is not None and (before.answer, before.until, before.text) == (row.answer, row.until, row.text):
            unchanged += 1
            continue
        who = {"partner": partner, "answered_by": answered_by}
        try:
            keep_answer(database, audit, row.finding_id, row, **who)
        except FindingNotFound:
            unknown = InvalidField("findingId", "The newest audit has no finding of this partner with this id")
            rejected[line] = (unknown,)
        except InvalidFields as error:
            rejected[line] = error.invalid
    rejected = dict(sorted(rejected.items()))
    files = table.hand_back(rejected, out, spoken)
    rows = len(answered)
    return AnswersLoaded(rows, rows - unchanged - len(rejected), unchanged, rejected, files)


_REPEATED: Final = InvalidField("findingId", "Stands in line {} already")
_HEADINGS: Final = Headings(
    {name: [language(code).text(heading) for code in LANGUAGES] for name, heading in HEADINGS.items()},
    ("until", "text"),
)

_KINDS: Final = {plain(language(code).text(kind.text)): kind for kind in AnswerKind for code in LANGUAGES}


def _kind(cell: Any) -> Any:
    """Return the code that the words of a workbook stand for; anything else as it is."""
    return _KINDS.get(plain(cell), cell) if isinstance(cell, str) else cell


def _day(cell: Any) -> Any:
    """Return a day that is written day first, as in spreadsheets, the way that the contract writes it."""
    found = re.fullmatch(r"(\d\d?)/(\d\d?)/(\d{4})", cell.strip()) if isinstance(cell, str) else None
    return cell if found is None else f"{found[3]}-{found[2]:0>2}-{found[1]:0>2}"


def _id(cell: Any) -> UUID:
    try:
        return UUID(required_text(cell))
    except ValueError:
        raise invalid("Must be the id of a finding") from None


class _AnswerRow(FindingAnswer):
    finding_id: Annotated[UUID, BeforeValidator(_id)]
    answer: Annotated[Answer, BeforeValidator(_kind)]
    until: Annotated[Birthdate | None, BeforeValidator(_day), Field(None, validate_default=True)]
