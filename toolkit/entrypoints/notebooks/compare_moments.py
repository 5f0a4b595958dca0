"""Notebook 06: the findings of two moments compared, such as the ends of two months."""

from datetime import datetime, timedelta

import pandas as pd

from toolkit.domain.documents import named
from toolkit.entrypoints.application_context import ApplicationContext
from toolkit.entrypoints.auditing import audit
from toolkit.entrypoints.notebooks.display import Bars, Colour, Fact, Facts, Grid, Part, Shown
from toolkit.entrypoints.notebooks.notebook_errors import application, told_plainly
from toolkit.entrypoints.spoken import readable
from toolkit.entrypoints.timestamps import parse_timestamp
from toolkit.operations.judge.audit import AuditResult
from toolkit.operations.judge.findings.changes import Changes, changes_between
from toolkit.operations.judge.findings.history import audits_until


@told_plainly
def compare_moments(*, earlier: str = "", later: str = "") -> Shown[Changes]:
    """Compare the audits of two past moments; empty ones are a month ago or the first audit, and now."""
    with application() as opened:
        now, zone = opened.clock(), opened.settings.timezone
        last = parse_timestamp(later, timezone=zone, now=now) if later.strip() else now
        first = parse_timestamp(earlier, timezone=zone, now=now) if earlier.strip() else _month_ago(opened, last)
        changes = changes_between(opened.database, first, last)
        before, after = (audit(opened, as_of=moment) for moment in (first, last))
        findings = after.life.findings
    counts = {
        "job": "compare_moments",
        **changes.counts,
        "needsAttention": bool(changes.new or changes.reopened),
    }
    names = [readable(moment, zone) for moment in (first, last)]
    return Shown(changes, _parts(changes, before, after, findings, names), counts)


def _month_ago(opened: ApplicationContext, moment: datetime) -> datetime:
    """Return the moment a month before, or that of the first audit where it came later."""
    month_ago = moment - timedelta(days=30)
    with opened.database.transaction() as connection:
        first = min(audits_until(connection, moment), default=month_ago)
    return max(first, month_ago)


def _parts(
    changes: Changes, before: AuditResult, after: AuditResult, findings: pd.DataFrame, names: list[str]
) -> list[Part]:
    facts = [
        Fact("new", len(changes.new), Colour.BAD if changes.new else Colour.QUIET),
        Fact("back again", len(changes.reopened), Colour.BAD if changes.reopened else Colour.QUIET),
        Fact("resolved", len(changes.resolved), Colour.GOOD if changes.resolved else Colour.QUIET),
        Fact("still open", changes.still_open),
    ]
    sales = {
        name: named(result, "compliant", "incomplete", "conflict")
        for name, result in zip(names, (before, after), strict=True)
    }
    parts: list[Part] = [
        Facts(f"Findings from {names[0]} to {names[1]}", facts),
        Bars("Sales", sales),
    ]
    for heading, kind in (("New", "new"), ("Back again", "reopened"), ("Resolved", "resolved")):
        ids = set(getattr(changes, kind).to_pylist())
        if ids:
            parts.append(_findings(heading, findings, ids))
    return parts


def _findings(heading: str, findings: pd.DataFrame, ids: set[str]) -> Grid:
    columns = ["saleId", "code", "reason", "severity", "partner", "owner"]
    rows = findings.loc[findings["id"].isin(ids), columns].astype(object)
    return Grid(heading, columns, rows.where(rows.notna(), "").to_numpy().tolist())
