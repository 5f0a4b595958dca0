"""``toolkit evidence list``, ``withdraw`` and ``link``: list the records of a sale, withdraw or open one."""

from datetime import datetime
from typing import Any
from uuid import UUID

import click

from toolkit.domain.codes import CODES
from toolkit.domain.documents import named
from toolkit.entrypoints.account import signed_in_account
from toolkit.entrypoints.cli.context import Context, pass_context
from toolkit.entrypoints.cli.printing import aligned, json_option, note, print_json, show
from toolkit.entrypoints.cli.unmasking import show_names_options, unmasking_for
from toolkit.entrypoints.spoken import _, readable
from toolkit.operations.judge.audit.records import EvidenceRecord
from toolkit.operations.judge.evidence_records import records_of
from toolkit.operations.judge.opening import LONGEST_SECONDS, open_evidence
from toolkit.operations.judge.withdrawal import withdraw as withdraw_record
from toolkit.reports.times import iso_exact

_HEADINGS = ("id", "evidenceType", "state", "size", "looked at", "fault", "requested", "requested by")


@click.command("list", short_help="List the evidence records of a sale with their ids and files.")
@click.argument("sale_id")
@show_names_options
@json_option
@pass_context
def list_records(ctx: Context, sale_id: str, show_names: bool, reason: str, as_json: bool) -> None:
    """List the evidence records of the sale SALE_ID with their ids, by what was last seen of the bucket.

    \b
    A fault says why a file does not count (toolkit explain CODE). A withdrawn record is
    followed by the reason and both people.

    \b
    Example:
      toolkit evidence list V-2026-00064
      toolkit evidence withdraw EVIDENCE_ID --reason "sent twice" --by ana --approved-by bruno
    """
    unmasking = unmasking_for(show_names, reason, "--show-names")
    records = records_of(ctx.application.database, sale_id, ctx.application.clock, unmasking=unmasking)
    zone = ctx.settings.timezone
    if as_json:
        print_json({"saleId": sale_id, "records": [record_as_json(each, ctx) for each in records]})
        return
    if not records:
        note(f"{sale_id} has no evidence records yet")
        return
    cells = [_cells(record, readable(record.requested_at, zone)) for record in records]
    heading, *lines = aligned([[*map(_, _HEADINGS)], *cells])
    show(heading)
    for record, line in zip(records, lines, strict=True):
        show(line)
        if record.file_name:
            show(f"  file name: {record.file_name}")
        if record.file and record.file.fault:
            show(f"  {record.file.fault}: {_(CODES[record.file.fault].meaning)}")
        if record.withdrawal:
            taken = record.withdrawal
            show(
                f"  withdrawn {readable(taken.withdrawn_at, zone)} by {taken.withdrawn_by}, approved by "
                f"{taken.approved_by}: {taken.reason}"
            )


def _cells(record: EvidenceRecord, requested: str) -> tuple[str, ...]:
    file = record.file
    return (
        str(record.id),
        record.evidence_type,
        record.told_state,
        f"{file.size:,}" if file else "-",
        str(file.coverage) if file else "-",
        (file.fault if file else None) or "-",
        requested,
        _requester(record),
    )


def _requester(record: EvidenceRecord) -> str:
    by = record.requested_by or "unknown"
    if record.account is None:
        return f"{by} (not known for which partner)"
    signed_in = "" if record.account == record.requested_by else f", signed in as {record.account}"
    return f"{by} ({f'for {record.partner}' if record.partner else 'an operator'}{signed_in})"


def record_as_json(record: EvidenceRecord, ctx: Context) -> dict[str, Any]:
    """Return a record with its file and its withdrawal, and with the name of the file where it was asked for."""
    zone = ctx.settings.timezone

    def moment(value: datetime | None) -> str | None:
        return iso_exact(value, zone) if value else None

    file, taken = record.file, record.withdrawal
    return {
        **named(record, "id", "evidence_type"),
        "state": record.told_state,
        **named(record, "requested_by", "account", "partner"),
        "requestedAt": moment(record.requested_at),
        "expiresAt": moment(record.expires_at),
        **(named(record, "file_name") if record.file_name is not None else {}),
        "file": file
        and named(file, "size", "seen_at", "coverage", "media_type", "sha256", "seconds", "pages", "fault")
        | {"seenAt": moment(file.seen_at)},
        "withdrawnAt": moment(taken.withdrawn_at if taken else None),
        "withdrawal": taken
        and named(taken, "reason", "withdrawn_by", "approved_by") | {"withdrawnAt": moment(taken.withdrawn_at)},
    }


@click.command(short_help="Take an evidence record out of the count, once and for all.")
@click.argument("evidence_id", type=click.UUID)
@click.option("--reason", required=True, help="The reason why the record must not count.")
@click.option("--by", "withdrawn_by", required=True, help="The person who asks for the withdrawal.")
@click.option("--approved-by", required=True, help="The approver; not the same person.")
@json_option
@pass_context
def withdraw(
    ctx: Context, evidence_id: UUID, reason: str, withdrawn_by: str, approved_by: str, as_json: bool
) -> None:
    """Take the evidence record EVIDENCE_ID out of the count, once and for all.

    \b
    That is how a conflict is mended. The file stays in the bucket.

    \b
    Example:
      toolkit evidence withdraw 0199c0de-0000-7000-8000-000000000001 \\
        --reason "KYC of another client" --by ana@example.com --approved-by rui@example.com
    """
    done = withdraw_record(
        ctx.application.database,
        evidence_id,
        reason=reason,
        withdrawn_by=withdrawn_by,
        approved_by=approved_by,
        account=signed_in_account(),
        clock=ctx.application.clock,
    )
    if as_json:
        print_json({"id": done.evidence_id, "saleId": done.sale_id, "withdrawnAt": done.withdrawn_at})
    else:
        show(f"{done.evidence_id}: withdrawn from sale {done.sale_id}")


@click.command(short_help="Make a link that opens one file for some minutes.")
@click.argument("evidence_id", type=click.UUID)
@click.option("--reason", required=True, help="The reason for opening the file.")
@click.option("--by", "opened_by", help="The person who opens the file; your account by default.")
@click.option(
    "--seconds", type=click.IntRange(1, LONGEST_SECONDS), default=300, show_default=True, help="Life of the link."
)
@json_option
@pass_context
def link(ctx: Context, evidence_id: UUID, reason: str, opened_by: str | None, seconds: int, as_json: bool) -> None:
    """Make a link that opens the file of the record EVIDENCE_ID for some minutes.

    \b
    Whoever has the link can read the file until it ends. Who made it and why is kept, and
    the custody log tells of it.

    \b
    Example:
      toolkit evidence link 0199c0de-0000-7000-8000-000000000001 --reason "complaint 4711"
    """
    space = ctx.application
    made = open_evidence(
        space.database,
        space.bucket,
        evidence_id,
        reason=reason,
        opened_by=opened_by or signed_in_account(),
        account=signed_in_account(),
        seconds=seconds,
        clock=space.clock,
    )
    if as_json:
        print_json({"id": evidence_id, "saleId": made.sale_id, "url": made.url, "expiresAt": made.expires_at})
    else:
        note(f"{evidence_id} of sale {made.sale_id}, until {readable(made.expires_at, ctx.settings.timezone)}:")
        show(made.url)
