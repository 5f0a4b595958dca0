"""The custody log: ``toolkit evidence log`` writes it, and ``toolkit verify`` follows what was written."""

from pathlib import Path

import click

from toolkit.entrypoints.cli.context import DONE, NEEDS_ATTENTION, Context, Place, pass_context
from toolkit.entrypoints.cli.printing import json_option, note, print_json, show
from toolkit.entrypoints.kept_seals import keep_seal, kept_seal
from toolkit.entrypoints.spoken import counted
from toolkit.operations.prove.custody_log.export import export_log
from toolkit.operations.prove.custody_log.live import verify_live
from toolkit.operations.prove.custody_log.verification import verify_log
from toolkit.reports.times import iso


@click.command()
@click.option("--out", type=Place(), required=True, help="The file to write.")
@json_option
@pass_context
def log(ctx: Context, out: Path, as_json: bool) -> None:
    """Seal the custody log, and write it to a file.

    \b
    The log tells of each record when it was asked for and issued (or RECORDED, where the
    service made it; RECORD_CHANGED and RECORD_GONE where it changed or deleted it), when
    its file was seen, verified, replaced or gone, when it was withdrawn, and of each audit:
    ids, hashes and times only. Each seal covers the one before it. Keep the hash of the newest one where
    nobody who can write to the database can change it: then every later change shows.

    \b
    Examples:
      toolkit evidence log --out custody.jsonl
      toolkit verify custody.jsonl --seal HASH
    """
    space = ctx.application
    seal = export_log(space.database, out, space.clock, space.log_keys)
    keep_seal(space, seal.hash if seal is not None else None)
    if not space.log_keys.keys:
        note("the hashes in the log have no key: a CPF can be found by trying all; set TOOLKIT_LOG_KEY")
    if as_json:
        print_json({"file": out, "newestSeal": seal.as_json() if seal else None})
    elif seal is None:
        show(f"{out}: nothing has happened yet")
    else:
        show(f"{out}: seal {seal.number}, {seal.hash}")


def verify_custody_log(path: Path, kept_seal: str | None) -> int:
    """Follow the chain and name the first line that does not fit."""
    found = verify_log(path, kept_seal)
    if found.misfit is not None:
        show(f"changed     {path}: {found.misfit}")
        return NEEDS_ATTENTION
    show(f"as sealed   {path}: {counted(found.events, 'event')} under {counted(found.seals, 'seal')}")
    show(f"newest seal {found.newest}")
    if kept_seal is None:
        show("not known   whether it was cut off at a seal or forged as a whole: compare a kept seal, --seal HASH")
        return NEEDS_ATTENTION
    return DONE


def verify_tables(ctx: Context, given: str | None) -> int:
    """Compare the tables with the log in the same database, and name each difference."""
    space = ctx.application
    kept = given or kept_seal(space)
    found = verify_live(space.any_service, space.log_keys, kept, space.elsewhere)
    for difference in found.differences:
        show(f"{difference.what:<11} {difference.id}: {difference.how}")
    if found.seals == 0:
        show("nothing     the log holds no seal yet: toolkit evidence log --out FILE")
        return NEEDS_ATTENTION
    if not found.differences:
        events, seals = counted(found.events, "event"), counted(found.seals, "seal")
        show(f"as sealed   the tables hold what {events} under {seals} tell of")
    if found.moved:
        show(f"moved       {counted(found.moved, 'observation')} to a snapshot: toolkit snapshot verify TARGET")
    since = iso(found.epoch.opened_at, ctx.settings.timezone)
    if found.epoch.number > 1:
        show(f"epoch       {found.epoch.number}, since {since}: the database was restored from another cluster")
    if kept is None:
        show("not known   whether the log was cut off at a seal: none was kept here; compare one, --seal HASH")
    elif given is None:
        note(f"toolkit: compared with the seal that was kept in {space.settings.home}: {kept}")
    elif not found.differences:
        keep_seal(space, found.newest, compared=True)
    return NEEDS_ATTENTION if found.differences or kept is None else DONE
