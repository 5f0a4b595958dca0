"""Notebook 03: judge all sales, write the report, and show what is missing and why."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd

from toolkit.domain.codes import CODES
from toolkit.domain.documents import named
from toolkit.domain.findings import Reason
from toolkit.domain.report_cells import items
from toolkit.entrypoints.auditing import audit, witnessed
from toolkit.entrypoints.notebooks.display import Bars, Colour, Fact, Facts, Files, Grid, Part, Remark, Shown
from toolkit.entrypoints.notebooks.notebook_errors import application, given_path, told_plainly
from toolkit.entrypoints.notebooks.progress_line import cell_progress
from toolkit.entrypoints.snapshot_auditing import audit_of_snapshot, engine_of
from toolkit.entrypoints.spoken import _, spoken
from toolkit.entrypoints.timestamps import parse_timestamp
from toolkit.errors import SettingsError
from toolkit.language import Language, default_language
from toolkit.language import language as language_of
from toolkit.operations.judge.audit import AuditResult
from toolkit.reports import DEFAULT_FORMATS, chosen, write_report
from toolkit.reports.notices import headline, notices
from toolkit.reports.palette import COLOURS
from toolkit.reports.report import tuples
from toolkit.reports.times import told_detail


@told_plainly
def missing_evidence_report(
    *,
    as_of: str = "",
    out: str = "reports",
    formats: str = ",".join(DEFAULT_FORMATS),
    sync: bool = True,
    verify: bool = True,
    language: str = "",
    snapshot: str = "",
    engine: str = "",
) -> Shown[AuditResult]:
    """Judge all sales by the evidence that lies in the bucket, and write the report into the folder ``out``.

    ``as_of`` is a moment in the past, empty for now. With ``sync`` an audit of now looks at the sales and the
    bucket first, and with ``verify`` it verifies the contents of new files; the report says where nobody did. An
    audit of the past takes what was seen then. ``language`` is that of the files for people.
    ``snapshot`` names the folder or address of a snapshot to judge instead of the database, and ``engine`` judges
    it: duckdb (the default) or spark.
    """
    wanted = chosen(formats.split(","))
    spoken = language_of(language) if language.strip() else default_language(os.environ)
    if not str(out).strip():
        raise SettingsError("out must name the folder for the report.")
    with application() as opened:
        now, timezone = opened.clock(), opened.settings.timezone
        moment = parse_timestamp(as_of, timezone=timezone, now=now) if as_of.strip() else None
        progress = cell_progress()
        judge = engine_of(engine, snapshot)
        if judge is None:
            result = audit(
                opened, as_of=moment, sync=sync, verify=verify, with_file_findings=True, progress=progress
            )
        else:
            result = audit_of_snapshot(opened, snapshot, judge, as_of=moment, with_file_findings=True)
        told = partial(witnessed, opened)
        written = write_report(
            result, given_path(out), wanted, timezone=timezone, language=spoken, progress=progress, witness=told
        )
        parts = _parts(result, written, timezone, spoken)
    counts = {
        "job": "missing_evidence_report",
        **named(result, "sales", "compliant", "incomplete", "conflict"),
        "written": [str(path) for path in written],
        "needsAttention": result.open > 0,
    }
    return Shown(result, parts, counts)


def _parts(result: AuditResult, written: Sequence[Path], timezone: ZoneInfo, spoken: Language) -> list[Part]:
    facts = [
        Fact("sales", result.sales),
        Fact("compliant", result.compliant, Colour.GOOD),
        Fact("incomplete", result.incomplete, Colour.WARNING),
        Fact("in conflict", result.conflict, Colour.BAD),
    ]
    as_of = f"{spoken.text('As of')} {spoken.moment(result.as_of, timezone)}."
    parts: list[Part] = [Facts(headline(result, spoken), facts, as_of), Files("The report", written)]
    parts += [Remark("Note", text) for text in notices(result, spoken, timezone)]
    groups = {_(group): counts for group, counts in _counts(result.by_group, "utilityGroup").items()}
    parts.append(Bars("Sales by utility group", groups))
    missing = {name: row for name, row in _counts(result.missing, "evidenceType").items() if any(row.values())}
    if missing:
        parts.append(
            Bars("What is missing, and why", missing, {str(reason): COLOURS[reason] for reason in Reason})
        )
        parts.append(
            Grid("The reasons", ["reason", "meaning"], [(each, _(CODES[each].meaning)) for each in Reason])
        )
    problems = [
        (row.problem, row.sales, _(CODES[row.problem].meaning)) for row in tuples(result.problems) if row.sales
    ]
    if problems:
        parts.append(Grid("Other problems", ["problem", "sales", "meaning"], problems))
    if result.open:
        parts.append(_open_sales(result))
    if result.file_findings:
        parts.append(_file_findings(result, timezone))
    return parts


def _open_sales(result: AuditResult) -> Grid:
    columns = ["saleId", "group", "days", "status", "missing", "problems"]
    rows = [
        (row.saleId, row.utilityGroup, row.ageDays, _(row.status), _pieces(row), row.problems.replace("|", ", "))
        for row in tuples(result.rows.head(Grid.SHOWN))
    ]
    return Grid("Sales to act on, the gravest and oldest first", columns, rows, total=result.open)


def _file_findings(result: AuditResult, timezone: ZoneInfo) -> Grid:
    columns = ["finding", "sales", "where", "detail"]
    rows = [
        (
            _(CODES[finding.problem].meaning),
            ", ".join(finding.sale_ids),
            ", ".join(finding.folders),
            told_detail(finding.detail, spoken(), timezone),
        )
        for finding in result.file_findings[: Grid.SHOWN]
    ]
    return Grid("Findings about files, the gravest first", columns, rows, total=len(result.file_findings))


def _pieces(row: Any) -> str:
    pieces = zip(items(row.missing), items(row.reasons), strict=True)
    return ", ".join(f"{piece} ({reason})" for piece, reason in pieces if piece)


def _counts(table: pd.DataFrame, name: str) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = table.set_index(name).to_dict("index")  # type: ignore[assignment]
    return found
