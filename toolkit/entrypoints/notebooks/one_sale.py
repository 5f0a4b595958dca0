"""Notebook 05: everything about one sale."""

from zoneinfo import ZoneInfo

from toolkit.domain.codes import CODES
from toolkit.domain.findings import Status
from toolkit.entrypoints.notebooks.display import STATUS_COLOURS, Fact, Facts, Grid, Part, Shown
from toolkit.entrypoints.notebooks.notebook_errors import application, told_plainly
from toolkit.entrypoints.record_facts import file_facts
from toolkit.entrypoints.spoken import _, readable, spoken
from toolkit.operations.judge.sale_case import SaleCase, sale_case
from toolkit.reports.report import tuples
from toolkit.reports.wording import EVENT_NAMES


@told_plainly
def one_sale(*, sale_id: str = "") -> Shown[SaleCase | None]:
    """Show what is known about a sale: rule, records with files, findings, waivers, time line, and what to do."""
    if not sale_id.strip():
        nothing = Facts("No sale was named", [], "Set sale_id to the id of a sale.")
        return Shown(None, [nothing], {"job": "one_sale", "saleId": "", "needsAttention": False})
    with application() as opened:
        zone = opened.settings.timezone
        case = sale_case(opened.database, sale_id.strip(), clock=opened.clock, deadlines=opened.deadlines)
    counts = {
        "job": "one_sale",
        "saleId": case.sale_id,
        "status": str(case.verdict.status),
        "needsAttention": case.verdict.status is not Status.COMPLIANT,
    }
    return Shown(case, _parts(case, zone), counts)


def _parts(case: SaleCase, zone: ZoneInfo) -> list[Part]:
    status = case.verdict.status
    facts = [
        Fact("status", _(str(status)), STATUS_COLOURS[status]),
        Fact("utility group", case.utility_group),
        Fact("partner", case.partner or _("none")),
        Fact("created", readable(case.created_at, zone)),
        Fact("Bucket read", readable(case.last_sync.finished_at, zone) if case.last_sync else _("never")),
        Fact("completed", readable(case.completed_at, zone) if case.completed_at else _("no")),
    ]
    if case.gone:
        noted = readable(case.gone_at, zone) if case.gone_at else _("not yet; toolkit audit looks")
        facts.append(Fact("Seen to be gone", noted))
    steps = [(step.code, _(CODES[step.code].meaning), _(step.remedy)) for step in case.next_steps]
    records = [
        (
            each.evidence_type,
            each.told_state,
            "; ".join(file_facts(each)),
            readable(each.requested_at, zone),
            each.requested_by or _("not noted"),
        )
        for each in case.records
    ]
    findings = [
        (row.code, _(row.status), _(row.severity), readable(row.firstSeen, zone), readable(row.dueAt, zone))
        for row in tuples(case.findings)
    ]
    requests = [each.request for each in case.waivers]
    waivers = [(each.reason, each.owner, each.approved_by, spoken().day(each.end)) for each in requests]
    types = {each.id: each.evidence_type for each in case.records}
    events = [
        (readable(event.happened_at, zone), _(EVENT_NAMES[event.kind]), types[record])
        for event, record in case.timeline
    ]
    links = [
        (readable(each.opened_at, zone), each.opened_by, each.reason, readable(each.expires_at, zone))
        for each in case.openings
    ]
    rule = [(each.named, ", ".join(each.accepts)) for each in case.rule]
    return [
        Facts(f"Sale {case.sale_id}", facts),
        Grid("What to do", ["code", "meaning", "remedy"], steps),
        Grid("Rule", ["evidence", "accepted"], rule),
        Grid("Evidence records", ["type", "state", "file", "requested", "by"], records),
        Grid("Findings", ["code", "status", "severity", "first seen", "due"], findings),
        Grid("Waivers", ["reason", "owner", "approved by", "ends on"], waivers),
        Grid("Time line", ["when", "event", "evidence"], events),
        Grid("Links to files", ["when", "by", "reason", "until"], links),
    ]
