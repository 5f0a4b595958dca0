"""``toolkit report``: judge every sale, and write the report."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from toolkit.cli.audit import audit_options
from toolkit.cli.context import DONE, NEEDS_ATTENTION, NonEmptyPath, past_moment, reason_for
from toolkit.cli.printing import note, show
from toolkit.errors import InvalidInput
from toolkit.kit.audits import AuditResult
from toolkit.kit.connection import Kit
from toolkit.kit.spoken import counted
from toolkit.language import LANGUAGES
from toolkit.reports import DEFAULT_FORMATS, FORMATS, MANIFEST, chosen


@click.command()
@audit_options
@click.option("--out", type=NonEmptyPath(), default=Path("reports"), help="Folder; reports by default.")
@click.option(
    "--format",
    "formats",
    metavar="LIST",
    multiple=True,
    default=DEFAULT_FORMATS,
    help=f"Any of {', '.join(FORMATS)}; {', '.join(DEFAULT_FORMATS)} by default.",
)
@click.option(
    "--language",
    type=click.Choice(LANGUAGES, case_sensitive=False),
    metavar=f"[{'|'.join(LANGUAGES)}]",
    help="Language of the formats for people; by default that of TOOLKIT_LANGUAGE or of the locale.",
)
@click.option(
    "--csv",
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
def report(
    kit: Kit,
    judge: Callable[[], AuditResult],
    earlier: str | None,
    since: str | None,
    out: Path,
    formats: tuple[str, ...],
    show_cpf: bool,
    reason: str,
    fail_on: str | None,
    **options: Any,
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
        wanted = chosen(",".join(formats).split(","))
    except InvalidInput as error:
        raise click.BadParameter(error.message, param_hint="--format") from None
    pa.set_memory_pool(pa.system_memory_pool())  # it gives back what Arrow's own one keeps
    unmask, start = reason_for(show_cpf, reason, "--show-cpf"), past_moment(kit, since, "--since")
    audit = judge() if earlier is None else kit.open_audit(earlier)
    written = audit.report(out, formats=wanted, since=start, unmask=unmask, **options)
    for part in written.parts:
        if part.aside:
            note(part.text)
    for path in written.result:
        show(str(path))
    if options["per_partner"] and (others := _others(out / "partners", written.result)):
        folders, under = counted(others, "folder"), out / "partners"
        note("note: written earlier, for partners that no sale names any more: {} under {}", folders, under)
    incomplete, conflict = (written.document[name] for name in ("incomplete", "conflict"))
    counts = {None: 0, "incomplete": incomplete, "conflict": conflict, "any": incomplete + conflict}
    return NEEDS_ATTENTION if counts[fail_on] else DONE


def _others(partners: Path, written: list[Path]) -> int:
    """Count the folders of partners with a report of an earlier time."""
    there = {path.parent for path in partners.glob(f"*/{MANIFEST}")}
    return len(there - {path.parent for path in written})
