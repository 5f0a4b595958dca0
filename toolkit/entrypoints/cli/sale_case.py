"""``toolkit sale show``: everything about one sale."""

import shlex
from typing import Any, Final

import click

from toolkit.domain.codes import CODES
from toolkit.domain.documents import named
from toolkit.domain.finding_life import FindingStatus
from toolkit.entrypoints.cli.context import Context, pass_context
from toolkit.entrypoints.cli.evidence_records import record_as_json
from toolkit.entrypoints.cli.printing import json_option, print_json, show
from toolkit.entrypoints.cli.unmasking import show_names_options, unmasking_for
from toolkit.entrypoints.record_facts import file_facts
from toolkit.entrypoints.spoken import _, counted, readable
from toolkit.operations.judge.sale_case import SaleCase, sale_case
from toolkit.reports.document_life import finding_records, waiver_as_json
from toolkit.reports.report import tuples
from toolkit.reports.times import iso_exact
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
    custody log; who wrote and deleted each file, from where, from the journal of the bucket,
    where one was taken over (toolkit bucket sync --journal).

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


_PAYERS: Final = {True: "the contracting party pays", False: "somebody else pays", None: "unknown who pays"}


def _show(case: SaleCase, ctx: Context) -> None:
    zone = ctx.settings.timezone
    whose = _(_PAYERS[case.is_client_financial_responsible])
    show(f"{case.sale_id}: {_(case.verdict.status)}")
    if case.gone:
        show("  The service holds this sale no more; what follows is what was last seen of it.")
        noted = readable(case.gone_at, zone) if case.gone_at else _("not yet; toolkit audit looks")
        show(f"  {_('Seen to be gone')}: {noted}")
    show(f"  group {case.utility_group}, {whose}, partner {case.partner or '-'}, client {case.client_id or '-'}")
    completed = f"completed {readable(case.completed_at, zone)}" if case.completed_at else _("not completed")
    show(f"  created {readable(case.created_at, zone)}, {completed}")
    read_at = readable(case.last_sync.finished_at, zone) if case.last_sync else _("never")
    show(f"  {_('Bucket read')}: {read_at}")
    show("Rule")
    for requirement in case.rule:
        show("  " + f" {_('or')} ".join(requirement.accepts))
    show("  or exactly one KYC and nothing else" if case.rule else "  none: the utility group is unknown")
    show("Evidence")
    for record in case.records:
        facts = [record.told_state, *file_facts(record)]
        show(f"  {record.id}  {record.evidence_type}: {'; '.join(facts)}")
    show("Next steps")
    for step in case.next_steps:
        show(f"  {step.code}{f', {step.reason}' if step.reason else ''}: {_(step.remedy)}")
    if any(step.in_records for step in case.next_steps):
        show(f"  The records by their ids: toolkit evidence list {shlex.quote(case.sale_id)}")
    if not case.next_steps:
        show(f"  {_('none')}")
    show("Findings")
    for finding in tuples(case.findings):
        due = "" if finding.status == FindingStatus.RESOLVED else f", {_('due')} {readable(finding.dueAt, zone)}"
        due += f", {_('late by')} {counted(-finding.dueInBusinessDays, 'business day')}" if finding.overdue else ""
        show(f"  {finding.code}: {_(finding.status)}, first seen {readable(finding.firstSeen, zone)}{due}")
    for waiver in case.waivers:
        request = waiver.request
        show(
            f"  waived until {request.end} by {request.owner}, approved by {request.approved_by}: {request.reason}"
        )
    show("Time line")
    types = {record.id: record.evidence_type for record in case.records}
    opened = {str(each.id): f", {each.opened_by}, {each.reason}" for each in case.openings}
    for event, evidence_id in case.timeline:
        why = opened.get(str(event.detail.get("opening")), "")
        told = f"{types[evidence_id]}: {_(EVENT_NAMES[event.kind])}{why}"
        show(f"  {readable(event.happened_at, zone)}  {event.kind:<12}  {evidence_id}  {told}")
    if case.object_events:
        show("Written and deleted in the bucket, by the journal that was taken over")
    for each in case.object_events:
        who = f"{each.requester or '-'} from {each.source_address or '-'}"
        show(f"  {readable(each.happened_at, zone)}  {each.kind:<12}  {each.evidence_id}  by {who}")


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
        "objectEvents": [
            named(each, "evidence_id", "kind", "requester", "source_address")
            | {"happenedAt": iso_exact(each.happened_at, zone)}
            for each in case.object_events
        ],
    }
