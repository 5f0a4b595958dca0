"""``toolkit clients``: register clients from spreadsheets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolkit.cli.context import NonEmptyPath, finish, json_option, pass_kit
from toolkit.cli.printing import note

if TYPE_CHECKING:
    from toolkit.kit.connection import Kit


@click.group()
def clients() -> None:
    """Register clients, and look through those that are registered.

    \b
    Examples:
      toolkit clients load clients.csv --dry-run
      toolkit clients load --help
      toolkit clients quality
    """


def _mapping(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = [value.rpartition("=") for value in values]
    if any(not (heading and field) for heading, _, field in pairs):
        raise click.BadParameter("write HEADING=field, for example --map 'Nr. contrato=numberOnDealership'")
    return {heading: field for heading, _, field in pairs}


@clients.command(short_help="Name doubtful clients, and those registered more than once.")
@json_option
@pass_kit
def quality(kit: Kit, as_json: bool) -> int:
    """Look through the registered clients for doubtful values, and for clients that are alike.

    \b
    Registered more than once are those with the same CPF, installation and number at the
    distributor. What else is alike may be right: a person with several installations, a
    family with one phone. CPFs are masked; nothing is changed.

    \b
    Examples:
      toolkit clients quality
      toolkit clients quality --json > quality.json

    Exit status 3: some clients are registered more than once.
    """
    return finish(kit.client_quality(), as_json)


@clients.command(short_help="Register the clients in CSV and XLSX files.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=NonEmptyPath())
@click.option("--dry-run", is_flag=True, help="Check everything, write the rejected files, register nobody.")
@click.option(
    "--out", type=NonEmptyPath(file_okay=False), help="Folder for rejected and skipped rows [beside FILE]."
)
@json_option
@click.option(
    "--map",
    "headings",
    metavar="HEADING=field",
    multiple=True,
    callback=_mapping,
    help="The field of a heading; HEADING=- ignores its column. May be given several times.",
)
@click.option("--sheet", help="Sheet of the workbooks [the one that has the headings].")
@pass_kit
def load(kit: Kit, /, files: tuple[Path, ...], as_json: bool, **options: Any) -> int:
    """Register the clients in FILE...: CSV or XLSX.

    \b
    Headings are the contract's (cpf, firstName, address.zipCode or zipCode, ...) or the usual
    Portuguese ones (nome, CEP, número da instalação, ...). Encoding, delimiter and sheet are found out.
    What was understood of a file is told on stderr before it is loaded.

    \b
    Examples:
      toolkit clients load clients.csv --dry-run
      toolkit clients load january.xlsx february.csv --out rejected
      toolkit clients load partner/*.csv --map "Nr. contrato=numberOnDealership"
      toolkit clients load clients.csv.rejected.csv          after correcting it

    \b
    A row that breaks the contract comes back in FILE.rejected.csv and FILE.rejected.xlsx with its line
    and all reasons: correct the cells there and load that file. Clients who are registered already are
    listed with their clientId in FILE.skipped.csv. A file is loaded as a whole or not at all; the same
    file again changes nothing.

    Of several files, those that cannot be read are named at the end, and the others are loaded.

    Exit status 3: some rows were rejected, or some files cannot be read.
    """
    return finish(kit.load_clients(files, announce=lambda understood: note(str(understood)), **options), as_json)
