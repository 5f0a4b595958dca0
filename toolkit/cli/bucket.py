"""``toolkit bucket``: take over what lies in the bucket."""

import click

from toolkit.cli.audit import confirm_disappearance, name_unread
from toolkit.cli.context import DONE, NEEDS_ATTENTION, Context, pass_context
from toolkit.cli.printing import json_option, note, print_json, show
from toolkit.contract.fields import pick_camel
from toolkit.database.belonging import adopt_bucket
from toolkit.evidence.contents import verify_contents
from toolkit.kit.auditing import sync_now
from toolkit.kit.spoken import _, counted


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
@click.option("--verify", is_flag=True, help="Then verify the contents of files that were not verified yet.")
@json_option
@confirm_disappearance
@pass_context
def sync(
    ctx: Context,
    full: bool,
    inventory: str | None,
    verify: bool,
    as_json: bool,
    confirmed: bool,
) -> int:
    """Take over what lies in the bucket: new, overwritten and vanished objects.

    \b
    Every object that a record of an open sale (not completed) names is looked at, and so is
    every key where something can have been uploaded since the last time. All other objects
    are looked at every TOOLKIT_RELIST_DAYS (7) days, or now with --full.

    \b
    A bucket of many millions of keys need not be listed. ADDRESS is a folder or
    s3://bucket/prefix: the manifest.json of an S3 Inventory in
    Parquet, or a folder with several of them, of which the newest is taken. It is older
    than now: what was observed later stays, what contradicts is asked for one by one, and
    reports tell the age of the listing.

    \b
    Examples:
      toolkit bucket sync
      toolkit bucket sync --full --json
      toolkit bucket sync --verify
      toolkit bucket sync --inventory s3://lists/evidence/daily/2026-11-20T01-00Z/manifest.json

    See also: toolkit evidence verify --help

    Exit status 3: some files cannot be read: they are archived, or a permission is missing.
    """
    if full and inventory is not None:
        raise click.UsageError("--full and --inventory do not go together; name one.")
    space = ctx.application
    synced = sync_now(space, full=full, inventory=inventory, confirmed=confirmed, progress=ctx.progress)
    line = counted(synced.listed, "object") + ("" if synced.full else f" {_('looked at')}")
    since = None if synced.listed_since is None else synced.listed_since.isoformat(timespec="seconds")
    verified = None
    if verify:
        verified = verify_contents(space.database, space.bucket, clock=space.clock, progress=ctx.progress)
    if as_json:
        print_json(
            {
                **pick_camel(
                    synced, "full", "listed", "appeared", "changed", "vanished", "examined", "asked", "lacking"
                ),
                "archived": len(synced.archived),
                "unreadable": len(synced.unreadable),
                "listedSince": since,
                **(pick_camel(verified, "verified", "unusable") if verified else {}),
            }
        )
    else:
        show(
            "{}: {} new, {} overwritten, {} vanished; {} examined",
            line,
            synced.appeared,
            synced.changed,
            synced.vanished,
            synced.examined,
        )
        if inventory is not None:
            show("the oldest part of the listing is of {}", since or "never")
        if verified:
            show(
                "{} verified: {} unusable, {} left",
                counted(verified.verified, "file"),
                verified.unusable,
                verified.left,
            )
        if synced.lacking:
            lacking = counted(synced.lacking, "object")
            note("the inventory lacks {} written days before it: it tells of a part of the bucket only", lacking)
    name_unread(synced)
    unreadable = synced.archived or synced.unreadable or (verified is not None and verified.unreadable)
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
    if former in (None, now):
        show("the database belongs to {}", now)
    else:
        show("the database belongs to {}; before, to {}", now, former)
