"""``toolkit credentials``: ask for upload credentials."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolkit.cli.context import DONE, FAILED, NonEmptyPath, finish, json_option, pass_kit
from toolkit.contract.fields import required_text
from toolkit.kit.process import signed_in_account

if TYPE_CHECKING:
    from toolkit.kit.connection import Kit


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
@pass_kit
def request(kit: Kit, manifest: Path, out: Path, requested_by: str, as_json: bool) -> int:
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
    try:
        by = required_text(requested_by)
    except ValueError:
        raise click.BadParameter("must be a name", param_hint="--requested-by") from None
    requested = kit.request_credentials(manifest, out=out, requested_by=by)
    finish(requested, as_json)
    return FAILED if requested.needs_attention else DONE
