"""``missing-evidence.json``: the report for programs, the same bytes whenever that moment is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from toolkit.audit.changes import KINDS, FindingChanges
from toolkit.contract.fields import pick_camel
from toolkit.contract.findings import REPORT, items
from toolkit.contract.waivers import Waiver
from toolkit.reports.audited import ROW_COLUMNS, Audited
from toolkit.reports.report import MOMENTS, ROWS_AT_ONCE, Report, iso, iso_column, iso_exact, tuples

_encode: Final = json.JSONEncoder(ensure_ascii=False).encode
_LIFE_MOMENTS: Final = ("firstSeen", "lastSeen", "openedAt", "dueAt", "toldAt")


def finding_records(findings: pd.DataFrame, timezone: ZoneInfo) -> list[dict[str, Any]]:
    """Return each finding with its life, in the columns of ``toolkit.audit.findings.as_listed``."""
    return list(map(json.loads, _finding_rows(findings, timezone)))


def changes_as_json(changes: FindingChanges, timezone: ZoneInfo) -> dict[str, Any]:
    """Return the ids of findings by what happened between two moments, and the days between them."""
    return {
        "from": iso_exact(changes.start, timezone),
        "to": iso_exact(changes.end, timezone),
        **{kind: changes.ids(kind) for kind in KINDS},
        "saleGone": changes.without_sale,
        "trend": trend_records(changes.by_day),
    }


def trend_records(trend: pd.DataFrame) -> list[dict[str, Any]]:
    """Return one record a day: ``day``, ``present``, ``came``, ``went``."""
    return [row | {"day": row["day"].isoformat()} for row in records(trend)]


def waiver_as_json(waiver: Waiver, today: date, timezone: ZoneInfo) -> dict[str, Any]:
    """Return a waiver with its state on a day."""
    return {
        "id": str(waiver.id),
        **pick_camel(waiver, "sale_id", "partner", "code", "reason", "owner", "approved_by"),
        "start": waiver.start.isoformat(),
        "end": waiver.end.isoformat(),
        "holds": waiver.holds(today),
        "daysLeft": waiver.days_left(today),
        "addedAt": iso_exact(waiver.added_at, timezone),
        "revokedAt": iso_exact(waiver.revoked_at, timezone),
        **pick_camel(waiver, "revoked_by", "revoked_reason"),
    }


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as JSON objects."""
    return [row._asdict() for row in tuples(table)]


def _finding_rows(findings: pd.DataFrame, timezone: ZoneInfo) -> Iterator[str]:
    rows = findings.drop(columns="change", errors="ignore")
    moments = dict.fromkeys(_LIFE_MOMENTS, partial(iso_exact, timezone=timezone))
    return json_rows(rows, {**moments, "answerUntil": str})


def _rows_with(table: pd.DataFrame, moment: str, timezone: ZoneInfo) -> Iterator[str]:
    return json_rows(table, {"evidenceId": str, moment: partial(iso_exact, timezone=timezone)})


def json_rows(table: pd.DataFrame, as_json: Mapping[str, Callable[[Any], Any]]) -> Iterator[str]:
    """Yield each row as a JSON object; ``as_json`` maps, by column, a value to its JSON value."""
    for start in range(0, len(table), ROWS_AT_ONCE):
        part = table.iloc[start : start + ROWS_AT_ONCE]
        template = ", ".join(f"{_encode(name).replace('%', '%%')}: %s" for name in part.columns)
        columns = [_encoded(part[name], as_json.get(str(name))) for name in part.columns]
        yield from (f"{{{template}}}" % row for row in zip(*columns, strict=True))


def _encoded(values: pd.Series[Any], as_json: Callable[[Any], Any] | None) -> list[str]:
    """Return the values as JSON, each distinct one of which is written once."""
    places, distinct = pd.factorize(values.array)
    texts = [_encode(each if as_json is None else as_json(each)) for each in np.asarray(distinct, object)]
    found: list[str] = np.array([*texts, "null"], dtype=object)[places].tolist()
    return found


def write(report: Report, path: Path) -> None:
    """Write the summary and then the rows, one a line."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(_text(report))


def fingerprint(report: Report) -> str:
    """Return the SHA-256 of the document, whether it is written or not: the same whenever the report is made."""
    digest = sha256()
    for piece in _text(report):
        digest.update(piece.encode())
    return digest.hexdigest()


def _text(report: Report) -> Iterator[str]:
    result, timezone = report.result, report.timezone
    yield json.dumps(summary(result, timezone), ensure_ascii=False, indent=2, default=str).removesuffix("\n}")
    waivers = (waiver_as_json(each, result.today, timezone) for each in result.waivers)
    changed = ({"id": each, "change": kind} for kind, ids in result.changed.items() for each in ids)
    lists = {
        "rows": _rows(result.rows, timezone),
        "warnings": _rows(result.warned, timezone),
        "unverified": _rows(result.unverified, timezone),
        "findings": _finding_rows(result.findings, timezone),
        "changed": map(_encode, changed),
        "unusableFiles": _rows_with(result.faults, "since", timezone),
        "withdrawals": _rows_with(result.withdrawals, "withdrawnAt", timezone),
        "completed": _rows_with(result.completed, "completedAt", timezone),
        "waivers": map(_encode, waivers),
    }
    for name, rows in lists.items():
        yield f',\n  "{name}": ['
        separator = "\n"
        for row in rows:
            yield f"{separator}    {row}"
            separator = ",\n"
        yield "\n  ]" if separator != "\n" else "]"
    yield "\n}\n"


def summary(result: Audited, timezone: ZoneInfo) -> dict[str, Any]:
    """Return everything but the rows."""
    source, changes = result.facts.source, None
    if result.facts.changes_since is not None:
        by_partner = {"byPartner": records(result.changes_by_partner)}
        changes = {"since": iso_exact(result.facts.changes_since, timezone)} | result.change_counts | by_partner
    return {
        "report": REPORT,
        "asOf": iso_exact(result.facts.as_of, timezone),
        **pick_camel(result, "sales", "compliant", "incomplete", "conflict", "completed_without_evidence"),
        **pick_camel(
            result, "without_client", "unexamined", "coverage", "compliant_verified", "compliant_not_completed"
        ),
        "looks": pick_camel(result.facts.files, "readers", "depth", "older_look", "without_speech"),
        "byGroup": records(result.by_group),
        "missing": records(result.missing),
        "problems": records(result.problems),
        "fileFindings": result.file_findings,
        "ages": records(result.ages),
        "partner": result.partner,
        "findingCounts": result.finding_counts,
        "changes": changes,
        "trend": trend_records(result.trend),
        "partners": records(result.partners),
        "partnerMonths": records(result.partner_months),
        "reviews": {
            **pick_camel(result.reviews, "files", "drawn", "looked_at", "failed", "accepted"),
            "questions": records(result.reviews.questions),
            "agreement": records(result.reviews.agreement),
        },
        "source": {
            **pick_camel(source, "database", "embedded"),
            "bucket": source.last_sync.bucket if source.last_sync else None,
            "lastSync": iso(source.last_sync.finished_at, timezone) if source.last_sync else None,
            **pick_camel(source, "toolkit", "rules", "seal"),
            "listedSince": iso(source.listed_since, timezone) if source.listed_since else None,
            **pick_camel(source, "hidden_rows", "copied_rows", "replica", "service_changes", "service_notes"),
            "rowsLeftOut": source.rows_left_out,
        },
    }


def _rows(rows: pd.DataFrame, timezone: ZoneInfo) -> Iterator[str]:
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = rows[[*ROW_COLUMNS]].iloc[start : start + ROWS_AT_ONCE]
        pieces = pd.Series(list(zip(part["missing"], part["reasons"], strict=True)), part.index, dtype=object)
        times = {name: pd.Series(iso_column(part[name], timezone), part.index, dtype=object) for name in MOMENTS}
        plain = part.assign(missing=pieces, **times).drop(columns="reasons")
        yield from json_rows(plain, {"missing": _pieces, "problems": items, "counted": items})


def _pieces(joined: tuple[str, str]) -> list[dict[str, str]]:
    missing, reasons = map(items, joined)
    return [{"evidenceType": named, "reason": reason} for named, reason in zip(missing, reasons, strict=True)]
