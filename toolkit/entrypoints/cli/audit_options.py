"""The options that ``toolkit audit`` and ``toolkit report`` share, and the audit that they ask for."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import click

from toolkit.domain.masking import Unmasking
from toolkit.entrypoints.auditing import audit
from toolkit.entrypoints.cli.context import Context
from toolkit.entrypoints.cli.printing import note
from toolkit.entrypoints.snapshot_auditing import EngineName, audit_of_snapshot, engine_of
from toolkit.entrypoints.spoken import _, counted
from toolkit.entrypoints.timestamps import EXAMPLES
from toolkit.errors import SettingsError
from toolkit.operations.judge.audit import AuditResult
from toolkit.operations.observe.bucket_sync import Synced


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The audit that the options ask for."""

    as_of: str | None
    no_sync: bool
    no_verify: bool
    confirmed: bool
    everything: bool
    snapshot: str | None
    engine: str | None


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
        "--all",
        "everything",
        is_flag=True,
        help="Judge every sale, also those that did not change since the last audit, and compare both.",
    )
    @click.option("--snapshot", metavar="TARGET", help="Judge a snapshot instead of the database.")
    @click.option(
        "--engine",
        type=click.Choice([each.value for each in EngineName]),
        help="The engine that judges: postgres, or, for a snapshot, duckdb (its default) or spark.",
    )
    @functools.wraps(command)
    def with_asked(*args: Any, **given: Any) -> Any:
        asked = Asked(**{field.name: given.pop(field.name) for field in fields(Asked)})
        return command(*args, asked=asked, **given)

    return with_asked


confirm_disappearance = click.option(
    "--confirm-disappearance",
    "confirmed",
    is_flag=True,
    help="Accept that most sales, records or objects are gone at once.",
)


def asked_for(
    ctx: Context, asked: Asked, *, unmasking: Unmasking | None = None, with_file_findings: bool = False
) -> AuditResult:
    """Run the audit that the options ask for.

    Raises:
        click.BadParameter: ``--as-of`` is no past moment.
        click.UsageError: the options do not go together.
    """
    moment = None if asked.as_of is None else ctx.past_moment(asked.as_of, "--as-of")
    try:
        engine = engine_of(asked.engine, asked.snapshot)
    except SettingsError as error:
        raise click.UsageError(str(error)) from None
    if engine is not None and asked.snapshot is not None:
        if unmasking is not None:
            raise click.UsageError("A snapshot holds no CPFs; --show-cpf needs the database.")
        if asked.everything or asked.confirmed:
            raise click.UsageError(
                "A snapshot is always judged as it is, and whole; leave --all and --confirm-disappearance out."
            )
        return audit_of_snapshot(
            ctx.application, asked.snapshot, engine, as_of=moment, with_file_findings=with_file_findings
        )
    return audit(
        ctx.application,
        as_of=moment,
        sync=not asked.no_sync,
        confirmed=asked.confirmed,
        everything=asked.everything,
        verify=not asked.no_verify,
        unmasking=unmasking,
        with_file_findings=with_file_findings,
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
            note(f"{counted(len(keys), 'object')}: {why}, for example below {folder}")
