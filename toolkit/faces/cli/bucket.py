"""``toolkit bucket``: take over what lies in the bucket."""

from __future__ import annotations

import click

from toolkit.faces.cli.context import DONE, Context, pass_context, print_json
from toolkit.operations.bucket_sync import sync_bucket


@click.group()
def bucket() -> None:
    """Take over what lies in the bucket."""


@bucket.command()
@click.option("--full", is_flag=True, help="Read every key, not only those that can have changed.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@pass_context
def sync(ctx: Context, full: bool, as_json: bool) -> int:
    r"""Take over what lies in the bucket: new, overwritten and vanished objects.

    \b
    Example:
      toolkit bucket sync
    """
    space = ctx.workspace
    synced = sync_bucket(space.database, space.bucket, clock=space.clock, full=full, progress=ctx.progress)
    if as_json:
        print_json(
            {
                "listed": synced.listed,
                "appeared": synced.appeared,
                "changed": synced.changed,
                "vanished": synced.vanished,
                "examined": synced.examined,
            }
        )
    else:
        click.echo(
            f"{synced.listed} objects: {synced.appeared} new, {synced.changed} overwritten, "
            f"{synced.vanished} vanished; {synced.examined} examined"
        )
    return DONE
