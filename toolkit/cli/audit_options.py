"""The options that ``toolkit audit`` and ``toolkit report`` share, and the audit that they ask for."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import click

from toolkit.audit.folder import Audit
from toolkit.audit.object_history import Synced
from toolkit.cli.context import Context
from toolkit.cli.printing import note
from toolkit.kit.auditing import audit
from toolkit.kit.spoken import EXAMPLES, _, counted


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """The audit that the options ask for."""

    as_of: str | None
    no_sync: bool
    no_verify: bool
    confirmed: bool
    engine: str


def audit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of an audit; the command gets them as ``asked``."""

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
    def with_asked(*args: Any, **given: Any) -> Any:
        asked = AuditOptions(**{field.name: given.pop(field.name) for field in fields(AuditOptions)})
        return command(*args, asked=asked, **given)

    return with_asked


confirm_disappearance = click.option(
    "--confirm-disappearance",
    "confirmed",
    is_flag=True,
    help="Accept that most sales, records or objects are gone at once.",
)


def run_audit_from_options(ctx: Context, asked: AuditOptions, *, out: str | None = None) -> Audit:
    """Run the audit that the options ask for, into ``out`` instead of ``TOOLKIT_AUDITS``.

    Raises:
        click.BadParameter: ``--as-of`` is no past moment.
    """
    moment = None if asked.as_of is None else ctx.past_moment(asked.as_of, "--as-of")
    return audit(
        ctx.application,
        as_of=moment,
        sync=not asked.no_sync,
        confirmed=asked.confirmed,
        verify=not asked.no_verify,
        place=out,
        spark=asked.engine == "spark",
        synced=name_unread,
        progress=ctx.progress,
    )


def name_unread(synced: Synced) -> None:
    """Say how many objects a reading of the bucket could not read, and why, with an example of each."""
    for keys, why in (
        (synced.archived, _("archived, and must be restored before they can be read")),
        (synced.unreadable, _("not readable with these credentials (s3:GetObject), or perhaps not there")),
        (synced.unstorable, _("under keys with a character that no database can hold, and count for no sale")),
    ):
        if keys:
            folder = f"{keys[0].rpartition('/')[0]}/"  # the name of the file itself may be the name of a person
            note("{}: {}, for example below {}", counted(len(keys), "object"), why, folder)
