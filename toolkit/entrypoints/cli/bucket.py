"""``toolkit bucket``: take over what lies in the bucket."""

from __future__ import annotations

import click

from toolkit.entrypoints.auditing import sync_now
from toolkit.entrypoints.cli.audit_options import confirm_disappearance
from toolkit.entrypoints.cli.context import DONE, NEEDS_ATTENTION, Context, counted, note, pass_context, print_json
from toolkit.operations.observe.bucket_sync import adopt_bucket
from toolkit.operations.verify.contents import verify_contents


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
@click.option("--verify", is_flag=True, help="Then verify the contents of what was not verified yet.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@confirm_disappearance
@pass_context
def sync(ctx: Context, full: bool, verify: bool, as_json: bool, confirmed: bool) -> int:
    """Take over what lies in the bucket: new, overwritten and vanished objects.

    \b
    Every object that a record of an open sale (not completed) names is looked at, and so is
    every key where something can have been uploaded since the last time. All other objects
    are looked at in turn, each within TOOLKIT_PICTURE_DAYS (7); --full looks at all of them.

    \b
    Examples:
      toolkit bucket sync
      toolkit bucket sync --full --json
      toolkit bucket sync --verify

    See also: toolkit evidence verify --help

    Exit status 3: some files cannot be read: they are archived, or a permission is missing.
    """
    space = ctx.application
    synced = sync_now(space, full=full, confirmed=confirmed, progress=ctx.progress)
    verified = None
    if verify:
        verified = verify_contents(space.database, space.bucket, clock=space.clock, progress=ctx.progress)
    if as_json:
        print_json(
            {
                "full": synced.full,
                "listed": synced.listed,
                "appeared": synced.appeared,
                "changed": synced.changed,
                "vanished": synced.vanished,
                "examined": synced.examined,
                "archived": len(synced.archived),
                "unreadable": len(synced.unreadable) + len(synced.unstorable),
                **({"verified": verified.verified, "unusable": verified.unusable} if verified else {}),
            }
        )
    else:
        part = "" if synced.full else " looked at"
        click.echo(
            f"{synced.listed} objects{part}: {synced.appeared} new, {synced.changed} overwritten, "
            f"{synced.vanished} vanished; {synced.examined} examined"
        )
        if verified:
            click.echo(
                f"{counted(verified.verified, 'file')} verified: {verified.unusable} unusable, "
                f"{verified.left} left"
            )
    for keys, why in (
        (synced.archived, "archived, and must be restored before they can be read"),
        (synced.unreadable, "not readable with these credentials (s3:GetObject)"),
        (synced.unstorable, "under keys with a character that no database can hold, and count for no sale"),
    ):
        if keys:
            note(f"{len(keys)} objects are {why}, for example below {_folder(keys[0])}")
    unreadable = (
        synced.archived or synced.unreadable or synced.unstorable or (verified is not None and verified.unreadable)
    )
    return NEEDS_ATTENTION if unreadable else DONE


@bucket.command(short_help="Let the database belong to the bucket that is set now.")
@pass_context
def adopt(ctx: Context) -> int:
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
    click.echo(f"the database belongs to {now}" + (f"; before, to {former}" if former not in (None, now) else ""))
    return DONE


def _folder(key: str) -> str:
    """Return the folder of an object: the name of the file itself may be the name of a person."""
    return f"{key.rpartition('/')[0]}/"
