"""The findings of one audit that a partner is told, a page at a time.

They are those of its own sales, without what is compliance's own: suspicions about files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from toolkit.contract.codes import CODES, NOT_TOLD_TO_PARTNERS
from toolkit.contract.findings import FindingStatus

if TYPE_CHECKING:
    from toolkit.audit.folder import Audit


@dataclass(frozen=True, slots=True)
class FindingsAsked:
    """Which findings of ``partner`` are wanted: the ``limit`` whose ids come first, behind the id ``after``.

    ``due_before`` is a day in the time zone of the audit.
    """

    partner: str
    statuses: Collection[FindingStatus] = frozenset(FindingStatus)
    due_before: date | None = None
    after: UUID | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True)
class FindingsPage:
    """A page of findings as of an audit's moment; ``next_after`` asks for the page behind it, if there is one."""

    as_of: datetime
    findings: Sequence[Mapping[str, Any]]
    next_after: UUID | None


def findings_page(audit: Audit, asked: FindingsAsked) -> FindingsPage:
    """Read one page of a partner's findings under the names that a partner gets them by."""
    rows = audit.sql(
        _PAGE,
        *(asked.partner, sorted(asked.statuses), NOT_TOLD_TO_PARTNERS),
        *(asked.due_before, audit.facts.timezone, asked.after, asked.limit + 1),
    ).to_pylist()
    found = [{**row, "whatToDo": CODES[row["reason"] or row["code"]].remedy} for row in rows[: asked.limit]]
    return FindingsPage(audit.facts.as_of, found, UUID(found[-1]["id"]) if len(rows) > asked.limit else None)


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
