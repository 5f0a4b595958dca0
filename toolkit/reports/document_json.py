"""``missing-evidence.json``: the same report for programs, with the same bytes whenever that moment is asked for.

::

    report, asOf              "missing-evidence"; times are ISO 8601 with an offset
    sales, compliant, incomplete, conflict                     counts of sales
    completedWithoutEvidence, withoutClient                    counts of sales
    unexamined                counted files that nobody has looked into yet
    coverage   {verified, firstBytes, never, unreadable}       counted files by how far they were looked at
    compliantVerified         compliant sales of which every counted file was verified
    byGroup    [{utilityGroup, compliant, incomplete, conflict}]
    missing    [{evidenceType, UNUSABLE, VANISHED, NOT_UPLOADED, EXPIRY_UNKNOWN, EXPIRED,
               NEVER_REQUESTED}]      counts of sales
    problems   [{problem, severity, sales}]
    fileFindings  [{problem, saleIds, evidenceIds, folders, detail}]      about the files themselves
    ages       [{ageDays, incomplete, conflict}]               open sales by days since their creation
    source     {database, embedded, bucket, lastSync, toolkit, rules, seal, pictureSince, recordsAssumedAt}
    rows       [{saleId, ...}]   one a sale that is not compliant: the columns of the CSV, with real lists,
                                 ``missing`` as [{evidenceType, reason}]
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import pandas as pd

from toolkit.domain.integrity import IntegrityFinding
from toolkit.domain.waivers import Waiver
from toolkit.operations.judge.audit import AuditResult
from toolkit.operations.judge.audit.expression import items
from toolkit.operations.judge.findings.changes import Changes
from toolkit.reports.report import MOMENTS, STEM, Report, known
from toolkit.reports.times import iso, iso_column, iso_exact

_LIFE_MOMENTS: Final = ("firstSeen", "lastSeen", "openedAt", "dueAt")


def write(report: Report, path: Path) -> None:
    """Write the summary and then the rows, one a line."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(_text(report))


def fingerprint(report: Report) -> str:
    """The SHA-256 of the document, whether it is written or not: the same whenever the report is made."""
    digest = sha256()
    for piece in _text(report):
        digest.update(piece.encode())
    return digest.hexdigest()


def _text(report: Report) -> Iterator[str]:
    head = json.dumps(summary(report.result, report.timezone), ensure_ascii=False, indent=2)
    yield head.removesuffix("\n}") + ',\n  "rows": ['
    separator = "\n"
    for row in _rows(report):
        yield f"{separator}    {json.dumps(row, ensure_ascii=False)}"
        separator = ",\n"
    yield "\n  ]\n}\n" if separator != "\n" else "]\n}\n"


def summary(result: AuditResult, timezone: ZoneInfo) -> dict[str, Any]:
    """Everything but the rows."""
    source = result.source
    return {
        "report": STEM,
        "asOf": iso_exact(result.as_of, timezone),
        "sales": result.sales,
        "compliant": result.compliant,
        "incomplete": result.incomplete,
        "conflict": result.conflict,
        "completedWithoutEvidence": result.completed_without_evidence,
        "withoutClient": result.without_client,
        "unexamined": result.unexamined,
        "coverage": result.coverage,
        "compliantVerified": result.compliant_verified,
        "byGroup": _records(result.by_group),
        "missing": _records(result.missing),
        "problems": _records(result.problems),
        "fileFindings": [_file_finding(each) for each in result.file_findings],
        "ages": _records(result.ages),
        "source": {
            "database": source.database,
            "embedded": list(source.embedded),
            "bucket": source.last_sync.bucket if source.last_sync else None,
            "lastSync": iso(source.last_sync.finished_at, timezone) if source.last_sync else None,
            "toolkit": source.toolkit,
            "rules": source.rules,
            "seal": source.seal,
            "pictureSince": iso(source.picture_since, timezone) if source.picture_since else None,
            "recordsAssumedAt": iso(source.records_assumed_at, timezone) if source.records_assumed_at else None,
        },
    }


def finding_records(findings: pd.DataFrame, timezone: ZoneInfo) -> Iterator[dict[str, Any]]:
    """Each finding with its life, in the columns of ``toolkit.operations.judge.findings.living``."""
    for row in _records(known(findings)):
        yield row | {
            name: iso_exact(row[name], timezone) for name in ("firstSeen", "lastSeen", "openedAt", "dueAt")
        }


def changes_as_json(changes: Changes, trend: pd.DataFrame, timezone: ZoneInfo) -> dict[str, Any]:
    """The ids of findings by what happened between two moments, and the days between them."""
    return {
        "from": iso_exact(changes.start, timezone),
        "to": iso_exact(changes.end, timezone),
        **{kind: list(map(str, getattr(changes, kind))) for kind in ("new", "resolved", "reopened", "open")},
        "trend": trend_records(trend),
    }


def trend_records(trend: pd.DataFrame) -> list[dict[str, Any]]:
    """One record a day: ``day``, ``present``, ``came``, ``went``."""
    return [row | {"day": row["day"].isoformat()} for row in _records(trend)]


def waiver_as_json(waiver: Waiver, today: date, timezone: ZoneInfo) -> dict[str, Any]:
    """A waiver with its state on a day."""
    request = waiver.request
    return {
        "id": str(waiver.id),
        "saleId": request.sale_id,
        "partner": request.partner,
        "code": request.code,
        "reason": request.reason,
        "owner": request.owner,
        "approvedBy": request.approved_by,
        "start": request.start.isoformat(),
        "end": request.end.isoformat(),
        "holds": waiver.holds(today),
        "daysLeft": waiver.days_left(today),
        "addedAt": iso_exact(waiver.added_at, timezone),
        "revokedAt": iso_exact(waiver.revoked_at, timezone) if waiver.revoked_at else None,
        "revokedBy": waiver.revoked_by,
        "revokedReason": waiver.revoked_reason,
    }


def _file_finding(finding: IntegrityFinding) -> dict[str, Any]:
    return {
        "problem": finding.problem,
        "saleIds": list(finding.sale_ids),
        "evidenceIds": [str(each) for each in finding.evidence_ids],
        "folders": list(finding.folders),
        "detail": finding.detail,
    }


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.itertuples(index=False, name=None)]


def _rows(report: Report) -> Iterator[dict[str, Any]]:
    rows = report.result.rows
    plain = known(rows)
    for name in MOMENTS:
        plain[name] = pd.Series(iso_column(rows[name], report.timezone), dtype=object)
    for row in _records(plain):
        pieces = zip(items(row["missing"]), items(row.pop("reasons")), strict=True)
        row["missing"] = [{"evidenceType": named, "reason": reason} for named, reason in pieces]
        yield row | {name: items(row[name]) for name in ("problems", "counted")}
