"""``toolkit snapshot``: export what an audit reads as Parquet files."""

import click

from toolkit.domain.documents import named
from toolkit.entrypoints.cli.context import DONE, NEEDS_ATTENTION, Context, pass_context
from toolkit.entrypoints.cli.printing import json_option, note, print_json, show
from toolkit.entrypoints.spoken import counted
from toolkit.operations.snapshot.export import export_snapshot
from toolkit.operations.snapshot.manifest import Manifest
from toolkit.operations.snapshot.moving import months_to_move, move_months
from toolkit.operations.snapshot.reading import prune_snapshot, snapshots, verify_snapshot

_target = click.argument("target", metavar="TARGET")


@click.group()
def snapshot() -> None:
    """Export what an audit reads as Parquet, verify and list the exports, move old months there.

    \b
    TARGET is a folder, or s3://bucket/prefix. Each export adds what was observed since the one
    before; together they hold the whole history, so audits of past moments work on them too.
    There is no personal data in them: no names, no CPFs, no file names.

    \b
    Examples:
      toolkit snapshot export /srv/snapshots
      toolkit audit --snapshot /srv/snapshots
      toolkit audit --snapshot s3://audit/snapshots --engine spark
    """


@snapshot.command(short_help="Export what was observed since the newest export.")
@_target
@click.option("--full", is_flag=True, help="Write the whole history anew.")
@json_option
@pass_context
def export(ctx: Context, target: str, full: bool, as_json: bool) -> None:
    """Write what was observed since the newest export in TARGET, as of now.

    Memory stays flat. A call that was killed goes on where it stopped when it is repeated.

    \b
    Example:
      toolkit snapshot export /srv/snapshots
    """
    application = ctx.application
    exported = export_snapshot(
        application.database,
        application.file_store(target),
        ctx.settings.home,
        application.clock,
        elsewhere=application.elsewhere,
        full=full,
        deadlines=application.deadlines,
        progress=ctx.progress,
    )
    if as_json:
        print_json(_as_document(exported.manifest) | {"resumed": exported.resumed})
    else:
        show(_line(exported.manifest))
        if exported.resumed:
            note(f"{counted(exported.resumed, 'table')} had been written by an earlier call")


@snapshot.command(short_help="Compare every file with its SHA-256.")
@_target
@json_option
@pass_context
def verify(ctx: Context, target: str, as_json: bool) -> int:
    """Compare every file in TARGET with the SHA-256 that was noted when it was exported.

    Each file is read in TARGET itself. Exit status 3: a file, or an export that later ones
    continue, is missing, or a file was changed; each is named.

    \b
    Example:
      toolkit snapshot verify /srv/snapshots
    """
    found = list(verify_snapshot(ctx.application.file_store(target)))
    faults = [fault for fault in found if fault is not None]
    if as_json:
        print_json({"files": len(found), "faults": [named(each, "name", "reason") for each in faults]})
    else:
        for fault in faults:
            show(f"{fault.reason}  {fault.name}")
        show(f"{counted(len(found), 'file')}: {len(found) - len(faults)} as exported, {len(faults)} not")
    return NEEDS_ATTENTION if faults else DONE


@snapshot.command("list", short_help="List the exports, the oldest first.")
@_target
@json_option
@pass_context
def list_exports(ctx: Context, target: str, as_json: bool) -> None:
    """List the exports in TARGET, the oldest first.

    \b
    Example:
      toolkit snapshot list /srv/snapshots
    """
    found = snapshots(ctx.application.file_store(target))
    if as_json:
        print_json({"exports": [_as_document(manifest) for manifest in found]})
    else:
        for manifest in found:
            show(_line(manifest))
        if not found:
            note(f"no export in {target}")


@snapshot.command(short_help="Move old months of ended observations into the snapshot.")
@_target
@click.option(
    "--older-than",
    type=click.IntRange(min=1, max=1200),
    default=12,
    show_default=True,
    metavar="MONTHS",
    help="Move the months that were over so many months ago.",
)
@click.option("--dry-run", is_flag=True, help="Only tell which months would be moved.")
@json_option
@pass_context
def move(ctx: Context, target: str, older_than: int, dry_run: bool, as_json: bool) -> None:
    """Move months of ended observations of sales and records into TARGET, and out of the database.

    \b
    Observations are partitioned first, once: toolkit db upgrade --partition-by-month. Then the
    snapshot is continued, each row of each month is compared with it, and the partitions are
    dropped, all together. Audits of a moment before that read the snapshot by themselves, so
    TARGET must stay where it is, readable to whoever asks. Needs the owner of the tables.

    \b
    Examples:
      toolkit snapshot move /srv/snapshots --older-than 12 --dry-run
      toolkit snapshot move s3://audit/snapshots --older-than 12
    """
    application = ctx.application
    if dry_run:
        months = months_to_move(application.database, application.clock, older_than)
    else:
        months = move_months(
            application.database,
            application.file_store(target),
            application.elsewhere,
            application.clock,
            older_than=older_than,
            deadlines=application.deadlines,
            progress=ctx.progress,
        )
    if as_json:
        told = [
            {"month": f"{each.began_at:%Y-%m}", "observations": each.content.name, **named(each, "rows", "sha256")}
            for each in months
        ]
        print_json({"moved": not dry_run, "months": told})
    else:
        for each in months:
            show(f"{each.began_at:%Y-%m}  {each.content.name}: {counted(each.rows, 'row')}")
        rows = counted(sum(each.rows for each in months), "row")
        note(f"{rows} to move" if dry_run else f"{rows} moved to {target}")


@snapshot.command(short_help="Remove the oldest exports.")
@_target
@click.option("--keep", type=click.IntRange(min=1), default=2, show_default=True, help="Full exports to keep.")
@pass_context
def prune(ctx: Context, target: str, keep: int) -> None:
    """Remove the oldest exports; the newest full ones stay, with all that continue them.

    \b
    Example:
      toolkit snapshot prune /srv/snapshots --keep 2
    """
    removed = prune_snapshot(ctx.application.file_store(target), keep)
    show(f"{counted(len(removed), 'file')} removed")


def _line(manifest: Manifest) -> str:
    kind = "full" if manifest.previous is None else f"since {manifest.previous.isoformat(timespec='seconds')}"
    size = sum(file.bytes for file in manifest.files)
    return (
        f"{manifest.moment.isoformat(timespec='seconds')}  {kind}: {counted(manifest.rows, 'row')} in "
        f"{counted(len(manifest.files), 'file')}, {size / 1e6:,.1f} MB"
    )


def _as_document(manifest: Manifest) -> dict[str, object]:
    return {
        **named(manifest, "moment", "previous", "schema", "rows"),
        "files": len(manifest.files),
        "bytes": sum(file.bytes for file in manifest.files),
        "seal": manifest.seal,
    }
