"""``toolkit sale show``: everything about one sale."""

import shlex
from typing import Any

import click

from toolkit.audit.sale_case import SaleCase, sale_case
from toolkit.cli.context import Context, pass_context
from toolkit.cli.evidence import record_as_json
from toolkit.cli.printing import aligned, json_option, print_json, show
from toolkit.contract.codes import CODES
from toolkit.contract.fields import pick_camel
from toolkit.kit.auditing import last_audit
from toolkit.kit.sale_tables import sale_facts, sale_tables
from toolkit.kit.spoken import _
from toolkit.reports.json_document import finding_records, waiver_as_json
from toolkit.reports.report import iso_exact


@click.group()
def sale() -> None:
    """Look at one sale.

    \b
    Examples:
      toolkit sale show V-2026-00001
      toolkit sale show V-2026-00001 --json
    """


@sale.command("show", short_help="Show everything about one sale.")
@click.argument("sale_id")
@json_option
@pass_context
def show_sale(ctx: Context, sale_id: str, as_json: bool) -> None:
    """Show the sale SALE_ID: its rule, its records and files, what is missing, findings and the time line.

    \b
    Neither the service nor the bucket is looked at again, and findings are those of the last
    audit: toolkit audit makes the next. The time line comes from the custody log.

    \b
    Examples:
      toolkit sale show V-2026-00001
      toolkit sale show V-2026-00001 --json
    """
    space = ctx.application
    case = sale_case(space.database, sale_id, audit=last_audit(space), clock=space.clock)
    if as_json:
        print_json(_as_json(case, ctx))
    else:
        _show(case, ctx)


def _show(case: SaleCase, ctx: Context) -> None:
    zone = ctx.settings.timezone
    show("{}: {}", case.sale_id, _(case.verdict.status))
    for label, value in sale_facts(case, zone).items():
        show("  {}: {}", label, value)
    for title, headings, rows in sale_tables(case, zone):
        show("{}", _(title))
        for line in aligned([[*map(_, headings)], *rows]) if rows else [_("none")]:
            show("  {}", line)
    if any(step.in_records for step in case.next_steps):
        show("  The records by their ids: toolkit evidence list {}", shlex.quote(case.sale_id))


def _as_json(case: SaleCase, ctx: Context) -> dict[str, Any]:
    zone = ctx.settings.timezone
    return {
        **pick_camel(case, "sale_id", "utility_group", "is_client_financial_responsible", "partner", "client_id"),
        "createdAt": iso_exact(case.created_at, zone),
        "completedAt": iso_exact(case.completed_at, zone) if case.completed_at else None,
        "lastSync": iso_exact(case.last_sync.finished_at, zone) if case.last_sync else None,
        "status": case.verdict.status,
        "rule": [{"evidenceType": each.named, "accepts": list(each.accepts)} for each in case.rule],
        "missing": [
            pick_camel(piece, "evidence_type", "reason") | {"nextStep": CODES[piece.reason].remedy}
            for piece in case.verdict.missing
        ],
        "problems": [
            {"code": problem, "meaning": CODES[problem].meaning, "nextStep": CODES[problem].remedy}
            for problem in case.verdict.problems
        ],
        "nextSteps": [{"code": step.code, "nextStep": step.remedy} for step in case.next_steps],
        "records": [record_as_json(record, ctx) for record in case.records],
        "findings": finding_records(case.findings, zone),
        "waivers": [waiver_as_json(each, ctx.today(), zone) for each in case.waivers],
        "timeline": [event.as_json() | {"evidenceId": evidence_id} for event, evidence_id in case.timeline],
        "openings": [
            pick_camel(each, "evidence_id", "opened_by", "account", "reason")
            | {"openedAt": iso_exact(each.opened_at, zone), "expiresAt": iso_exact(each.expires_at, zone)}
            for each in case.openings
        ],
    }
