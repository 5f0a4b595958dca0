"""``toolkit bucket``: take over what lies in the bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from toolkit.cli.audit import confirm_disappearance
from toolkit.cli.context import finish, json_option, pass_kit
from toolkit.cli.printing import show
from toolkit.database.belonging import adopt_bucket

if TYPE_CHECKING:
    from toolkit.kit.connection import Kit


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
@pass_kit
def sync(kit: Kit, full: bool, inventory: str | None, verify: bool, as_json: bool, confirmed: bool) -> int:
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
    return finish(kit.sync(full=full, inventory=inventory, confirmed=confirmed, verify=verify), as_json)


@bucket.command(short_help="Let the database belong to the bucket that is set now.")
@pass_kit
def adopt(kit: Kit) -> None:
    """Let the database belong to the bucket that is set now, because its evidence has moved there.

    \b
    A database belongs to the bucket that was first read into it, and refuses any other: what
    is not in a wrong bucket would stand in the history as deleted. The custody log tells of
    the change. Afterwards objects that are not in the new bucket count as vanished.

    \b
    Example:
      EVIDENCE_BUCKET=evidence-new toolkit bucket adopt
    """
    former, now = adopt_bucket(kit.database, kit.bucket, kit.clock)
    if former in (None, now):
        show("the database belongs to {}", now)
    else:
        show("the database belongs to {}; before, to {}", now, former)
