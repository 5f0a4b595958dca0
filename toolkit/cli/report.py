"""``toolkit report``: judge every sale, and write the report."""

from functools import partial
from pathlib import Path

import click
import pyarrow as pa

from toolkit.audit.changes import changes_between
from toolkit.cli.audit import AuditOptions, audit_options, run_audit_from_options
from toolkit.cli.context import DONE, NEEDS_ATTENTION, Context, NonEmptyPath, pass_context, unmasking_for
from toolkit.cli.printing import note, show
from toolkit.errors import InvalidInput
from toolkit.kit.auditing import as_audited, earlier_audit, record_report, whole_cpfs
from toolkit.kit.spoken import counted
from toolkit.language import LANGUAGES, default_language, language
from toolkit.message import Message
from toolkit.reports import (
    DEFAULT_FORMATS,
    FORMATS,
    chosen,
    partner_reports,
    write_report,
)
from toolkit.reports.audited import Audited
from toolkit.reports.folder import MANIFEST
from toolkit.reports.notices import headline, notices
from toolkit.reports.reading import partners_in


@click.command()
@audit_options
@click.option("--out", type=NonEmptyPath(), default=Path("reports"), help="Folder; reports by default.")
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
    help="Form of the CSV: comma and UTF-8; or semicolon and byte order mark, as a Brazilian Excel opens it. By "
    "default excel where the report is in Portuguese.",
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
@click.option(
    "--since", metavar="TIME", help="Compare with the audits of this moment, instead of with the audit before."
)
@click.option(
    "--audit", "earlier", metavar="DIR", help="Report an audit that was made before: its folder, or latest."
)
@pass_context
def report(
    ctx: Context,
    asked: AuditOptions,
    earlier: str | None,
    since: str | None,
    out: Path,
    formats: str,
    code: str | None,
    csv_for: str | None,
    show_cpf: bool,
    reason: str,
    partner: str | None,
    per_partner: bool,
    fail_on: str | None,
) -> int:
    """Judge every sale and write the report of those that are not compliant.

    \b
    Writes missing-evidence.html, .xlsx, .csv, .json and manifest.json into the folder. An
    earlier report there is moved to history/ beneath it.
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
      toolkit report --since 2026-10-31

    Ends with 0 when the report is written, unless --fail-on asks for 3.
    """
    try:
        wanted = chosen(formats.split(","))
    except InvalidInput as error:
        raise click.BadParameter(error.message, param_hint="--format") from None
    spoken = language(code) if code else default_language(ctx.environ)
    pa.set_memory_pool(pa.system_memory_pool())  # it gives back what Arrow's own one keeps
    unmasking = unmasking_for(show_cpf, reason, "--show-cpf")
    judged = run_audit_from_options(ctx, asked) if earlier is None else earlier_audit(ctx.application, earlier)
    cpfs = None if unmasking is None else whole_cpfs(ctx.application, judged, unmasking)
    zone, changes = ctx.settings.timezone, None
    if since is not None:
        start = ctx.past_moment(since, "--since")
        changes = changes_between(ctx.application.database, start, judged.facts.as_of, zone)

    def read(name: str | None) -> Audited:
        found = as_audited(judged, name, cpfs)
        return found if changes is None else found.since(changes)

    result = read(partner)
    told = partial(record_report, ctx.application)
    for_excel = csv_for == "excel" or (csv_for is None and spoken.code == "pt-BR")
    write = partial(write_report, formats=wanted, timezone=zone, language=spoken, excel=for_excel, witness=told)
    written = write(result, out, progress=ctx.progress)
    if per_partner:
        written += partner_reports(partners_in(judged), read, out / "partners", write, ctx.progress)
    note("{}.", headline(result, spoken))
    for text in notices(result, spoken, zone):
        note("{}", spoken.tell(Message("note: {}", text)))
    for path in written:
        show(str(path))
    if per_partner and (others := _others(out / "partners", written)):
        folders, under = counted(others, "folder"), out / "partners"
        note("note: written earlier, for partners that no sale names any more: {} under {}", folders, under)
    counts = {None: 0, "incomplete": result.incomplete, "conflict": result.conflict, "any": result.open}
    return NEEDS_ATTENTION if counts[fail_on] else DONE


def _others(partners: Path, written: list[Path]) -> int:
    """Count the folders of partners with a report of an earlier time."""
    there = {path.parent for path in partners.glob(f"*/{MANIFEST}")}
    return len(there - {path.parent for path in written})
