"""``toolkit sale show``: everything about one sale."""

import shlex
from typing import Any, Final

import click

from toolkit.audit.sale_case import SaleCase, sale_case
from toolkit.cli.context import Context, pass_context, show_names_options, unmasking_for
from toolkit.cli.evidence import record_as_json
from toolkit.cli.printing import json_option, print_json, show
from toolkit.contract.codes import CODES
from toolkit.contract.fields import named
from toolkit.contract.findings import FindingStatus
from toolkit.kit.record_facts import file_facts
from toolkit.kit.spoken import _, counted, readable
from toolkit.message import Message
from toolkit.reports.json_document import finding_records, waiver_as_json
from toolkit.reports.report import iso_exact, tuples
from toolkit.reports.wording import EVENT_NAMES


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
@show_names_options
@json_option
@pass_context
def show_sale(ctx: Context, sale_id: str, show_names: bool, reason: str, as_json: bool) -> None:
    """Show the sale SALE_ID: its rule, its records and files, what is missing, findings and the time line.

    \b
    Neither the service nor the bucket is looked at again: toolkit audit does that. A sale that
    the service holds no more is shown as it was last seen there. The time line comes from the
    custody log.

    \b
    Examples:
      toolkit sale show V-2026-00001
      toolkit sale show V-2026-00001 --json
    """
    space = ctx.application
    unmasking = unmasking_for(show_names, reason, "--show-names")
    case = sale_case(space.database, sale_id, clock=space.clock, deadlines=space.deadlines, unmasking=unmasking)
    if as_json:
        print_json(_as_json(case, ctx))
    else:
        _show(case, ctx)


PAYERS: Final = {True: "the contracting party pays", False: "somebody else pays", None: "unknown who pays"}


def _show(case: SaleCase, ctx: Context) -> None:
    zone = ctx.settings.timezone
    whose = _(PAYERS[case.is_client_financial_responsible])
    show("{}: {}", case.sale_id, _(case.verdict.status))
    if case.gone:
        show("  The service holds this sale no more; what follows is what was last seen of it.")
        noted = readable(case.gone_at, zone) if case.gone_at else _("not yet; toolkit audit looks")
        show("  {}: {}", _("Seen to be gone"), noted)
    show(
        "  group {}, {}, partner {}, client {}",
        case.utility_group,
        whose,
        case.partner or "-",
        case.client_id or "-",
    )
    completed = Message("not completed")
    if case.completed_at:
        completed = Message("completed {}", readable(case.completed_at, zone))
    show("  created {}, {}", readable(case.created_at, zone), completed)
    read_at = readable(case.last_sync.finished_at, zone) if case.last_sync else _("never")
    show("  {}: {}", _("Bucket read"), read_at)
    show("Rule")
    for requirement in case.rule:
        show("  " + f" {_('or')} ".join(requirement.accepts))
    show("  or exactly one KYC and nothing else" if case.rule else "  none: the utility group is unknown")
    show("Evidence")
    for record in case.records:
        facts = [record.told_state, *file_facts(record)]
        show("  {}  {}: {}", record.id, record.evidence_type, "; ".join(facts))
    show("Next steps")
    for step in case.next_steps:
        show("  {}{}: {}", step.code, f", {step.reason}" if step.reason else "", _(step.remedy))
    if any(step.in_records for step in case.next_steps):
        show("  The records by their ids: toolkit evidence list {}", shlex.quote(case.sale_id))
    if not case.next_steps:
        show("  {}", _("none"))
    show("Findings")
    for finding in tuples(case.findings):
        due = "" if finding.status == FindingStatus.RESOLVED else f", {_('due')} {readable(finding.dueAt, zone)}"
        due += f", {_('late by')} {counted(-finding.dueInBusinessDays, 'business day')}" if finding.overdue else ""
        show("  {}: {}, first seen {}{}", finding.code, _(finding.status), readable(finding.firstSeen, zone), due)
    for waiver in case.waivers:
        request = waiver.request
        show(
            "  waived until {} by {}, approved by {}: {}",
            request.end,
            request.owner,
            request.approved_by,
            request.reason,
        )
    show("Time line")
    types = {record.id: record.evidence_type for record in case.records}
    opened = {str(each.id): f", {each.opened_by}, {each.reason}" for each in case.openings}
    for event, evidence_id in case.timeline:
        why = opened.get(str(event.detail.get("opening")), "")
        told = f"{types[evidence_id]}: {_(EVENT_NAMES[event.kind])}{why}"
        show("  {}  {:<12}  {}  {}", readable(event.happened_at, zone), event.kind, evidence_id, told)


def _as_json(case: SaleCase, ctx: Context) -> dict[str, Any]:
    zone = ctx.settings.timezone
    return {
        **named(case, "sale_id", "utility_group", "is_client_financial_responsible", "partner", "client_id"),
        "createdAt": iso_exact(case.created_at, zone),
        "completedAt": iso_exact(case.completed_at, zone) if case.completed_at else None,
        "lastSync": iso_exact(case.last_sync.finished_at, zone) if case.last_sync else None,
        "gone": case.gone,
        "goneAt": iso_exact(case.gone_at, zone) if case.gone_at else None,
        "status": case.verdict.status,
        "rule": [{"evidenceType": each.named, "accepts": list(each.accepts)} for each in case.rule],
        "missing": [
            named(piece, "evidence_type", "reason") | {"nextStep": CODES[piece.reason].remedy}
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
            named(each, "evidence_id", "opened_by", "account", "reason")
            | {"openedAt": iso_exact(each.opened_at, zone), "expiresAt": iso_exact(each.expires_at, zone)}
            for each in case.openings
        ],
    }
