"""One sale, and its evidence records, as commands and notebooks show them: facts, and tables."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final
from zoneinfo import ZoneInfo

from toolkit.audit.sale_case import SaleCase
from toolkit.contract.codes import CODES
from toolkit.contract.findings import FindingStatus
from toolkit.evidence.records import EvidenceRecord
from toolkit.kit.spoken import _, counted, current_language, readable
from toolkit.reports.report import tuples
from toolkit.reports.wording import EVENT_NAMES

Rows = list[tuple[str, ...]]

PAYERS: Final = {True: "the contracting party pays", False: "somebody else pays", None: "unknown who pays"}

_HEADINGS = (
    ("What to do", "code", "meaning", "remedy"),
    ("Rule", "evidence", "accepted"),
    ("Evidence records", "type", "state", "file", "requested", "by", "id"),
    ("Findings", "code", "status", "severity", "first seen", "due"),
    ("Waivers", "reason", "owner", "approved by", "ends on"),
    ("Time line", "when", "event", "evidence"),
    ("Links to files", "when", "by", "reason", "until"),
)
"""The title of each table, and the headings of its columns."""

RECORD_HEADINGS: Final = _HEADINGS[2][1:]


def sale_facts(case: SaleCase, zone: ZoneInfo) -> dict[str, str]:
    """Return what is known of the sale itself, each under its label."""
    return {
        _("utility group"): case.utility_group,
        _("payer"): _(PAYERS[case.is_client_financial_responsible]),
        _("partner"): case.partner or _("none"),
        _("client"): case.client_id or _("none"),
        _("created"): readable(case.created_at, zone),
        _("completed"): readable(case.completed_at, zone) if case.completed_at else _("no"),
        _("Bucket read"): readable(case.last_sync.finished_at, zone) if case.last_sync else _("never"),
    }


def sale_tables(case: SaleCase, zone: ZoneInfo) -> Iterator[tuple[str, Sequence[str], Rows]]:
    """Yield each table: its title, its headings and its rows."""
    types = {each.id: each.evidence_type for each in case.records}
    every: list[Rows] = [
        [(each.code, _(CODES[each.code].meaning), _(each.remedy)) for each in case.next_steps],
        [(each.named, ", ".join(each.accepts)) for each in case.rule],
        record_rows(case.records, zone),
        [
            (row.code, _(row.status), _(row.severity), readable(row.firstSeen, zone), _due(row, zone))
            for row in tuples(case.findings)
        ],
        [
            (each.reason, each.owner, each.approved_by, current_language().day(each.end))
            for each in (waiver.request for waiver in case.waivers)
        ],
        [
            (readable(event.happened_at, zone), _(EVENT_NAMES[event.kind]), types[record])
            for event, record in case.timeline
        ],
        [
            (readable(each.opened_at, zone), each.opened_by, each.reason, readable(each.expires_at, zone))
            for each in case.openings
        ],
    ]
    for (title, *headings), rows in zip(_HEADINGS, every, strict=True):
        yield title, headings, rows


def _due(row: Any, zone: ZoneInfo) -> str:
    if row.status == FindingStatus.RESOLVED:
        return ""
    late = f", {_('late by')} {counted(-row.dueInBusinessDays, 'business day')}" if row.overdue else ""
    return readable(row.dueAt, zone) + late


def record_rows(records: Iterable[EvidenceRecord], zone: ZoneInfo) -> Rows:
    """Return a row for each evidence record, under ``RECORD_HEADINGS``."""
    return [
        (
            each.evidence_type,
            each.told_state,
            "; ".join(_file_facts(each)),
            readable(each.requested_at, zone),
            _requester(each),
            str(each.id),
        )
        for each in records
    ]


def _requester(record: EvidenceRecord) -> str:
    by = record.requested_by or _("not noted")
    if record.account is None:
        return f"{by} (not known for which partner)"
    signed_in = "" if record.account == record.requested_by else f", signed in as {record.account}"
    return f"{by} ({f'for {record.partner}' if record.partner else 'an operator'}{signed_in})"


def _file_facts(record: EvidenceRecord) -> list[str]:
    """Return what is known of a record's file and its withdrawal, in short sentences."""
    file, taken, facts = record.file, record.withdrawal, []
    if file:
        length = [f"{current_language().number(round(file.seconds, 1))} s"] if file.seconds else []
        length += [counted(file.pages, "page")] if file.pages else []
        facts += [", ".join([counted(file.size, "byte"), *length]), f"{_('looked at')}: {file.coverage}"]
        facts += [f"{_('by')} {', '.join(file.readers)} ({file.depth})"] if file.readers else []
        facts += [f"SHA-256 {file.sha256}"] if file.sha256 else []
        facts += [f"{file.fault}: {_(CODES[file.fault].meaning)}"] if file.fault else []
    if taken:
        facts.append(f"{_('by')} {taken.withdrawn_by}, {_('approved by')} {taken.approved_by}: {taken.reason}")
    return facts
