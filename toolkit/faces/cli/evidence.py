"""``toolkit evidence``: upload files, verify them, list doubts, withdraw records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import click

from toolkit.domain.contents import CONTENT_PROBLEM_TEXTS, ContentProblem
from toolkit.domain.custody import CustodyFinding
from toolkit.faces.cli.context import DONE, NEEDS_ATTENTION, Context, Place, note, pass_context, print_json, show
from toolkit.operations.contents import verify_contents
from toolkit.operations.credentials import UploadLimits
from toolkit.operations.custody import custody_findings
from toolkit.operations.custody_log import export_log
from toolkit.operations.evidence_records import EvidenceRecord, records_of
from toolkit.operations.uploads import Failure, Renewal, upload_files
from toolkit.operations.uploads.sending import CONCURRENCY
from toolkit.operations.withdrawal import withdraw as withdraw_record
from toolkit.reports.times import readable

_SHOWN = 20


@click.group()
def evidence() -> None:
    """Upload evidence files, verify them, and take records out of the count.

    \b
    Examples:
      toolkit evidence upload credentials.jsonl --from files
      toolkit evidence list V-2026-00058
      toolkit evidence verify
    """


@evidence.command(short_help="Send files into the bucket, with the credentials for them.")
@click.argument("credentials", type=Place())
@click.option(
    "--from",
    "folder",
    type=Place(),
    required=True,
    help="Holds the files: saleId/fileName, or fileName where only one line has that name.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 64),
    default=CONCURRENCY,
    show_default=True,
    help="Files that are sent at the same time.",
)
@click.option("--renew", is_flag=True, help="Ask for new credentials where those of a line ran out.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@pass_context
def upload(ctx: Context, credentials: Path, folder: Path, concurrency: int, renew: bool, as_json: bool) -> int:
    """Send the files that CREDENTIALS (JSON Lines) is for into the bucket.

    \b
    Each file is checked first: it exists, its size is within the form's range, and by its
    bytes it is of the kind that its evidenceType demands. One that fails does not stop the
    others. What was sent is noted in CREDENTIALS.done, so the same command goes on after an
    interruption. Neither the database nor the bucket's own credentials are needed, except
    for --renew.

    \b
    Example:
      toolkit credentials request manifest.csv --out credentials.jsonl
      toolkit evidence upload credentials.jsonl --from files
      toolkit bucket sync

    Exit status 3: some files were not uploaded; each is named with the reason.
    """
    renewal = _renewal(ctx) if renew else None
    uploaded = upload_files(
        credentials,
        folder,
        concurrency=concurrency,
        renewal=renewal,
        progress=ctx.progress,
        announce=_announce,
    )
    if as_json:
        print_json(
            {
                "files": uploaded.files,
                "sent": uploaded.sent,
                "skipped": uploaded.skipped,
                "failed": len(uploaded.failures),
                "failures": [_failure_as_json(failure) for failure in uploaded.failures],
            }
        )
    else:
        show(
            f"{credentials.name}: {uploaded.files} files: {uploaded.sent} sent, "
            f"{uploaded.skipped} sent before, {len(uploaded.failures)} failed"
        )
        for failure in uploaded.failures[:_SHOWN]:
            note(f"{credentials.name}, line {failure.line}: {failure.problem}: {failure.message}")
        if len(uploaded.failures) > _SHOWN:
            note(f"... and {len(uploaded.failures) - _SHOWN} more; --json lists all of them")
    return NEEDS_ATTENTION if uploaded.failures else DONE


@evidence.command(short_help="Read every file that was not verified in its present version.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@pass_context
def verify(ctx: Context, as_json: bool) -> int:
    """Read every file in the bucket that was not verified in its present version.

    \b
    A document must be a whole PDF with pages that anybody can open; a recording must be
    whole, last a second and not be silent. What was found is kept with the file's SHA-256,
    so that no file is read twice. Nothing in a file is executed or rendered.

    \b
    Example:
      toolkit bucket sync
      toolkit evidence verify

    Exit status 3: some of the files are unusable, or could not be read.
    """
    space = ctx.workspace
    verified = verify_contents(space.database, space.bucket, clock=space.clock, progress=ctx.progress)
    if as_json:
        print_json(
            {
                "verified": verified.verified,
                "unusable": verified.unusable,
                "problems": {problem: verified.problems.get(problem, 0) for problem in ContentProblem},
                "wrongKind": verified.wrong_kind,
                "left": verified.left,
            }
        )
    else:
        show(f"{verified.verified} files verified: {verified.unusable} unusable, {verified.left} left")
        for problem, count in sorted(verified.problems.items()):
            note(f"{count} {problem}: {CONTENT_PROBLEM_TEXTS[problem]}")
        if verified.wrong_kind:
            note(f"{verified.wrong_kind} WRONG_KIND: The file is not of the kind that its evidenceType demands.")
    return NEEDS_ATTENTION if verified.unusable or verified.left else DONE


@evidence.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@pass_context
def findings(ctx: Context, as_json: bool) -> int:
    """List what is in doubt about the files in the bucket.

    \b
    The same file for more than one sale, or as two types of one sale; a file that was
    written after its credentials had run out, or replaced after it was verified; another
    type than declared; a file without a record, or where no upload form leads.

    \b
    Example:
      toolkit bucket sync --verify
      toolkit evidence findings --json > findings.json

    Exit status 3: something is in doubt. What sales lack is told by: toolkit audit
    """
    found = custody_findings(ctx.workspace.database)
    if as_json:
        print_json({"findings": [_finding_as_json(finding) for finding in found]})
    elif not found:
        show("nothing in doubt")
    for finding in () if as_json else found:
        about = ", ".join(finding.sale_ids or finding.keys)
        show(f"{finding.problem}: {about}: {finding.text}" + (f" ({finding.detail})" * bool(finding.detail)))
    return NEEDS_ATTENTION if found else DONE


@evidence.command()
@click.option("--out", type=Place(), required=True, help="The file to write.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@pass_context
def log(ctx: Context, out: Path, as_json: bool) -> int:
    """Seal the custody log, and write it to a file.

    \b
    The log tells of each record when its credentials were issued, when its file was seen,
    verified, replaced or gone, when it was withdrawn, and of each audit: ids, hashes and
    times only. Each seal covers the one before it. Keep the hash of the newest one where
    nobody who can write to the database can change it: then every later change shows.

    \b
    Examples:
      toolkit evidence log --out custody.jsonl
      toolkit verify custody.jsonl --seal HASH
    """
    seal = export_log(ctx.workspace.database, out, ctx.workspace.clock)
    if as_json:
        print_json({"file": out, "newestSeal": seal.as_json() if seal else None})
    elif seal is None:
        show(f"{out}: nothing has happened yet")
    else:
        show(f"{out}: seal {seal.number}, {seal.hash}")
    return DONE


@evidence.command("list", short_help="List the evidence records of a sale with their ids.")
@click.argument("sale_id")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@pass_context
def list_records(ctx: Context, sale_id: str, as_json: bool) -> int:
    """List the evidence records of the sale SALE_ID with their ids, by what was last seen of the bucket.

    \b
    Example:
      toolkit evidence list V-2026-00058
      toolkit evidence withdraw EVIDENCE_ID --reason "sent twice" --by ana --approved-by bruno
    """
    records = records_of(ctx.workspace.database, sale_id, ctx.workspace.clock)
    if as_json:
        print_json({"saleId": sale_id, "records": [_record_as_json(record) for record in records]})
        return DONE
    for record in records:
        state = "WITHDRAWN" if record.withdrawn_at else record.state or "TYPE_UNKNOWN"
        requested = readable(record.requested_at, ctx.settings.timezone)
        show(f"{record.id}  {record.evidence_type:<40}  {state:<12}  {requested}  {record.requested_by}")
    if not records:
        note(f"{sale_id} has no evidence records yet")
    return DONE


@evidence.command(short_help="Take an evidence record out of the count, once and for all.")
@click.argument("evidence_id", type=click.UUID)
@click.option("--reason", required=True, help="Why the record must not count.")
@click.option("--by", "withdrawn_by", required=True, help="Who asks for it.")
@click.option("--approved-by", required=True, help="Who approves it: somebody else.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@pass_context
def withdraw(
    ctx: Context, evidence_id: UUID, reason: str, withdrawn_by: str, approved_by: str, as_json: bool
) -> int:
    """Take the evidence record EVIDENCE_ID out of the count, once and for all.

    \b
    That is how a conflict is mended. The file stays in the bucket.

    \b
    Example:
      toolkit evidence withdraw 0199c0de-0000-7000-8000-000000000001 \\
        --reason "KYC of another client" --by ana@example.com --approved-by rui@example.com
    """
    done = withdraw_record(
        ctx.workspace.database,
        evidence_id,
        reason=reason,
        withdrawn_by=withdrawn_by,
        approved_by=approved_by,
        clock=ctx.workspace.clock,
    )
    if as_json:
        print_json({"id": done.evidence_id, "saleId": done.sale_id, "withdrawnAt": done.withdrawn_at})
    else:
        show(f"{done.evidence_id}: withdrawn from sale {done.sale_id}")
    return DONE


def _announce(addresses: Sequence[str]) -> None:
    """Say where the files go: a credentials file comes from elsewhere and names any address."""
    for address in addresses[:_SHOWN]:
        note(f"sending to {address}")
    if len(addresses) > _SHOWN:
        note(f"... and to {len(addresses) - _SHOWN} more addresses")


def _renewal(ctx: Context) -> Renewal:
    limits = UploadLimits(ctx.settings.upload_ttl, ctx.settings.upload_max_bytes)
    return Renewal(ctx.workspace.database, ctx.workspace.bucket, limits, ctx.workspace.clock)


def _record_as_json(record: EvidenceRecord) -> dict[str, object]:
    return {
        "id": record.id,
        "evidenceType": record.evidence_type,
        "state": record.state,
        "requestedBy": record.requested_by,
        "requestedAt": record.requested_at,
        "withdrawnAt": record.withdrawn_at,
    }


def _finding_as_json(finding: CustodyFinding) -> dict[str, object]:
    return {
        "problem": finding.problem,
        "text": finding.text,
        "detail": finding.detail,
        "sales": list(finding.sale_ids),
        "evidenceIds": list(finding.evidence_ids),
        "keys": list(finding.keys),
    }


def _failure_as_json(failure: Failure) -> dict[str, object]:
    return {
        "line": failure.line,
        "saleId": failure.sale_id,
        "fileName": failure.file_name,
        "problem": failure.problem,
        "message": failure.message,
    }
