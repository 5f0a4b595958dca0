"""Show one sale, and its evidence records, to people and as JSON; personal data are masked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Row

from toolkit.contract.codes import CODES
from toolkit.contract.fields import pick_camel
from toolkit.contract.findings import Status
from toolkit.contract.people import mask_cpf
from toolkit.kit.audits import due_of
from toolkit.kit.shown import Shown, figures, table, worded
from toolkit.kit.spoken import _, counted, current_zone
from toolkit.message import Message
from toolkit.reports.json_document import finding_records, waiver_as_json
from toolkit.reports.report import tuples
from toolkit.reports.wording import EVENT_NAMES

if TYPE_CHECKING:
    from toolkit.audit.sale_case import SaleCase
    from toolkit.evidence.records import EvidenceRecord

Rows = list[tuple[object, ...]]

PAYERS: Final = {True: "the contracting party pays", False: "somebody else pays", None: "unknown who pays"}

_HEADINGS = (
    ("What to do", "code", "meaning", "remedy"),
    ("Rule", "evidence", "accepted"),
    ("Evidence records", "type", "state", "file", "requested", "by", "id"),
    ("Findings", "code", "status", "severity", "first seen", "due", "business days left"),
    ("Waivers", "reason", "owner", "approved by", "ends on"),
    ("Time line", "when", "event", "evidence"),
    ("Reviews by people", "evidence", "when", "by", "outcome", "counts until"),
)
"""The title of each table, and the headings of its columns."""


def shown_sale(case: SaleCase, today: date, cpf: str | None = None, *, unmasked: bool = False) -> Shown[SaleCase]:
    """Show everything about a sale: facts, and tables; ``cpf`` is that of its client.

    ``unmasked`` shows the whole CPF and the names of files.
    """
    parts = [figures(Message("Sale {}", case.sale_id), facts_of(case, cpf, unmasked=unmasked))]
    parts += [table(*each) for each in tables_of(case, unmasked=unmasked)]
    return Shown(case, parts, sale_document(case, today), case.verdict.status is not Status.COMPLIANT)


def facts_of(case: SaleCase, cpf: str | None, *, unmasked: bool) -> dict[str, object]:
    """Return what a sale is, by the names of its facts."""
    facts = {
        "status": _(case.verdict.status),
        "utility group": case.sale.utility_group,
        "payer": _(PAYERS[case.sale.is_client_financial_responsible]),
        "partner": case.sale.partner or _("none"),
        "client": str(case.sale.client_id or _("none")),
        "created": case.sale.created_at,
        "completed": case.sale.completed_at or _("no"),
        "Bucket read": case.last_sync.finished_at if case.last_sync else _("never"),
    }
    if cpf is not None:
        facts["client"] = f"{facts['client']} ({cpf if unmasked else mask_cpf(cpf)})"
    return facts


def tables_of(case: SaleCase, *, unmasked: bool) -> list[tuple[str, list[str], Rows]]:
    """Return the tables about a sale: title, headings and rows of each."""
    types, zone = {each.id: each.evidence_type for each in case.records}, current_zone()
    every: list[Rows] = [
        [(code, _(CODES[code].meaning), _(remedy)) for code, remedy in case.next_steps.items()],
        [(each.named, ", ".join(each.accepts)) for each in case.rule],
        _record_rows(case.records, unmasked=unmasked),
        [
            (row.code, _(row.status), _(row.severity), row.firstSeen, *due_of(row, zone))
            for row in tuples(case.findings)
        ],
        [(each.reason, each.owner, each.approved_by, each.end) for each in case.waivers],
        [(event.happened_at, _(EVENT_NAMES[event.kind]), types[record]) for event, record in case.timeline],
        [
            (each.evidence_type, each.answered_at, each.reviewer, _outcome(each), each.ends_on)
            for each in case.looks
        ],
    ]
    return [(title, headings, rows) for (title, *headings), rows in zip(_HEADINGS, every, strict=True)]


def _outcome(look: Row[Any]) -> str:
    outcome = f"{_('failed')}: {', '.join(look.failures)}" if look.failures else _("passed")
    return outcome if look.current else f"{outcome} ({_('an earlier version')})"


def sale_document(case: SaleCase, today: date) -> dict[str, Any]:
    """Return what ``sale show --json`` prints; no name of a file is in it."""
    return {
        "saleId": case.sale_id,
        **pick_camel(case.sale, "utility_group", "is_client_financial_responsible", "partner", "client_id"),
        **pick_camel(case.sale, "created_at", "completed_at"),
        "lastSync": case.last_sync and case.last_sync.finished_at,
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
        "nextSteps": [{"code": code, "nextStep": remedy} for code, remedy in case.next_steps.items()],
        "records": [*map(_record_document, case.records)],
        "findings": finding_records(case.findings, current_zone()),
        "waivers": [waiver_as_json(each, today) for each in case.waivers],
        "timeline": [event.as_json() | {"evidenceId": evidence_id} for event, evidence_id in case.timeline],
        "reviews": [
            pick_camel(each, "evidence_id", "evidence_type", "turn", "reviewer", "failures", "current", "ends_on")
            | pick_camel(each, "answered_at")
            for each in case.looks
        ],
    }


def shown_records(sale_id: str, found: Sequence[EvidenceRecord]) -> Shown[Sequence[EvidenceRecord]]:
    """Show the evidence records of a sale with their ids and files."""
    title, *headings = _HEADINGS[2]
    document = {"saleId": sale_id, "records": [*map(_record_document, found)]}
    return Shown(found, [table(title, headings, _record_rows(found))], document)


def _record_document(record: EvidenceRecord) -> dict[str, Any]:
    file, taken = record.file, record.withdrawal
    return {
        **pick_camel(record, "id", "evidence_type"),
        "state": record.shown_state,
        **pick_camel(record, "requested_by", "account", "partner", "requested_at", "expires_at"),
        "file": file
        and pick_camel(file, "size", "seen_at", "coverage", "media_type", "sha256", "seconds", "pages", "fault")
        | pick_camel(file, "depth", "readers"),
        "withdrawnAt": taken and taken.withdrawn_at,
        "withdrawal": taken and pick_camel(taken, "reason", "withdrawn_by", "approved_by", "withdrawn_at"),
    }


def _record_rows(found: Iterable[EvidenceRecord], *, unmasked: bool = False) -> Rows:
    return [
        (
            each.evidence_type,
            each.shown_state,
            "; ".join([*([each.object_key] if unmasked else []), *_file_facts(each)]),
            each.requested_at,
            _requester(each),
            each.id,
        )
        for each in found
    ]


def _requester(record: EvidenceRecord) -> str:
    by = record.requested_by or _("not noted")
    if record.account is None:
        return f"{by} ({_('not known for which partner')})"
    roles = [_(Message("for {}", record.partner)) if record.partner else _("an operator")]
    if record.account != record.requested_by:  # the service's table tells another one than was signed in
        roles.append(_(Message("signed in as {}", record.account)))
    return f"{by} ({', '.join(roles)})"


def _file_facts(record: EvidenceRecord) -> list[str]:
    """Return what is known of a record's file and its withdrawal, in short sentences."""
    file, taken, facts = record.file, record.withdrawal, []
    if file:
        length = [f"{worded(file.seconds)} s"] if file.seconds else []
        length += [counted(file.pages, "page")] if file.pages else []
        facts += [
            ", ".join([counted(file.size, "byte"), *length]),
            _(Message("looked at: {}", Message(file.coverage.text))),
        ]
        facts += [f"{_('by')} {', '.join(file.readers)} ({file.depth})"] if file.readers else []
        facts += [f"SHA-256 {file.sha256}"] if file.sha256 else []
        facts += [f"{file.fault}: {_(CODES[file.fault].meaning)}"] if file.fault else []
    if taken:
        facts.append(f"{_('by')} {taken.withdrawn_by}, {_('approved by')} {taken.approved_by}: {taken.reason}")
    return facts
