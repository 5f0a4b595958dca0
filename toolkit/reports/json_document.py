"""``missing-evidence.json``: the report for programs, the same bytes whenever that moment is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import date, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from toolkit.contract.fields import pick_camel
from toolkit.contract.findings import REPORT, items
from toolkit.contract.waivers import Waiver
from toolkit.reports.audited import ROW_COLUMNS, Audited
from toolkit.reports.report import MOMENTS, ROWS_AT_ONCE, Report, iso, iso_column, tuples


def finding_records(findings: pd.DataFrame, timezone: ZoneInfo) -> list[dict[str, Any]]:
    """Return each finding with its life, in the columns of ``toolkit.audit.findings.as_listed``."""
    return [*map(json.loads, json_rows(findings.drop(columns="change", errors="ignore"), encoder(timezone)))]


def waiver_as_json(waiver: Waiver, today: date) -> dict[str, Any]:
    """Return a waiver with its state on a day."""
    return {
        **pick_camel(waiver, "id", "sale_id", "partner", "code", "reason", "owner", "approved_by", "start", "end"),
        "holds": waiver.holds(today),
        "daysLeft": waiver.days_left(today),
        **pick_camel(waiver, "added_at", "revoked_at", "revoked_by", "revoked_reason"),
    }


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as JSON objects."""
    return [row._asdict() for row in tuples(table)]


def encoder(timezone: ZoneInfo, indent: int | None = None) -> json.JSONEncoder:
    """Return what writes JSON: moments exactly and in this zone, ids and days as their texts."""

    def text(value: object) -> str:
        return iso(value, timezone) if isinstance(value, datetime) else str(value)

    return json.JSONEncoder(ensure_ascii=False, indent=indent, default=text)


def json_rows(table: pd.DataFrame, to: json.JSONEncoder, **read: Callable[[Any], Any]) -> Iterator[str]:
    """Yield each row as a JSON object; ``read`` has, by column, what makes the JSON value of a value."""
    for start in range(0, len(table), ROWS_AT_ONCE):
        part = table.iloc[start : start + ROWS_AT_ONCE]
        template = ", ".join(f"{to.encode(name).replace('%', '%%')}: %s" for name in part.columns)
        columns = [_encoded(part[name], to, read.get(str(name))) for name in part.columns]
        yield from (f"{{{template}}}" % row for row in zip(*columns, strict=True))


def _encoded(values: pd.Series[Any], to: json.JSONEncoder, read: Callable[[Any], Any] | None) -> list[str]:
    """Return the values as JSON, each distinct one of which is written once."""
    places, distinct = pd.factorize(values.array)
    texts = [to.encode(each if read is None else read(each)) for each in np.asarray(distinct, object)]
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
    result, to = report.result, encoder(report.timezone)
    yield encoder(report.timezone, indent=2).encode(summary(result)).removesuffix("\n}")
    changed = ({"id": each, "change": kind} for kind, ids in result.changed.items() for each in ids)
    lists = {
        "rows": _rows(result.rows, report),
        "warnings": _rows(result.warned, report),
        "unverified": _rows(result.unverified, report),
        "findings": json_rows(result.findings.drop(columns="change"), to),
        "changed": map(to.encode, changed),
        "unusableFiles": json_rows(result.faults, to),
        "withdrawals": json_rows(result.withdrawals, to),
        "completed": json_rows(result.completed, to),
        "waivers": (to.encode(waiver_as_json(each, result.today)) for each in result.waivers),
    }
    for name, rows in lists.items():
        yield f',\n  "{name}": ['
        separator = "\n"
        for row in rows:
            yield f"{separator}    {row}"
            separator = ",\n"
        yield "\n  ]" if separator != "\n" else "]"
    yield "\n}\n"


def summary(result: Audited) -> dict[str, Any]:
    """Return everything but the rows."""
    source, changes = result.facts.source, None
    if result.facts.changes_since is not None:
        by_partner = {"byPartner": records(result.changes_by_partner)}
        changes = {"since": result.facts.changes_since} | result.change_counts | by_partner
    return {
        "report": REPORT,
        "asOf": result.facts.as_of,
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
        "trend": records(result.trend),
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
            "lastSync": source.last_sync.finished_at if source.last_sync else None,
            **pick_camel(source, "toolkit", "rules", "seal", "listed_since", "hidden_rows", "copied_rows"),
            **pick_camel(source, "replica", "service_changes", "service_notes", "rows_left_out"),
        },
    }


def _rows(rows: pd.DataFrame, report: Report) -> Iterator[str]:
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = rows[[*ROW_COLUMNS]].iloc[start : start + ROWS_AT_ONCE]
        pieces = pd.Series(list(zip(part["missing"], part["reasons"], strict=True)), part.index, dtype=object)
        moments = {name: iso_column(part[name], report.timezone) for name in MOMENTS}
        times = {name: pd.Series(texts, part.index, dtype=object) for name, texts in moments.items()}
        plain = part.assign(missing=pieces, **times).drop(columns="reasons")
        yield from json_rows(plain, encoder(report.timezone), missing=_pieces, problems=items, counted=items)


def _pieces(joined: tuple[str, str]) -> list[dict[str, str]]:
    missing, reasons = map(items, joined)
    return [{"evidenceType": named, "reason": reason} for named, reason in zip(missing, reasons, strict=True)]
