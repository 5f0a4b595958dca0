"""``missing-evidence.json``: the same report for programs, with the same bytes whenever that moment is asked for.

``templates/report.schema.json`` describes its fields, and comes with the package for those who read them.
"""

import json
from collections.abc import Iterator
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd

from toolkit.domain.documents import named
from toolkit.domain.integrity import IntegrityFinding
from toolkit.domain.report_cells import REPORT, items
from toolkit.operations.judge.audit import AuditResult
from toolkit.reports.document_life import json_rows, life_lists, life_summary, records
from toolkit.reports.report import MOMENTS, ROWS_AT_ONCE, Report, Rows
from toolkit.reports.times import iso, iso_column, iso_exact


def write(report: Report, path: Path) -> None:
    """Write the summary and then the rows, one a line."""
    result = report.result
    written = Rows(report, len(result.rows) + len(result.warned) + len(result.life.findings))
    with path.open("w", encoding="utf-8", newline="\n") as file:
        pieces = _text(report)
        while part := list(islice(pieces, ROWS_AT_ONCE)):
            file.writelines(part)
            written.add(len(part))


def fingerprint(report: Report) -> str:
    """Return the SHA-256 of the document, whether it is written or not: the same whenever the report is made."""
    digest = sha256()
    for piece in _text(report):
        digest.update(piece.encode())
    return digest.hexdigest()


def _text(report: Report) -> Iterator[str]:
    result, timezone = report.result, report.timezone
    yield json.dumps(summary(result, timezone), ensure_ascii=False, indent=2).removesuffix("\n}")
    sales = {"rows": result.rows, "warnings": result.warned, "unverified": result.unverified}
    lists = {name: _rows(rows, timezone) for name, rows in sales.items()}
    for name, rows in (lists | life_lists(result, timezone)).items():
        yield f',\n  "{name}": ['
        separator = "\n"
        for row in rows:
            yield f"{separator}    {row}"
            separator = ",\n"
        yield "\n  ]" if separator != "\n" else "]"
    yield "\n}\n"


def summary(result: AuditResult, timezone: ZoneInfo) -> dict[str, Any]:
    """Return everything but the rows."""
    source = result.source
    return {
        "report": REPORT,
        "asOf": iso_exact(result.as_of, timezone),
        **named(result, "sales", "compliant", "incomplete", "conflict", "completed_without_evidence"),
        **named(result, "without_client", "unexamined", "coverage", "compliant_verified"),
        "byGroup": records(result.by_group),
        "missing": records(result.missing),
        "problems": records(result.problems),
        "fileFindings": [_file_finding(each) for each in result.file_findings],
        "ages": records(result.ages),
        **life_summary(result, timezone),
        "source": {
            "database": source.database,
            "embedded": list(source.embedded),
            "bucket": source.last_sync.bucket if source.last_sync else None,
            "lastSync": iso(source.last_sync.finished_at, timezone) if source.last_sync else None,
            **named(source, "toolkit", "rules", "seal"),
            "pictureSince": iso(source.picture_since, timezone) if source.picture_since else None,
            "snapshot": source.snapshot,
            "recordsAssumedAt": iso(source.records_assumed_at, timezone) if source.records_assumed_at else None,
            "hiddenRows": list(source.hidden_rows),
            "copiedRows": list(source.copied_rows),
        },
    }


def _file_finding(finding: IntegrityFinding) -> dict[str, Any]:
    return {
        "problem": finding.problem,
        "saleIds": list(finding.sale_ids),
        "evidenceIds": [str(each) for each in finding.evidence_ids],
        "folders": list(finding.folders),
        "detail": finding.detail,
    }


def _rows(rows: pd.DataFrame, timezone: ZoneInfo) -> Iterator[str]:
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = rows.iloc[start : start + ROWS_AT_ONCE]
        pieces = pd.Series(list(zip(part["missing"], part["reasons"], strict=True)), part.index, dtype=object)
        times = {name: pd.Series(iso_column(part[name], timezone), part.index, dtype=object) for name in MOMENTS}
        plain = part.assign(missing=pieces, **times).drop(columns="reasons")
        yield from json_rows(plain, {"missing": _pieces, "problems": items, "counted": items})


def _pieces(joined: tuple[str, str]) -> list[dict[str, str]]:
    missing, reasons = map(items, joined)
    return [{"evidenceType": named, "reason": reason} for named, reason in zip(missing, reasons, strict=True)]
