"""``toolkit credentials``: ask for upload credentials."""

from pathlib import Path

import click

from toolkit.cli.context import DONE, FAILED, Context, NonEmptyPath, pass_context
from toolkit.cli.printing import first_of, json_option, note, print_json, rejected_row, show
from toolkit.contract.fields import pick_camel, required_text
from toolkit.evidence.bulk_credentials import ManifestResult, Order, request_manifest
from toolkit.evidence.credentials import UploadLimits
from toolkit.kit.process import signed_in_account
from toolkit.kit.spoken import _, counted


@click.group()
def credentials() -> None:
    """Ask for upload credentials: an evidence record, and a form that lets its file be posted.

    \b
    Examples:
      toolkit credentials request manifest.csv --out credentials.jsonl
      toolkit credentials request --help
    """


@credentials.command(short_help="Ask for credentials for each file of a manifest.")
@click.argument("manifest", type=NonEmptyPath())
@click.option("--out", type=NonEmptyPath(), required=True, help="The credentials file to write.")
@click.option(
    "--requested-by",
    default=signed_in_account,
    help="The requester, kept with each record; your account by default.",
)
@json_option
@pass_context
def request(ctx: Context, manifest: Path, out: Path, requested_by: str, as_json: bool) -> int:
    """Ask for credentials for each file that MANIFEST (CSV or XLSX) names.

    \b
    Columns: saleId, fileName, fileFormat, type, evidenceType. For example:
      VND-0001,contrato.pdf,application/pdf,application/pdf,DOC_CONTRATANTE
      VND-0001,gravacao.mp3,audio/mpeg,audio/mpeg,POV

    \b
    The credentials go to the file of --out and nowhere else: JSON Lines, one object for each
    file in the order of MANIFEST, mode 0600. Whoever reads it may upload in your name.

    \b
    All rows or none: where a row is wrong, each one is named with its reasons, and nothing
    is issued. The same MANIFEST again makes no second record for the same sale, type and
    file name: a file that is in the bucket is left out of --out; a record whose credentials
    are still valid gets a new form for what is left of their life.

    \b
    Examples:
      toolkit credentials request manifest.csv --out credentials.jsonl
      toolkit evidence upload credentials.jsonl --from files

    Exit status 1: rows are wrong; nothing was issued and --out was not touched.
    """
    order = Order(
        requested_by=_name(requested_by),
        account=signed_in_account(),
        limits=UploadLimits(ctx.settings.upload_ttl, ctx.settings.upload_max_bytes),
        clock=ctx.application.clock,
        progress=ctx.progress,
    )
    result = request_manifest(ctx.application.database, ctx.application.bucket, manifest, out, order)
    if as_json:
        print_json(_as_json(result, out))
    else:
        _show(result, manifest, out)
    return FAILED if result.rejected else DONE


def _name(requested_by: str) -> str:
    try:
        return required_text(requested_by)
    except ValueError:
        raise click.BadParameter("must be a name", param_hint="--requested-by") from None


def _show(result: ManifestResult, source: Path, out: Path) -> None:
    rows = counted(result.rows, "row")
    if result.rejected:
        show("{}: {}, {} rejected: nothing was issued", source.name, rows, len(result.rejected))
    else:
        show(
            "{}: {}: {} issued, {} issued again, {} already uploaded",
            source.name,
            rows,
            result.issued,
            result.reissued,
            len(result.skipped),
        )
        show("Credentials: {}", out)
    lines = [
        *(
            (row.line, "; ".join(f"{each.field}: {each.message}" for each in row.invalid))
            for row in result.rejected
        ),
        *((line, f"{_('already uploaded as')} {each}") for line, each in result.skipped),
    ]
    for line, told in first_of(lines):
        note("{}, line {}: {}", source.name, line, told)


def _as_json(result: ManifestResult, out: Path) -> dict[str, object]:
    return {
        **pick_camel(result, "rows", "issued", "reissued"),
        "skipped": len(result.skipped),
        "rejected": len(result.rejected),
        "out": None if result.rejected else str(out),
        "skippedRows": [{"line": line, "id": each} for line, each in result.skipped],
        "rejectedRows": [rejected_row(row) for row in result.rejected],
    }
