"""``toolkit credentials``: ask for upload credentials."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

import click

from toolkit.domain.fields import required_text
from toolkit.faces.cli.context import DONE, FAILED, Context, note, pass_context, print_json
from toolkit.operations.credentials import (
    AlreadyUploaded,
    ManifestResult,
    RejectedRow,
    UploadLimits,
    request_manifest,
)

_SHOWN = 20


@click.group()
def credentials() -> None:
    """Ask for upload credentials: an evidence record, and a form that lets its file be posted."""


def _user() -> str:
    try:
        return getpass.getuser()
    except OSError:
        return str(os.getuid())


@credentials.command()
@click.argument("manifest", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The credentials file to write.")
@click.option("--requested-by", default=_user, help="Who asks, kept with each record.  [default: the user's name]")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@pass_context
def request(ctx: Context, manifest: Path, out: Path, requested_by: str, as_json: bool) -> int:
    r"""Ask for credentials for each file that MANIFEST (CSV or XLSX) names.

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
    Example:
      toolkit credentials request manifest.csv --out credentials.jsonl
      toolkit evidence upload credentials.jsonl --from files

    Exit status 1: rows are wrong; nothing was issued and --out was not touched.
    """
    result = request_manifest(
        ctx.workspace.database,
        ctx.workspace.bucket,
        manifest,
        out,
        requested_by=_name(requested_by),
        limits=UploadLimits(ctx.settings.upload_ttl, ctx.settings.upload_max_bytes),
        clock=ctx.workspace.clock,
        progress=ctx.progress,
    )
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


def _show(result: ManifestResult, manifest: Path, out: Path) -> None:
    if result.rejected:
        click.echo(f"{manifest.name}: {result.rows} rows, {len(result.rejected)} rejected: nothing was issued")
    else:
        click.echo(
            f"{manifest.name}: {result.rows} rows: {result.issued} issued, {result.reissued} issued again, "
            f"{len(result.skipped)} already uploaded\nCredentials: {out}"
        )
    lines = [
        f"{manifest.name}, line {row.line}: " + "; ".join(f"{item.field}: {item.message}" for item in row.invalid)
        for row in result.rejected
    ] + [f"{manifest.name}, line {row.line}: already uploaded as {row.id}" for row in result.skipped]
    for line in lines[:_SHOWN]:
        note(line)
    if len(lines) > _SHOWN:
        note(f"... and {len(lines) - _SHOWN} more; --json lists all of them")


def _as_json(result: ManifestResult, out: Path) -> dict[str, object]:
    return {
        "rows": result.rows,
        "issued": result.issued,
        "reissued": result.reissued,
        "skipped": len(result.skipped),
        "rejected": len(result.rejected),
        "out": None if result.rejected else str(out),
        "skippedRows": [_skipped_as_json(row) for row in result.skipped],
        "rejectedRows": [_rejected_as_json(row) for row in result.rejected],
    }


def _skipped_as_json(row: AlreadyUploaded) -> dict[str, object]:
    return {
        "line": row.line,
        "saleId": row.sale_id,
        "fileName": row.file_name,
        "evidenceType": row.evidence_type,
        "id": row.id,
    }


def _rejected_as_json(row: RejectedRow) -> dict[str, object]:
    return {"line": row.line, "errors": [{"field": item.field, "message": item.message} for item in row.invalid]}
