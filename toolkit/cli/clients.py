"""``toolkit clients``: register clients from spreadsheets."""

from dataclasses import asdict
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import click

from toolkit.cli.context import DONE, NEEDS_ATTENTION, Context, NonEmptyPath, pass_context
from toolkit.cli.printing import first_of, json_option, note, print_json, show
from toolkit.intake.clients import load_clients
from toolkit.intake.results import WARNINGS, FileLoaded, LoadOptions, LoadResult, Repair
from toolkit.kit.spoken import _, counted, current_language, readable, translate


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
@pass_context
def quality(ctx: Context, as_json: bool) -> int:
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
    from toolkit.intake.registration import QUALITY_TEXTS, Likeness, client_quality  # which no load needs

    found = client_quality(ctx.application.database, ctx.today())
    if as_json:
        print_json(asdict(found))
    else:
        show("{}", counted(found.clients, "client"))
        for code, count in found.counts.items():
            show("{:>9} × {}", current_language().number(count), _(QUALITY_TEXTS[code]))
        for likeness, count in found.groups.items():
            show("{}: {}", counted(count, "group"), _(likeness.text))
        for each in first_of(found.alike):
            ids = ", ".join(each.client_ids)
            show("  {:<17}  {:>3}  {:<14}  {}", each.likeness, each.number, each.cpf or _("several CPFs"), ids)
    return NEEDS_ATTENTION if found.groups.get(Likeness.SAME_CONTRACT) else DONE


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
@pass_context
def load(
    ctx: Context,
    /,
    files: tuple[Path, ...],
    dry_run: bool,
    out: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
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
    result = load_clients(
        ctx.application.database,
        files,
        out=out,
        dry_run=dry_run,
        options=LoadOptions(language=current_language(), **options),
        clock=ctx.application.clock,
        progress=ctx.progress,
        announce=lambda understood: note(str(understood)),
    )
    if as_json:
        print_json(result.document())
    else:
        for file in result.files:
            _print_file(file, ctx.settings.timezone, dry_run=dry_run)
        _print_details(result)
    for reason in result.unreadable:
        note("not loaded: {}", translate(reason))
    return NEEDS_ATTENTION if result.rejected or result.unreadable else DONE


def _print_file(file: FileLoaded, zone: ZoneInfo, *, dry_run: bool) -> None:
    done = _("would be registered") if dry_run else _("registered")
    show(
        "{}: {}: {:,} {}, {:,} rejected, {:,} skipped",
        file.source,
        counted(file.tally.rows, "row"),
        file.tally.accepted,
        done,
        file.tally.rejected,
        file.tally.skipped,
    )
    if file.already_loaded_at is not None:
        loaded_at = readable(file.already_loaded_at, zone)
        show("  these contents were loaded at {}; nothing changed", loaded_at)
    for path in file.rejected_files:
        show("  rejected rows: {}", path)
    if file.skipped_file is not None:
        show("  registered already: {}", file.skipped_file)
    for text in file.notes:
        show("  {}", text)


def _print_details(result: LoadResult) -> None:
    for reason, count in result.reasons.items():
        show("{:>9,} × {}{}", count, translate(reason), _where(result, reason))
    for repair, count in result.repairs.items():
        show("{:>9,} × repaired: {}", count, _(Repair(repair).text))
    for warning, count in result.warnings.items():
        show("{:>9,} × warning: {}{}", count, _(WARNINGS[warning]), _where(result, warning))


def _where(result: LoadResult, of: str) -> str:
    examples = result.examples.get(of, [])
    several = len(result.files) > 1
    places = [f"{f'{source} ' if several else ''}{_('line')} {line}" for source, line in examples]
    return f" ({'; '.join(places)})" if places else ""
