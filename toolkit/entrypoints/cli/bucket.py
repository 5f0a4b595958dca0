"""``toolkit bucket``: take over what lies in the bucket."""

import click

from toolkit.domain.documents import named
from toolkit.entrypoints.auditing import sync_now, take_over_delivered
from toolkit.entrypoints.cli.audit_options import confirm_disappearance, name_unread
from toolkit.entrypoints.cli.context import DONE, NEEDS_ATTENTION, Context, pass_context
from toolkit.entrypoints.cli.printing import json_option, note, print_json, show
from toolkit.entrypoints.spoken import _, counted
from toolkit.operations.observe.belonging import adopt_bucket
from toolkit.operations.observe.delivered import TakenOver
from toolkit.operations.verify.contents.verification import verify_contents


@click.group()
def bucket() -> None:
    """Take over what lies in the bucket.

    \b
    Examples:
      toolkit bucket sync
      toolkit bucket sync --help
    """


@bucket.command(short_help="Take over new, overwritten and vanished objects.")
@click.option("--full", is_flag=True, help="Read every key, not only those that can have changed.")
@click.option("--inventory", metavar="ADDRESS", help="Take over an S3 Inventory instead of listing the bucket.")
@click.option("--journal", metavar="ADDRESS", help="Take over a journal table of S3 Metadata, as Parquet files.")
@click.option("--verify", is_flag=True, help="Then verify the contents of files that were not verified yet.")
@json_option
@confirm_disappearance
@pass_context
def sync(
    ctx: Context,
    full: bool,
    inventory: str | None,
    journal: str | None,
    verify: bool,
    as_json: bool,
    confirmed: bool,
) -> int:
    """Take over what lies in the bucket: new, overwritten and vanished objects.

    \b
    Every object that a record of an open sale (not completed) names is looked at, and so is
    every key where something can have been uploaded since the last time. All other objects
    are looked at in turn, each within TOOLKIT_PICTURE_DAYS (7); --full looks at all of them.
    More than 500,000 keys are listed by several processes: one for each core, from 2 to 8.

    \b
    A bucket of many millions of keys need not be listed. ADDRESS is a folder or
    s3://bucket/prefix: for --inventory the manifest.json of an S3 Inventory (CSV, ORC or
    Parquet), a folder with several of them, of which the newest is taken, or Parquet files of
    a live inventory table; for --journal the Parquet files of a journal table, which also tell
    who wrote or deleted what, from where. Both are older than now: what was observed later
    stays, what contradicts is asked for one by one, and reports tell the age of the picture.

    \b
    Examples:
      toolkit bucket sync
      toolkit bucket sync --full --json
      toolkit bucket sync --verify
      toolkit bucket sync --inventory s3://lists/evidence/daily/2026-11-20T01-00Z/manifest.json
      toolkit bucket sync --journal /srv/journal

    See also: toolkit evidence verify --help

    Exit status 3: some files cannot be read: they are archived, or a permission is missing.
    """
    if (full, inventory is not None, journal is not None).count(True) > 1:
        raise click.UsageError("--full, --inventory and --journal do not go together; name one.")
    space = ctx.application
    told: dict[str, object]
    if inventory is not None or journal is not None:
        taken = take_over_delivered(
            space, inventory=inventory, journal=journal, confirmed=confirmed, progress=ctx.progress
        )
        synced, told = taken.synced, _told(taken)
        line = f"{counted(synced.listed, 'object')} {_('that differ from what was known')}"
    else:
        synced, told = sync_now(space, full=full, confirmed=confirmed, progress=ctx.progress), {}
        line = counted(synced.listed, "object") + ("" if synced.full else f" {_('looked at')}")
    verified = None
    if verify:
        verified = verify_contents(space.database, space.bucket, clock=space.clock, progress=ctx.progress)
    if as_json:
        print_json(
            {
                **named(synced, "full", "listed", "appeared", "changed", "vanished", "examined"),
                "archived": len(synced.archived),
                "unreadable": len(synced.unreadable) + len(synced.unstorable),
                **told,
                **(named(verified, "verified", "unusable") if verified else {}),
            }
        )
    else:
        show(
            f"{line}: {synced.appeared} new, {synced.changed} overwritten, "
            f"{synced.vanished} vanished; {synced.examined} examined"
        )
        if told:
            show(f"as of {told['asOf']}; the oldest part of the picture is of {told['pictureSince'] or 'never'}")
        if verified:
            show(
                f"{counted(verified.verified, 'file')} verified: "
                f"{verified.unusable} unusable, {verified.left} left"
            )
        if told.get("lacking"):
            lacking = counted(taken.lacking, "object")
            note(f"the inventory lacks {lacking} written days before it: it tells of a part of the bucket only")
    name_unread(synced)
    unreadable = (
        synced.archived or synced.unreadable or synced.unstorable or (verified is not None and verified.unreadable)
    )
    return NEEDS_ATTENTION if unreadable else DONE


@bucket.command(short_help="Let the database belong to the bucket that is set now.")
@pass_context
def adopt(ctx: Context) -> None:
    """Let the database belong to the bucket that is set now, because its evidence has moved there.

    \b
    A database belongs to the bucket that was first read into it, and refuses any other: what
    is not in a wrong bucket would stand in the history as deleted. The custody log tells of
    the change. Afterwards objects that are not in the new bucket count as vanished.

    \b
    Example:
      EVIDENCE_BUCKET=evidence-new toolkit bucket adopt
    """
    former, now = adopt_bucket(ctx.application.database, ctx.application.bucket, ctx.application.clock)
    show(f"the database belongs to {now}" + (f"; before, to {former}" if former not in (None, now) else ""))


def _told(taken: TakenOver) -> dict[str, object]:
    since = taken.picture_since
    return {
        "asOf": taken.moment.isoformat(timespec="seconds"),
        "pictureSince": None if since is None else since.isoformat(timespec="seconds"),
        **named(taken, "asked", "events", "lacking"),
    }
