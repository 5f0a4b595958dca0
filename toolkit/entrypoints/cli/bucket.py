"""``toolkit bucket``: take over what lies in the bucket."""

from __future__ import annotations

import click

from toolkit.entrypoints.cli.context import DONE, Context, pass_context, print_json
from toolkit.operations.observe.bucket_sync import sync_bucket
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
@pass_context
def sync(ctx: Context, full: bool, verify: bool, as_json: bool) -> int:
    """Take over what lies in the bucket: new, overwritten and vanished objects.

    \b
    Only the days are read on which something can have been uploaded since the last time.
    That an older object was deleted or replaced by other means than an upload form is seen
    by a full reading: --full, and by itself the first time, once a week, and while the
    bucket is small.

    \b
    Examples:
      toolkit bucket sync
      toolkit bucket sync --full --json
      toolkit bucket sync --verify

    See also: toolkit evidence verify --help
    """
    space = ctx.application
    synced = sync_bucket(space.database, space.bucket, clock=space.clock, full=full, progress=ctx.progress)
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
                **({"verified": verified.verified, "unusable": verified.unusable} if verified else {}),
            }
        )
    else:
        part = "" if synced.full else " of the last days"
        click.echo(
            f"{synced.listed} objects{part}: {synced.appeared} new, {synced.changed} overwritten, "
            f"{synced.vanished} vanished; {synced.examined} examined"
        )
        if verified:
            click.echo(f"{verified.verified} files verified: {verified.unusable} unusable, {verified.left} left")
    return DONE
