"""Write the life of findings as JSON: findings, changes, trend, waivers, scoreboard, files and withdrawals."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from functools import partial
from typing import Any, Final
from zoneinfo import ZoneInfo

import pandas as pd

from toolkit.domain.documents import named
from toolkit.domain.waivers import Waiver
from toolkit.operations.judge.audit import AuditResult
from toolkit.operations.judge.findings.changes import CHANGED, KINDS, Changes
from toolkit.reports.report import ROWS_AT_ONCE, known
from toolkit.reports.times import iso_exact

_encode: Final = json.JSONEncoder(ensure_ascii=False).encode
_LIFE_MOMENTS: Final = ("firstSeen", "lastSeen", "openedAt", "dueAt")


def life_summary(result: AuditResult, timezone: ZoneInfo) -> dict[str, Any]:
    """Return the findings by status, the changes since the audit before, the trend and the scoreboard."""
    changes = result.life.changes
    counted = None
    if changes is not None:
        counted = {"since": iso_exact(changes.start, timezone)} | changes.counts
        counted["saleGone"] = len(changes.without_sale)
    return {
        "partner": result.partner,
        "findingCounts": result.life.counts,
        "changes": counted,
        "trend": trend_records(result.life.trend),
        "partners": records(known(result.partners)),
    }


def life_lists(result: AuditResult, timezone: ZoneInfo) -> dict[str, Iterator[str]]:
    """Return the rows behind the numbers as JSON objects, each list one row at a time."""
    today = result.as_of.astimezone(timezone).date()
    waivers = (waiver_as_json(each, today, timezone) for each in result.life.waivers)
    return {
        "findings": _finding_rows(result.life.findings, timezone),
        "changed": _changed(result.life.changes),
        "unusableFiles": _rows_with(result.faults, "since", timezone),
        "withdrawals": _rows_with(result.withdrawals, "withdrawnAt", timezone),
        "completed": _rows_with(result.completed, "completedAt", timezone),
        "waivers": (json.dumps(each, ensure_ascii=False) for each in waivers),
    }


def _changed(changes: Changes | None) -> Iterator[str]:
    """Yield the findings that came, came back or went since the audit before, each by its id."""
    for kind in CHANGED if changes is not None else ():
        yield from (json.dumps({"id": each, "change": kind}) for each in getattr(changes, kind).to_pylist())


def finding_records(findings: pd.DataFrame, timezone: ZoneInfo) -> list[dict[str, Any]]:
    """Return each finding with its life, in the columns of ``toolkit.operations.judge.findings.living``."""
    return list(map(json.loads, _finding_rows(findings, timezone)))


def fault_records(faults: pd.DataFrame, timezone: ZoneInfo) -> list[dict[str, Any]]:
    """Return each unusable file, in the columns of ``toolkit.operations.judge.audit.details.faults_at``."""
    return list(map(json.loads, _rows_with(faults, "since", timezone)))


def changes_as_json(changes: Changes, trend: pd.DataFrame, timezone: ZoneInfo) -> dict[str, Any]:
    """Return the ids of findings by what happened between two moments, and the days between them."""
    return {
        "from": iso_exact(changes.start, timezone),
        "to": iso_exact(changes.end, timezone),
        **{kind: getattr(changes, kind).to_pylist() for kind in KINDS},
        "saleGone": changes.without_sale.to_pylist(),
        "trend": trend_records(trend),
    }


def trend_records(trend: pd.DataFrame) -> list[dict[str, Any]]:
    """Return one record a day: ``day``, ``present``, ``came``, ``went``."""
    return [row | {"day": row["day"].isoformat()} for row in records(trend)]


def waiver_as_json(waiver: Waiver, today: date, timezone: ZoneInfo) -> dict[str, Any]:
    """Return a waiver with its state on a day."""
    request = waiver.request
    return {
        "id": str(waiver.id),
        **named(request, "sale_id", "partner", "code", "reason", "owner", "approved_by"),
        "start": request.start.isoformat(),
        "end": request.end.isoformat(),
        "holds": waiver.holds(today),
        "daysLeft": waiver.days_left(today),
        "addedAt": iso_exact(waiver.added_at, timezone),
        "revokedAt": iso_exact(waiver.revoked_at, timezone) if waiver.revoked_at else None,
        **named(waiver, "revoked_by", "revoked_reason"),
    }


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as JSON objects."""
    return [dict(zip(table.columns, row, strict=True)) for row in table.itertuples(index=False, name=None)]


def _finding_rows(findings: pd.DataFrame, timezone: ZoneInfo) -> Iterator[str]:
    return json_rows(findings, dict.fromkeys(_LIFE_MOMENTS, partial(iso_exact, timezone=timezone)))


def _rows_with(table: pd.DataFrame, moment: str, timezone: ZoneInfo) -> Iterator[str]:
    return json_rows(table, {"evidenceId": str, moment: partial(iso_exact, timezone=timezone)})


def json_rows(table: pd.DataFrame, told: Mapping[str, Callable[[Any], Any]]) -> Iterator[str]:
    """Yield each row as a JSON object; ``told`` maps, by column, a value to its JSON value."""
    for start in range(0, len(table), ROWS_AT_ONCE):
        part = known(table.iloc[start : start + ROWS_AT_ONCE])
        template = ", ".join(f"{_encode(name).replace('%', '%%')}: %s" for name in part.columns)
        columns = [_encoded(part[name].tolist(), told.get(str(name))) for name in part.columns]
        yield from (f"{{{template}}}" % row for row in zip(*columns, strict=True))


def _encoded(values: list[Any], told: Callable[[Any], Any] | None) -> list[str]:
    texts = {each: _encode(each if each is None or told is None else told(each)) for each in set(values)}
    return [texts[each] for each in values]
