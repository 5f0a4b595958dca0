"""``toolkit verify``: is a report, an audit or an exported custody log what was written?"""

import re
from pathlib import Path

import click

from toolkit.audit.extract import changed_inputs
from toolkit.audit.folder import FACTS, Audit, open_audit
from toolkit.cli.context import DONE, NEEDS_ATTENTION, NonEmptyPath, pass_kit
from toolkit.cli.printing import show
from toolkit.kit.connection import Kit
from toolkit.kit.spoken import _, counted
from toolkit.log.chain import verify_log
from toolkit.reports import FileState, verify_reports


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

    Each part of an audit folder is compared with the SHA-256 in its audit.json. With --live its
    inputs are also extracted again, and each sale, record and object that differs is named.

    Of a custody log (toolkit evidence log) the chain of hashes is followed, and the first
    line that does not fit is named. Without --seal it cannot be known whether the log was
    cut off at a seal or forged as a whole; the command says so and ends with 3.

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
