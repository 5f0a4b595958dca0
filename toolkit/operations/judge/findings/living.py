"""The findings of an audit, each with its life: status, dates, deadline, owner and remedy."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

import pandas as pd

from toolkit.domain.codes import CODES, Owner, Severity
from toolkit.domain.deadlines import Deadlines, business_days
from toolkit.domain.finding_life import FindingStatus
from toolkit.domain.waivers import Waiver

COLUMNS: Final = (
    "id",
    "saleId",
    "partner",
    "utilityGroup",
    "code",
    "evidenceType",
    "reason",
    "severity",
    "status",
    "firstSeen",
    "lastSeen",
    "openedAt",
    "dueAt",
    "ageDays",
    "ageBusinessDays",
    "dueInBusinessDays",
    "overdue",
    "owner",
    "remedy",
    "waiverId",
)
"""The columns of a table of living findings. ``overdue`` is false for one that is waived or resolved."""

_SEVERITIES: Final = list(Severity)
_MISSING: Final = "MISSING_"


def living(
    present: pd.DataFrame,
    lives: pd.DataFrame,
    audits: Sequence[datetime],
    waivers: Sequence[Waiver],
    moment: datetime,
    deadlines: Deadlines,
) -> pd.DataFrame:
    """Join the findings that are present at a moment with their lives until then; those gone are ``resolved``.

    The gravest come first, then those that are due first.
    """
    known = {life.id: life for life in _tuples(lives)}
    held = _Waived(waivers, moment, deadlines)
    rows = [_present(each, known.pop(each.id, None), held, moment, deadlines) for each in _tuples(present)]
    rows += [_resolved(life, audits, moment, deadlines) for life in known.values()]
    found = pd.DataFrame(rows, columns=list(COLUMNS))
    order = found.assign(weight=found["severity"].map(_SEVERITIES.index), gone=found["status"] == "resolved")
    order = order.sort_values(["gone", "weight", "dueAt", "saleId", "code"], na_position="last")
    return found.loc[order.index].reset_index(drop=True)


class _Waived:
    """The waivers that hold on the day of a moment, found by what a finding is about."""

    def __init__(self, waivers: Sequence[Waiver], moment: datetime, deadlines: Deadlines) -> None:
        day = deadlines.day_of(moment)
        self._by: dict[tuple[str | None, str | None, str | None], Waiver] = {}
        for waiver in waivers:
            if waiver.holds(day):
                request = waiver.request
                self._by.setdefault((request.sale_id, request.partner, request.code), waiver)

    def by(self, sale_id: str | None, partner: str | None, code: str) -> Waiver | None:
        """The waiver for such a finding that ends last, if there is one."""
        if not self._by:
            return None
        fitting = [
            self._by[key]
            for sale in {sale_id, None}
            for whose in {partner, None}
            for what in (code, None)
            if (key := (sale, whose, what)) in self._by
        ]
        return max(fitting, key=lambda waiver: waiver.request.end, default=None)


def _present(each: Any, life: Any, held: _Waived, moment: datetime, deadlines: Deadlines) -> tuple[Any, ...]:
    again = life is not None and (life.stretches > 1 or life.closed_at is not None)
    first_seen = moment if life is None else life.first_seen.to_pydatetime()
    opened_at = moment if life is None or life.closed_at is not None else life.opened_at.to_pydatetime()
    waiver = held.by(each.sale_id, each.partner, each.code)
    status = FindingStatus.REOPENED if again else FindingStatus.OPEN
    if waiver is not None:
        status = FindingStatus.WAIVED
    return _row(each, each.reason, status, first_seen, opened_at, moment, moment, deadlines, waiver)


def _resolved(life: Any, audits: Sequence[datetime], moment: datetime, deadlines: Deadlines) -> tuple[Any, ...]:
    ends = moment if life.closed_at is None else life.closed_at.to_pydatetime()
    place = bisect_left(audits, ends)
    opened_at = life.opened_at.to_pydatetime()
    last_seen = max(audits[place - 1], opened_at) if place else opened_at
    first_seen = life.first_seen.to_pydatetime()
    status = FindingStatus.RESOLVED
    return _row(life, None, status, first_seen, opened_at, last_seen, moment, deadlines, None)


def _row(
    each: Any,
    reason: str | None,
    status: FindingStatus,
    first_seen: datetime,
    opened_at: datetime,
    last_seen: datetime,
    moment: datetime,
    deadlines: Deadlines,
    waiver: Waiver | None,
) -> tuple[Any, ...]:
    code = CODES[each.code]
    due_at = deadlines.due_at(opened_at, each.code, each.utility_group)
    until = last_seen if status is FindingStatus.RESOLVED else moment
    today, since = deadlines.day_of(until), deadlines.day_of(first_seen)
    overdue = until > due_at
    due_in = business_days(today, deadlines.day_of(due_at))
    return (
        each.id,
        each.sale_id,
        each.partner,
        each.utility_group,
        each.code,
        each.code.removeprefix(_MISSING) if each.code.startswith(_MISSING) else None,
        reason,
        str(code.severity),
        str(status),
        first_seen,
        last_seen,
        opened_at,
        due_at,
        (today - since).days,
        business_days(since, today),
        min(due_in, -1) if overdue else due_in,
        overdue and status in (FindingStatus.OPEN, FindingStatus.REOPENED),
        each.partner if code.owner is Owner.PARTNER and each.partner else str(code.owner),
        CODES[reason].remedy if reason else code.remedy,
        None if waiver is None else str(waiver.id),
    )


def _tuples(table: pd.DataFrame) -> Iterator[Any]:
    return table.astype(object).where(table.notna(), None).itertuples(index=False)
