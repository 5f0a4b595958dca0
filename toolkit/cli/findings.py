"""``toolkit findings`` and ``toolkit changes``: findings with their lives, and the difference of two moments."""

from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import click
import pandas as pd

from toolkit.audit.changes import BETWEEN, FindingChanges, audits_until, changes_between
from toolkit.cli.audit import AuditOptions, audit_options, run_audit_from_options
from toolkit.cli.context import DONE, NEEDS_ATTENTION, Context, NonEmptyPath, pass_context
from toolkit.cli.printing import json_option, note, print_json, show, show_table
from toolkit.contract.findings import FindingStatus
from toolkit.kit.auditing import as_audited, audit, record_report
from toolkit.kit.spoken import _, counted, current_language, readable
from toolkit.reports import write_report
from toolkit.reports.json_document import changes_as_json, finding_records
from toolkit.reports.notices import notices
from toolkit.reports.report import iso_exact, tuples

_SHOWN = 50
_OF_CHANGES = ("html", "xlsx")
_ACTIVE = (FindingStatus.OPEN, FindingStatus.REOPENED)


@click.command()
@audit_options
@click.option("--status", type=click.Choice(list(map(str, FindingStatus))), help="Only findings of this status.")
@click.option("--code", help="Only findings of this code.")
@click.option("--partner", help="Only findings of this partner's sales.")
@json_option
@pass_context
def findings(
    ctx: Context,
    asked: AuditOptions,
    status: str | None,
    code: str | None,
    partner: str | None,
    as_json: bool,
) -> int:
    """Judge every sale, and list every finding with its status, dates, deadline and owner.

    \b
    A finding keeps its id while it lives: the same gap of the same sale, the same oddity of
    the same file. It is open, waived, resolved or reopened (it was resolved, and is back).
    Its deadline is counted in business days of Brazil from the day on which it was last
    opened; firstSeen is the first audit of now that saw it.

    \b
    Examples:
      toolkit findings
      toolkit findings --status open --partner "Norte Energia"
      toolkit findings --as-of 2026-11-20 --json > findings.json

    See also: toolkit explain CODE

    Exit status 3: some finding is open or reopened.
    """
    result = as_audited(run_audit_from_options(ctx, asked), partner, whole=True)
    found = result.findings
    for column, wanted in {"status": status, "code": code and code.upper()}.items():
        found = found if wanted is None else found[found[column] == wanted]
    if as_json:
        records = finding_records(found, ctx.settings.timezone)
        counts = result.finding_counts
        print_json({"asOf": iso_exact(result.as_of, ctx.settings.timezone), "counts": counts, "findings": records})
    else:
        for text in notices(result, current_language(), ctx.settings.timezone):
            note("note: {}", text)
        _show(found, result.as_of, ctx, with_resolved=status == FindingStatus.RESOLVED)
    return NEEDS_ATTENTION if found["status"].isin(_ACTIVE).any() else DONE


def _show(found: pd.DataFrame, as_of: datetime, ctx: Context, *, with_resolved: bool) -> None:
    show("{} {}", _("As of"), readable(as_of, ctx.settings.timezone))
    listed = found if with_resolved else found[found["status"] != FindingStatus.RESOLVED]
    rows = []
    for row in tuples(listed.head(_SHOWN)):
        days = int(row.dueInBusinessDays)
        due = f"{_('late by') if row.overdue else _('due in')} {counted(abs(days), 'business day')}"
        if row.status == FindingStatus.RESOLVED:
            due = f"{_('last seen')} {readable(row.lastSeen, ctx.settings.timezone)}"
        sale = row.saleId or _("no sale")
        rows.append([str(row.id), _(row.severity), _(row.status), row.code, sale, due, row.owner])
    if rows:
        show_table(("id", "severity", "status", "code", "sale", "deadline", "owner"), rows)
    if len(listed) > _SHOWN:
        note("... and {:,} more; --json lists all of them", len(listed) - _SHOWN)
    counts = found["status"].value_counts().items()
    told = ", ".join(f"{current_language().number(count)} {_(str(status))}" for status, count in counts)
    show("{}; {:,} overdue", told or _("no findings"), int(found["overdue"].sum()))


@click.command()
@click.option("--from", "start", metavar="TIME", required=True, help="The earlier moment, as for --as-of.")
@click.option("--to", "end", metavar="TIME", help="The later moment; now by default.")
@click.option(
    "--out", type=NonEmptyPath(), help="Also write the report of the later moment, with every change, into DIR."
)
@json_option
@pass_context
def changes(ctx: Context, start: str, end: str | None, out: Path | None, as_json: bool) -> None:
    """Say which findings are new, resolved, reopened or still open between two moments.

    \b
    The findings of the first moment, without the resolved and with the new and reopened
    ones, are those of the second. What the audits of now saw is compared, without looking
    at anything again: a moment between two audits is answered by the earlier one.

    \b
    Examples:
      toolkit changes --from 2026-11-01 --to 2026-11-30
      toolkit changes --from 2026-11-20 --json
      toolkit changes --from 2026-10-31 --to 2026-11-30 --out november
    """
    first, last = ctx.past_moment(start, "--from"), ctx.past_moment(end, "--to") if end else ctx.now()
    zone = ctx.settings.timezone
    found = changes_between(ctx.application.database, first, last, zone)
    with ctx.application.database.transaction() as connection:
        if not audits_until(connection, first):
            note("note: no audit had been made by {}, so that every finding counts as new", readable(first, zone))
    if as_json:
        print_json(changes_as_json(found, zone))
    else:
        _show_changes(found, ctx)
    if out is not None:
        result = as_audited(audit(ctx.application, as_of=last)).since(found)
        witness = partial(record_report, ctx.application)
        written = write_report(
            result, out, _OF_CHANGES, timezone=zone, language=current_language(), witness=witness
        )
        for path in written if not as_json else ():
            show(str(path))


def _show_changes(found: FindingChanges, ctx: Context) -> None:
    zone, by_day = ctx.settings.timezone, found.by_day
    show("From {} to {}", readable(found.start, zone), readable(found.end, zone))
    between = int((found.findings["change"] == BETWEEN).sum())
    for kind, number in {**found.counts, "came and went": between}.items():
        show("{:<13} {}", _("still open" if kind == "open" else kind), current_language().number(number))
    for row in by_day[by_day["day"] > found.end.astimezone(zone).date() - timedelta(days=14)].pipe(tuples):
        show("  {}  {:>17}  +{:,}  -{:,}", row.day, counted(int(row.present), "finding"), row.came, row.went)
    if len(found.without_sale):
        gone = current_language().number(len(found.without_sale))
        note("note: {} of the resolved findings ended because their sale is gone: toolkit explain SALE_GONE", gone)
    rows = []
    for kind in ("new", "reopened", "resolved"):
        changed = found.findings[found.findings["change"] == kind]
        since = "closed_at" if kind == "resolved" else "opened_at"
        for row in tuples(changed.sort_values([since, "sale_id", "code"]).head(_SHOWN)):
            sale, partner = row.sale_id or _("no sale"), row.partner or _("no partner")
            rows.append([_(kind), sale, row.code, partner, readable(getattr(row, since), zone)])
        if len(changed) > _SHOWN:
            note("... and {:,} more that are {}; --json lists all ids", len(changed) - _SHOWN, _(kind))
    if rows:
        show_table(("change", "sale", "code", "partner", "since"), rows)
