"""``toolkit audit``, ``findings``, ``changes``, ``report``, ``verify``: judge every sale, tell and verify it."""

import functools
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from toolkit.audit.folder import FACTS, Audit, open_audit
from toolkit.cli.context import (
    DONE,
    NEEDS_ATTENTION,
    NonEmptyPath,
    confirm_disappearance,
    finish,
    pass_kit,
    past_moment,
    reason_for,
    show,
    shows,
)
from toolkit.contract.findings import FindingStatus
from toolkit.errors import InvalidInput
from toolkit.kit.audits import AuditResult
from toolkit.kit.connection import Kit
from toolkit.kit.shown import Shown, say
from toolkit.kit.spoken import EXAMPLES, _, counted
from toolkit.language import LANGUAGES
from toolkit.log.chain import verify_log
from toolkit.reports import FORMATS, FileState, chosen, verify_reports
from toolkit.reports.report import DEFAULT_FORMATS


def audit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of an audit, and as ``judge`` what makes the audit that they ask for."""

    @click.option("--as-of", metavar="TIME", help=f"A moment in the past: {EXAMPLES}. Now by default.")
    @click.option(
        "--no-sync",
        is_flag=True,
        help="Judge by earlier observations, without reading the sales and the bucket first.",
    )
    @click.option(
        "--no-verify", is_flag=True, help="Do not verify the contents of new files first; the report says so."
    )
    @confirm_disappearance
    @click.option(
        "--engine",
        type=click.Choice(["duckdb", "spark"]),
        default="duckdb",
        help="Judge in this process, or on the cluster of TOOLKIT_SPARK_URL.",
    )
    @functools.wraps(command)
    def with_judge(
        as_of: str | None, no_sync: bool, no_verify: bool, confirmed: bool, engine: str, **given: Any
    ) -> Any:
        if as_of is not None and given.get("earlier") is not None:
            raise click.UsageError("--as-of and --audit do not go together; name one.")

        def judge(kit: Kit, out: str | None = None) -> AuditResult:
            moment = past_moment(kit, as_of, "--as-of")
            looks = {"sync": not no_sync, "verify": not no_verify, "confirmed": confirmed}
            return kit.audit(moment, **looks, out=out, engine=engine)

        return command(judge=judge, **given)

    return with_judge


@click.command()
@audit_options
@click.option(
    "--out",
    type=NonEmptyPath(path_type=str),
    metavar="DIR",
    help="Where the folder of the audit goes, instead of TOOLKIT_AUDITS.",
)
@shows()
def audit(kit: Kit, judge: Callable[[Kit, str | None], AuditResult], out: str | None) -> AuditResult:
    """Judge every sale by the evidence that lies in the bucket, and show the totals.

    The sales and the bucket are looked at first, and new files are verified for as long as
    TOOLKIT_VERIFY_SECONDS allow; the next audit goes on with the rest. An audit of the past
    (--as-of) takes what was seen then; times without an offset are in TOOLKIT_TIMEZONE, a
    bare date is the end of that day. `toolkit report` names the single sales.

    The audit is a folder of Parquet below TOOLKIT_AUDITS, which reports and other programs
    read; --out names another place.

    Examples:
      toolkit audit
      toolkit audit --as-of 2026-11-20
      toolkit audit --as-of "2026-11-20 18:00" --json

    Exit status 3: some sale is not compliant, or the service is read otherwise than before: its
    tables changed, rows that cannot be used became many, a dump was restored. Exit status 1:
    nothing was evaluated, because no sale is there, or because most sales, records or objects
    are gone at once.
    """
    return judge(kit, out)


@click.command()
@audit_options
@click.option("--status", type=click.Choice(list(map(str, FindingStatus))), help="Only findings of this status.")
@shows()
def findings(kit: Kit, judge: Callable[[Kit], AuditResult], status: str | None) -> Shown[Any]:
    """Judge every sale, and list every finding with its status, dates, deadline and owner.

    A finding keeps its id while it lives: the same gap of the same sale, the same oddity of
    the same file. It is open, waived, resolved or reopened (it was resolved, and is back).
    Its deadline is counted in business days of Brazil from the day on which it was last
    opened; firstSeen is the first audit without --as-of that saw it. Those that are open are
    shown, others with --status, and all of them with --json.

    Examples:
      toolkit findings
      toolkit findings --status open
      toolkit findings --as-of 2026-11-20 --json > findings.json

    See also: toolkit explain CODE

    Exit status 3: some finding is open or reopened.
    """
    return judge(kit).listed_findings(status=status)


@click.command()
@click.option("--from", "start", metavar="TIME", required=True, help="The earlier moment, as for --as-of.")
@click.option("--to", "end", metavar="TIME", help="The later moment; now by default.")
@click.option(
    "--out", type=NonEmptyPath(), help="Also write the report of the later moment, with every change, into DIR."
)
@shows(DONE)
def changes(kit: Kit, start: str, end: str | None, out: Path | None) -> Shown[Any]:
    """Say which findings are new, resolved, reopened or still open between two moments.

    The findings of the first moment, without the resolved and with the new and reopened
    ones, are those of the second. What audits without --as-of saw is compared, and nothing is
    looked at again: a moment between two audits is answered by the earlier one.

    Examples:
      toolkit changes --from 2026-11-01 --to 2026-11-30
      toolkit changes --from 2026-11-20 --json
      toolkit changes --from 2026-10-31 --to 2026-11-30 --out november
    """
    first, last = past_moment(kit, start, "--from"), past_moment(kit, end, "--to") or kit.clock()
    found = kit.changes(first, last)
    if out is None:
        return found
    written = kit.audit(last).report(out, formats="html,xlsx", since=first).result
    return replace(found, parts=[*found.parts, *(say(str(path)) for path in written)])


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
    default="programs",
    help="Form of the CSV: comma and UTF-8, the default; or semicolon and byte order mark, as a Brazilian Excel "
    "opens it.",
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
    "--audit",
    "earlier",
    type=NonEmptyPath(path_type=str),
    metavar="DIR",
    help="Report an audit that was made before: its folder, or latest.",
)
@pass_kit
def report(
    kit: Kit,
    /,
    judge: Callable[[Kit], AuditResult],
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

    Writes missing-evidence.html, .xlsx, .csv, .json and manifest.json into the folder. An
    earlier report there is moved to history/ beneath it.

    Examples:
      toolkit report
      toolkit report --out reports/2026-11 --as-of 2026-11-30
      toolkit report --format html,csv --fail-on conflict
      toolkit report --language pt-BR --format html,pdf
      toolkit report --show-cpf --reason "request 2026-117 of the regulator" --out whole
      toolkit report --partner "Norte Energia" --out reports/norte
      toolkit report --per-partner --format xlsx
      toolkit report --since 2026-10-31
    """
    try:
        wanted = chosen(",".join(formats).split(","))
    except InvalidInput as error:
        raise click.BadParameter(error.message, param_hint="--format") from None
    pa.set_memory_pool(pa.system_memory_pool())  # it gives back what Arrow's own one keeps
    unmask, start = reason_for(show_cpf, reason, "--show-cpf"), past_moment(kit, since, "--since")
    audit = judge(kit) if earlier is None else kit.open_audit(earlier)
    written = audit.report(out, formats=wanted, since=start, unmask=unmask, **options)
    finish(written)
    incomplete, conflict = (written.document[name] for name in ("incomplete", "conflict"))
    counts = {None: 0, "incomplete": incomplete, "conflict": conflict, "any": incomplete + conflict}
    return NEEDS_ATTENTION if counts[fail_on] else DONE


@click.command()
@click.argument("folder", metavar="DIR", type=NonEmptyPath())
@click.option("--live", is_flag=True, help="For an audit: compare its inputs with the database of today.")
@click.option("--seal", metavar="HASH", help="For a custody log: the hash of a seal that was kept elsewhere.")
@pass_kit
def verify(kit: Kit, folder: Path, seal: str | None, live: bool) -> int:
    """Tell whether the report or audit in DIR, or the exported custody log DIR, is what was written.

    Each file is compared with the SHA-256 in DIR/manifest.json:
      as written, changed, missing, or added (called like a report's file, and not recorded).
    The manifest protects against accidents; against people, keep a copy of it elsewhere.

    The reports in folders beneath DIR, such as history and partners, are verified with it.

    Each part of an audit folder is compared with the SHA-256 in its audit.json, and that file with
    SHA256SUMS. With --live its inputs are also extracted again, and what differs is named.

    Of a custody log that a version before 0.2 exported, a file, the chain of hashes is followed, and
    the first line that does not fit is named. Without --seal it cannot be known whether it was cut off
    at a seal or forged; the command ends with 3. One of today is checked by: toolkit log consistency

    Examples:
      toolkit verify reports
      toolkit verify audits/2026-11-23T02-00-00Z --live
      toolkit verify custody.jsonl --seal HASH

    Exit status 3: something is not as it was written. 1: there is no report in DIR.
    """
    if seal is not None and not re.fullmatch("[0-9a-f]{64}", seal):
        raise click.BadParameter(_("a seal has 64 hexadecimal digits"), param_hint="--seal")
    if folder.is_file():
        return _verify_custody_log(folder, seal)
    if seal is not None:
        raise click.UsageError("--seal is for a file that a version before 0.2 exported; else: toolkit log verify")
    if (folder / FACTS).exists():
        return _verify_audit(kit, open_audit(folder), live)
    if live:
        raise click.UsageError("--live compares an audit folder with the database")
    found = verify_reports(folder)
    for path, state in found.items():
        show("{:<10}  {}", _(state), path)
    wrong = sum(state is not FileState.AS_WRITTEN for state in found.values())
    files, reports = counted(len(found), "file"), counted(len({path.parent for path in found}), "report")
    if not wrong:
        show("{} of {}: all as written", files, reports)
        return DONE
    show("{} of {}; not as written: {}", files, reports, counted(wrong, "file"))
    return NEEDS_ATTENTION


def _verify_audit(kit: Kit, audit: Audit, live: bool) -> int:
    from toolkit.audit.extract import changed_inputs  # Ibis with it, which other commands may do without

    audit.verify()
    show("{}  {}", _(FileState.AS_WRITTEN), audit.folder)
    if not live:
        return DONE
    with kit.scratch() as scratch:
        found = changed_inputs(kit.any_service, audit, scratch, kit.settings.engine_memory)
    for table, key, how in found:
        show("{}  {}: {}", f"{_(how):<10}", table, key)
    if not found:
        show("The histories in the database hold what this audit was made from.")
    return NEEDS_ATTENTION if found else DONE


def _verify_custody_log(path: Path, kept_seal: str | None) -> int:
    """Follow the chain and name the first line that does not fit."""
    found = verify_log(path, kept_seal)
    if found.misfit is not None:
        show("changed     {}: {}", path, found.misfit)
        return NEEDS_ATTENTION
    show("as sealed   {}: {} under {}", path, counted(found.events, "event"), counted(found.seals, "seal"))
    show("newest seal {}", found.newest)
    if kept_seal is None:
        show("not known   whether it was cut off at a seal or forged as a whole: compare a kept seal, --seal HASH")
        return NEEDS_ATTENTION
    return DONE
