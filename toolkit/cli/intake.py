"""``toolkit clients``, ``sales`` and ``sale``: register clients, take sales over, complete them, look at one."""

from pathlib import Path
from typing import Any

import click

from toolkit.cli.context import DONE, FAILED, NonEmptyPath, pass_kit, reason_for, show, shows
from toolkit.kit.connection import Kit
from toolkit.kit.shown import Shown

clients = click.Group("clients")


def _mapping(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = [value.rpartition("=") for value in values]
    if any(not (heading and field) for heading, _, field in pairs):
        raise click.BadParameter("write HEADING=field, for example --map 'Nr. contrato=numberOnDealership'")
    return {heading: field for heading, _, field in pairs}


@clients.command(short_help="Name doubtful clients, and those registered more than once.")
@shows()
def quality(kit: Kit) -> Shown[Any]:
    """Look through the registered clients for doubtful values, and for clients that are alike.

    Registered more than once are those with the same CPF, installation and number at the
    distributor. What else is alike may be right: a person with several installations, a
    family with one phone. CPFs are masked; nothing is changed.

    Examples:
      toolkit clients quality
      toolkit clients quality --json > quality.json

    Exit status 3: some clients are registered more than once.
    """
    return kit.client_quality()


@clients.command(short_help="Register the clients in CSV and XLSX files.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=NonEmptyPath())
@click.option("--dry-run", is_flag=True, help="Check everything, write the rejected files, register nobody.")
@click.option(
    "--out", type=NonEmptyPath(file_okay=False), help="Folder for rejected and skipped rows [beside FILE]."
)
@click.option(
    "--map",
    "headings",
    metavar="HEADING=field",
    multiple=True,
    callback=_mapping,
    help="The field of a heading; HEADING=- ignores its column. May be given several times.",
)
@click.option("--sheet", help="Sheet of the workbooks [the one that has the headings].")
@shows()
def load(kit: Kit, /, files: tuple[Path, ...], **options: Any) -> Shown[Any]:
    """Register the clients in FILE...: CSV or XLSX.

    Headings are the contract's (cpf, firstName, address.zipCode or zipCode, ...) or the usual
    Portuguese ones (nome, CEP, número da instalação, ...). Encoding, delimiter and sheet are found out.
    What was understood of a file is told on stderr.

    Examples:
      toolkit clients load clients.csv --dry-run
      toolkit clients load january.xlsx february.csv --out rejected
      toolkit clients load partner/*.csv --map "Nr. contrato=numberOnDealership"
      toolkit clients load clients.csv.rejected.csv          after correcting it

    A row that breaks the contract comes back in FILE.rejected.csv and FILE.rejected.xlsx with its line
    and all reasons: correct the cells there and load that file. Clients who are registered already are
    listed with their clientId in FILE.skipped.csv. A file is loaded as a whole or not at all; the same
    file again changes nothing.

    Exit status 3: some rows were rejected, or some files cannot be read.
    """
    return kit.load_clients(files, **options)


sales = click.Group("sales")


@sales.command("load", short_help="Take over the sales of a file, or compare them.")
@click.argument("file", type=NonEmptyPath())
@click.option("--overwrite", is_flag=True, help="Write into a shared database, whose sales are the service's own.")
@click.option("--out", type=NonEmptyPath(), help="Folder for rejected rows; beside FILE by default.")
@shows()
def load_sales(kit: Kit, file: Path, overwrite: bool, out: Path | None) -> Shown[Any]:
    """Take over the sales of FILE (CSV or XLSX), or compare them with those of a shared database.

    Columns: saleId, clientId, utilityGroup, isClientFinancialResponsible, createdAt
    and, where there are any: partner, completedAt; or their usual Portuguese names
    (ID da venda, ID do cliente, grupo da distribuidora, contratante paga, data da venda, ...).
    Rejected rows come back in FILE.rejected.csv and FILE.rejected.xlsx with line and
    errors: correct the cells there and load that file.
    In the embedded database a known sale with other values is updated; what was seen
    before is kept. A shared database is compared with the file, and each difference is
    named; --overwrite writes them there, over the service's own values.
    Times without an offset are in TOOLKIT_TIMEZONE.

    Examples:
      toolkit sales load sales.csv
      toolkit sales load sales.csv --overwrite

    Exit status 3: some rows were rejected, or a shared database differs; each is named with its line.
    """
    return kit.load_sales(file, overwrite=overwrite, out=out)


@sales.command(short_help="Mark a sale as completed, if its evidence allows it.")
@click.argument("sale_id")
@shows(FAILED)
def complete(kit: Kit, sale_id: str) -> Shown[Any]:
    """Mark the sale SALE_ID as completed, if its files, read to their end, satisfy the rules.

    Guaranteed: every file that counts was read whole and found sound, and the very same
    versions lay in the bucket while the sale was locked, a moment before it was marked.
    Not guaranteed: that they stay; the next audit tells. The custody log keeps which
    versions (ids, ETags, SHA-256) allowed it, as COMPLETED.

    Example:
      toolkit sales complete VND-2026-0001

    Exit status 1: the evidence does not allow it (what is missing or in conflict is named), a
    file cannot be read, or somebody else keeps the sale locked.
    """
    return kit.complete(sale_id)


sale = click.Group("sale")


@sale.command("show", short_help="Show everything about one sale.")
@click.argument("sale_id")
@click.option(
    "--unmask", metavar="REASON", help="Show the whole CPF and the names of files; the custody log tells why."
)
@shows(DONE)
def show_sale(kit: Kit, sale_id: str, unmask: str | None) -> Shown[Any]:
    """Show the sale SALE_ID: its rule, its records and files, what is missing, findings and the time line.

    Neither the service nor the bucket is looked at again, and findings are those of the last
    audit: toolkit audit makes the next. The time line comes from the custody log.

    Examples:
      toolkit sale show V-2026-00001
      toolkit sale show V-2026-00001 --json
    """
    return kit.sale(sale_id, unmask=unmask)


@click.command(short_help="Write everything about one sale into a ZIP for others.")
@click.argument("sale_id")
@click.option(
    "--out", type=NonEmptyPath(file_okay=False), default=".", show_default=True, help="The folder of the archive."
)
@click.option("--with-files", is_flag=True, help="Add the files of its evidence; needs --reason.")
@click.option("--unmask", is_flag=True, help="Show the whole CPF and the names of files; needs --reason.")
@click.option("--reason", default="", help="Why files or personal data are handed out; the custody log keeps it.")
@pass_kit
def dossier(kit: Kit, sale_id: str, out: Path, with_files: bool, unmask: bool, reason: str) -> int:
    """Write everything about the sale SALE_ID into one ZIP that opens without the toolkit.

    It is made for somebody who never saw the toolkit, such as a regulator, a court or a distributor:
      dossier.pdf  the verdict and its rule, records and files, findings, waivers and the time line
      sale.json    the same for programs
      files/       the evidence itself, with --with-files; the custody log tells each file as opened
      SHA256SUMS   of all of them; the custody log keeps that of the archive

    Neither the service nor the bucket is looked at again, and findings are those of the last audit.

    Examples:
      toolkit dossier V-2026-00001 --out dossiers
      toolkit dossier V-2026-00001 --with-files --reason "Request 12/2026 of the regulator"
    """
    files = reason_for(with_files, reason, "--with-files")
    made = kit.dossier(sale_id, out, with_files=files, unmask=reason_for(unmask, reason, "--unmask"))
    show(str(made.result))
    return DONE
