"""``toolkit evidence``: upload files, verify them, list findings about them, withdraw records."""

from collections.abc import Sequence
from pathlib import Path

import click

from toolkit.domain.documents import named
from toolkit.entrypoints.cli.context import DONE, NEEDS_ATTENTION, Context, Place, pass_context
from toolkit.entrypoints.cli.custody_log import log
from toolkit.entrypoints.cli.evidence_checks import findings, verify
from toolkit.entrypoints.cli.evidence_records import link, list_records, withdraw
from toolkit.entrypoints.cli.printing import SHOWN, first_of, json_option, note, print_json, show
from toolkit.entrypoints.spoken import counted, sentence
from toolkit.operations.observe.belonging import check_bucket
from toolkit.operations.request.single import UploadLimits
from toolkit.operations.upload.destinations import Destinations
from toolkit.operations.upload.renewal import Renewal
from toolkit.operations.upload.sending import CONCURRENCY, upload_files


@click.group()
def evidence() -> None:
    """Upload evidence files, verify them, and take records out of the count.

    \b
    Examples:
      toolkit evidence upload credentials.jsonl --from files
      toolkit evidence list V-2026-00064
      toolkit evidence verify
    """


for command in (list_records, withdraw, link, verify, findings, log):
    evidence.add_command(command)


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
@click.option(
    "--allow-host",
    "allowed_hosts",
    metavar="HOST",
    multiple=True,
    help="Send files to this host, too, though it is not the bucket's.",
)
@click.option("--renew", is_flag=True, help="Ask for new credentials where those of a line ran out.")
@json_option
@pass_context
def upload(
    ctx: Context,
    credentials: Path,
    folder: Path,
    concurrency: int,
    allowed_hosts: tuple[str, ...],
    renew: bool,
    as_json: bool,
) -> int:
    """Send the files that CREDENTIALS (JSON Lines) is for into the bucket.

    \b
    Each file is checked first: it exists, its size is within the form's range, and by its
    bytes it is of the kind that its evidenceType demands. One that fails does not stop the
    others. What was sent is noted in CREDENTIALS.done, so the same command goes on after an
    interruption. The bucket's own credentials are needed for --renew only. Files go to the
    bucket that EVIDENCE_BUCKET and AWS_ENDPOINT_URL name (to this machine where they name
    none), and to no other unless --allow-host names its host. Where DATABASE_URL is set, that
    bucket must be the one that the database belongs to; without it no database is needed.

    \b
    Example:
      toolkit credentials request manifest.csv --out credentials.jsonl
      toolkit evidence upload credentials.jsonl --from files
      toolkit bucket sync

    Exit status 3: some files were not uploaded; each is named with the reason.
    """
    if ctx.settings.database_url is not None and not allowed_hosts:
        with ctx.application.database.transaction() as connection:
            check_bucket(connection, ctx.application.bucket)
    renewal = _renewal(ctx) if renew else None
    uploaded = upload_files(
        credentials,
        folder,
        concurrency=concurrency,
        renewal=renewal,
        progress=ctx.progress,
        announce=_announce,
        destinations=Destinations.of(ctx.settings, allowed_hosts),
    )
    if as_json:
        print_json(
            {
                **named(uploaded, "files", "sent", "skipped"),
                "failed": len(uploaded.failures),
                "failures": [
                    named(failure, "line", "sale_id", "file_name", "problem", "message")
                    for failure in uploaded.failures
                ],
            }
        )
    else:
        show(
            f"{credentials.name}: {counted(uploaded.files, 'file')}: {uploaded.sent} sent, "
            f"{uploaded.skipped} sent before, {len(uploaded.failures)} failed"
        )
        for failure in first_of(uploaded.failures):
            note(f"{credentials.name}, line {failure.line}: {failure.problem}: {sentence(failure.message)}")
    return NEEDS_ATTENTION if uploaded.failures else DONE


def _announce(addresses: Sequence[str]) -> None:
    """Say where the files go: a credentials file comes from elsewhere and names any address."""
    for address in addresses[:SHOWN]:
        note(f"sending to {address}")
    if len(addresses) > SHOWN:
        note(f"... and to {len(addresses) - SHOWN} more addresses")


def _renewal(ctx: Context) -> Renewal:
    limits = UploadLimits(ctx.settings.upload_ttl, ctx.settings.upload_max_bytes)
    return Renewal(ctx.application.database, ctx.application.bucket, limits, ctx.application.clock)
