"""The notebooks about audits: 03 the report, 05 one sale, 06 two moments compared, 07 the partners."""

import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd

from toolkit.audit.changes import FindingChanges, audits_until, changes_between
from toolkit.audit.folder import Audit
from toolkit.audit.sale_case import SaleCase, sale_case
from toolkit.contract.fields import pick_camel
from toolkit.contract.findings import Status, items
from toolkit.errors import SettingsError
from toolkit.kit.auditing import as_audited, audit, earlier_audit, last_audit, record_report
from toolkit.kit.context import ApplicationContext
from toolkit.kit.sale_tables import sale_facts, sale_tables
from toolkit.kit.spoken import _, current_language, parse_timestamp, readable
from toolkit.language import Language, default_language
from toolkit.language import language as language_of
from toolkit.message import Message
from toolkit.notebooks.calls import (
    SHOWN,
    Bundle,
    Shown,
    application,
    cell_progress,
    figures,
    given_path,
    links,
    remark,
    table,
    told_plainly,
)
from toolkit.reports import DEFAULT_FORMATS, chosen, write_report
from toolkit.reports.audited import Audited
from toolkit.reports.notices import headline, notices
from toolkit.reports.report import tuples
from toolkit.reports.wording import COLUMN_NAMES


@told_plainly
def missing_evidence_report(
    *,
    as_of: str = "",
    out: str = "reports",
    formats: str = ",".join(DEFAULT_FORMATS),
    sync: bool = True,
    verify: bool = True,
    language: str = "",
    audit_folder: str = "",
    engine: str = "duckdb",
) -> Shown[Audited]:
    """Judge all sales by the evidence that lies in the bucket, and write the report into the folder ``out``.

    ``as_of`` is a moment in the past, empty for now. With ``sync`` an audit of now looks at the sales and the
    bucket first, and with ``verify`` it verifies the contents of new files; the report says where nobody did. An
    audit of the past takes what was seen then. ``language`` is that of the files for people.
    ``audit_folder`` names the folder or address of an audit that was made before, to report that one instead.
    ``engine`` judges: duckdb in this process, or spark, the cluster of TOOLKIT_SPARK_URL.
    """
    wanted = chosen(formats.split(","))
    spoken = language_of(language) if language.strip() else default_language(os.environ)
    if not str(out).strip():
        raise SettingsError("out must name the folder for the report.")
    with application() as opened:
        timezone, progress = opened.settings.timezone, cell_progress()
        result = as_audited(_judged(opened, as_of, audit_folder, engine, sync=sync, verify=verify))
        written = write_report(
            result,
            given_path(out),
            wanted,
            timezone=timezone,
            language=spoken,
            progress=progress,
            witness=partial(record_report, opened),
        )
        parts = _report_parts(result, written, timezone, spoken)
    counts = {
        "job": "missing_evidence_report",
        **pick_camel(result, "sales", "compliant", "incomplete", "conflict"),
        "written": [str(path) for path in written],
        "needsAttention": result.open > 0,
    }
    return Shown(result, parts, counts)


def _judged(
    opened: ApplicationContext, as_of: str, audit_folder: str, engine: str, *, sync: bool, verify: bool = True
) -> Audit:
    """Return the audit that the parameters ask for: an earlier one, or a new one."""
    moment = _moment(opened, as_of)
    if audit_folder.strip():
        return earlier_audit(opened, audit_folder.strip())
    if engine.strip() not in {"", "duckdb", "spark"}:
        raise SettingsError("An engine is duckdb or spark, not {!r}.", engine)
    spark = engine.strip() == "spark"
    return audit(opened, as_of=moment, sync=sync, verify=verify, spark=spark, progress=cell_progress())


def _moment(opened: ApplicationContext, text: str) -> datetime | None:
    if not text.strip():
        return None
    return parse_timestamp(text, timezone=opened.settings.timezone, now=opened.clock())


def _report_parts(result: Audited, written: Sequence[Path], timezone: ZoneInfo, spoken: Language) -> list[Bundle]:
    facts = {
        "sales": result.sales,
        "compliant": result.compliant,
        "incomplete": result.incomplete,
        "in conflict": result.conflict,
    }
    as_of = f"{spoken.text('As of')} {spoken.moment(result.as_of, timezone)}."
    parts = [figures(headline(result, spoken), facts, as_of), links("The report", written)]
    parts += [remark("Note", text) for text in notices(result, spoken, timezone)]
    parts.append(table("Sales by utility group", [*result.by_group], _rows(result.by_group)))
    missing = result.missing[result.missing.drop(columns="evidenceType").any(axis=1)]
    if len(missing):
        parts.append(table("What is missing, and why", [*missing], _rows(missing)))
    if result.open:
        columns = ["saleId", "group", "days", "status", "missing", "problems"]
        rows = [
            (each.saleId, each.utilityGroup, each.ageDays, _(each.status), _pieces(each), _listed(each.problems))
            for each in tuples(result.rows.head(SHOWN))
        ]
        parts.append(table("Sales to act on, the gravest and oldest first", columns, rows, total=result.open))
    return parts


def _listed(joined: str) -> str:
    return joined.replace("|", ", ")


def _pieces(row: Any) -> str:
    pieces = zip(items(row.missing), items(row.reasons), strict=True)
    return ", ".join(f"{piece} ({reason})" for piece, reason in pieces if piece)


@told_plainly
def compare_moments(*, earlier: str = "", later: str = "") -> Shown[FindingChanges]:
    """Compare the audits of two past moments; empty ones are a month ago or the first audit, and now."""
    with application() as opened:
        zone = opened.settings.timezone
        last = _moment(opened, later) or opened.clock()
        first = _moment(opened, earlier) or _month_ago(opened, last)
        changes = changes_between(opened.database, first, last, zone)
        findings = as_audited(audit(opened, as_of=last)).findings
    counts = {
        "job": "compare_moments",
        **changes.counts,
        "needsAttention": bool(changes.ids("new") or changes.ids("reopened")),
    }
    names = [readable(moment, zone) for moment in (first, last)]
    return Shown(changes, _compared_parts(changes, findings, names), counts)


def _month_ago(opened: ApplicationContext, moment: datetime) -> datetime:
    """Return the moment a month before, or that of the first audit where it came later."""
    month_ago = moment - timedelta(days=30)
    with opened.database.transaction() as connection:
        first = min(audits_until(connection, moment), default=month_ago)
    return max(first, month_ago)


def _compared_parts(changes: FindingChanges, findings: pd.DataFrame, names: list[str]) -> list[Bundle]:
    facts = {
        "new": changes.counts["new"],
        "back again": changes.counts["reopened"],
        "resolved": changes.counts["resolved"],
        "still open": changes.counts["open"],
    }
    parts = [figures(Message("Findings from {} to {}", names[0], names[1]), facts)]
    for heading, kind in ((_("New"), "new"), (_("Back again"), "reopened"), (_("Resolved"), "resolved")):
        shown = findings.loc[findings["id"].isin(changes.ids(kind))]
        if len(shown):
            columns = ["saleId", "code", "reason", "severity", "partner", "owner"]
            parts.append(table(heading, columns, _rows(shown[columns])))
    return parts


def _rows(frame: pd.DataFrame) -> list[list[Any]]:
    """Return the rows of a table, its words translated; nothing stands for what is not there."""
    told = frame.astype(object).where(frame.notna(), "")
    for name in {"severity", "owner", "status"} & set(told.columns):
        told[name] = told[name].map(_)
    rows: list[list[Any]] = told.to_numpy().tolist()
    return rows


@told_plainly
def one_sale(*, sale_id: str = "") -> Shown[SaleCase | None]:
    """Show what is known about a sale: rule, records with files, findings, waivers, time line, and what to do."""
    if not sale_id.strip():
        nothing = remark("No sale was named", "Set sale_id to the id of a sale.")
        return Shown(None, [nothing], {"job": "one_sale", "saleId": "", "needsAttention": False})
    with application() as opened:
        zone = opened.settings.timezone
        case = sale_case(opened.database, sale_id.strip(), audit=last_audit(opened), clock=opened.clock)
    counts = {
        "job": "one_sale",
        "saleId": case.sale_id,
        "status": str(case.verdict.status),
        "needsAttention": case.verdict.status is not Status.COMPLIANT,
    }
    return Shown(case, _sale_parts(case, zone), counts)


def _sale_parts(case: SaleCase, zone: ZoneInfo) -> list[Bundle]:
    facts = {"status": _(str(case.verdict.status)), **sale_facts(case, zone)}
    tables = [table(title, headings, rows) for title, headings, rows in sale_tables(case, zone)]
    return [figures(Message("Sale {}", case.sale_id), facts), *tables]


@told_plainly
def partner_scores(
    *, as_of: str = "", sync: bool = True, audit_folder: str = "", engine: str = "duckdb"
) -> Shown[pd.DataFrame]:
    """Judge all sales, or open an earlier audit, and show the findings that each partner has to act on."""
    with application() as opened:
        zone = opened.settings.timezone
        result = as_audited(_judged(opened, as_of, audit_folder, engine, sync=sync))
        board = result.partners
        remarks = [remark("Note", text) for text in notices(result, current_language(), zone)]
    findings, overdue = int(board["findings"].sum()), int(board["overdue"].sum())
    facts = {"partners": len(board), "findings": findings, "overdue": overdue}
    parts = [figures("Partners", facts, f"{_('As of')} {readable(result.as_of, zone)}.")]
    if len(board):
        known = board.assign(partner=board["partner"].replace("", _("no partner")))
        columns = [COLUMN_NAMES.get(name, name) for name in known.columns]
        parts.append(table("All partners, those with the most overdue findings first", columns, _rows(known)))
    counts = {"job": "partner_scores", "partners": len(board), "overdue": overdue, "needsAttention": overdue > 0}
    return Shown(board, [*parts, *remarks], counts)
