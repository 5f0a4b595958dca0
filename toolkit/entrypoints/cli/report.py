"""``toolkit report`` and ``toolkit verify``: write the report, and verify it later."""

from functools import partial
from pathlib import Path

import click

from toolkit.entrypoints.auditing import witnessed
from toolkit.entrypoints.cli.audit_options import Asked, asked_for, audit_options
from toolkit.entrypoints.cli.context import DONE, NEEDS_ATTENTION, Context, Place, pass_context
from toolkit.entrypoints.cli.custody_log import verify_custody_log, verify_tables
from toolkit.entrypoints.cli.printing import note, show
from toolkit.entrypoints.cli.unmasking import unmasking_for
from toolkit.entrypoints.spoken import counted
from toolkit.errors import InvalidInput
from toolkit.language import LANGUAGES, default_language, language
from toolkit.reports import (
    DEFAULT_FORMATS,
    FORMATS,
    FileState,
    chosen,
    partner_reports,
    verify_files,
    write_report,
)
from toolkit.reports.earlier import MANIFEST
from toolkit.reports.notices import headline, notices


@click.command()
@audit_options
@click.option("--out", type=Place(), default=Path("reports"), help="Folder; reports by default.")
@click.option(
    "--format",
    "formats",
    metavar="LIST",
    default=",".join(DEFAULT_FORMATS),
    help=f"Any of {', '.join(FORMATS)}; {', '.join(DEFAULT_FORMATS)} by default.",
)
@click.option(
    "--language",
    "code",
    type=click.Choice(LANGUAGES, case_sensitive=False),
    metavar=f"[{'|'.join(LANGUAGES)}]",
    help="Language of the formats for people; by default that of TOOLKIT_LANGUAGE or of the locale.",
)
@click.option(
    "--csv",
    "csv_for",
    type=click.Choice(["programs", "excel"]),
    default="programs",
    show_default=True,
    help="Form of the CSV: comma and UTF-8; or semicolon and byte order mark, as a Brazilian Excel opens it.",
)
@click.option(
    "--show-cpf",
    is_flag=True,
    help="Show whole CPFs instead of masked ones; needs --reason. The files are for your account only.",
)
@click.option(
    "--reason", default="", help="The reason for showing CPFs; the custody log keeps it with your account."
)
@click.option("--partner", metavar="NAME", help="Only the sales of this partner: nothing of any other is in it.")
@click.option(
    "--per-partner", is_flag=True, help="Also one report for each partner, under DIR/partners, to send away."
)
@click.option(
    "--fail-on",
    type=click.Choice(["incomplete", "conflict", "any"]),
    help="End with 3 where there are such sales.",
)
@pass_context
def report(
    ctx: Context,
    asked: Asked,
    out: Path,
    formats: str,
    code: str | None,
    csv_for: str,
    show_cpf: bool,
    reason: str,
    partner: str | None,
    per_partner: bool,
    fail_on: str | None,
) -> int:
    """Judge every sale and write the report of those that are not compliant.

    \b
    Writes missing-evidence.html, .xlsx, .csv, .json and manifest.json into the folder. An
    earlier report there is moved to history/ beneath it, and index.html leads to all of them.
    CPFs are masked; --show-cpf shows them, and the custody log then tells by an event UNMASKED
    which account saw them and why.

    \b
    Examples:
      toolkit report
      toolkit report --out reports/2026-11 --as-of 2026-11-30
      toolkit report --format html,csv --fail-on conflict
      toolkit report --language pt-BR --format html,pdf
      toolkit report --show-cpf --reason "request 2026-117 of the regulator" --out whole
      toolkit report --partner "Norte Energia" --out reports/norte
      toolkit report --per-partner --format xlsx

    Ends with 0 when the report is written, unless --fail-on asks for 3.
    """
    try:
        wanted = chosen(formats.split(","))
    except InvalidInput as error:
        raise click.BadParameter(str(error), param_hint="--format") from None
    spoken = language(code) if code else default_language(ctx.environ)
    unmasking = unmasking_for(show_cpf, reason, "--show-cpf")
    result = asked_for(ctx, asked, unmasking=unmasking, with_file_findings=True)
    whole, zone = result, ctx.settings.timezone
    if partner is not None:
        result = whole.for_partner(partner)
    told = partial(witnessed, ctx.application) if asked.snapshot is None else None
    write = partial(write_report, formats=wanted, timezone=zone, language=spoken, witness=told)
    written = write(result, out, excel=csv_for == "excel", progress=ctx.progress)
    if per_partner:
        written += partner_reports(whole, out / "partners", write, ctx.progress)
    note(f"{headline(result, spoken)}.")
    for text in notices(result, spoken, zone):
        note(f"note: {text}")
    for path in written:
        show(str(path))
    if per_partner and (others := _others(out / "partners", written)):
        folders, under = counted(others, "folder"), out / "partners"
        note(f"note: written earlier, for partners that no sale names any more: {folders} under {under}")
    counts = {None: 0, "incomplete": result.incomplete, "conflict": result.conflict, "any": result.open}
    return NEEDS_ATTENTION if counts[fail_on] else DONE


def _others(partners: Path, written: list[Path]) -> int:
    """Count the folders of partners with a report of an earlier time."""
    there = {path.parent for path in partners.glob(f"*/{MANIFEST}")}
    return len(there - {path.parent for path in written})


@click.command()
@click.argument("folder", metavar="[DIR]", type=Place(), required=False)
@click.option("--live", is_flag=True, help="Compare the tables of the database with the custody log.")
@click.option("--seal", metavar="HASH", help="For a custody log: the hash of a seal that was kept elsewhere.")
@pass_context
def verify(ctx: Context, folder: Path | None, live: bool, seal: str | None) -> int:
    """Tell whether the report in DIR, or the exported custody log DIR, is what was written.

    \b
    Each file is compared with the SHA-256 in DIR/manifest.json:
      as written, changed, missing, or added (called like a report's file, and not recorded).
    The manifest protects against accidents; against people, keep a copy of it elsewhere.

    \b
    Of a custody log (toolkit evidence log) the chain of hashes is followed, and the first
    line that does not fit is named. Without --seal it cannot be known whether the log was
    cut off at a seal or forged as a whole; the command says so and ends with 3.

    \b
    With --live the records, contents, sales, withdrawals and completions in the database are
    compared with what the custody log holds of them, and each difference is named. Without
    --seal the log is compared with the newest seal that this machine kept of its own work.

    \b
    Examples:
      toolkit verify reports
      toolkit verify custody.jsonl --seal HASH
      toolkit verify --live --seal HASH

    Exit status 3: something is not as it was written. 1: there is no report in DIR.
    """
    if (folder is None) is not live:
        raise click.UsageError("Name a report or a log, or compare the database: --live")
    if folder is None:
        return verify_tables(ctx, seal)
    if folder.is_file():
        return verify_custody_log(folder, seal)
    found = verify_files(folder)
    for file in found:
        show(f"{file.state:<10}  {folder / file.name}")
    return DONE if all(file.state is FileState.AS_WRITTEN for file in found) else NEEDS_ATTENTION
