"""The options that ``toolkit audit`` and ``toolkit report`` share, and the audit that they ask for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import click

from toolkit.domain.masking import Unmasking
from toolkit.entrypoints.auditing import audit
from toolkit.entrypoints.cli.context import Context
from toolkit.entrypoints.timestamps import EXAMPLES, parse_timestamp
from toolkit.errors import InvalidInput
from toolkit.operations.judge.audit import AuditResult


def audit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--as-of``, ``--no-sync``, ``--no-verify`` and ``--confirm-disappearance``."""
    as_of = click.option("--as-of", metavar="TIME", help=f"A moment in the past: {EXAMPLES}. Now by default.")
    no_sync = click.option("--no-sync", is_flag=True, help="Do not look at the sales and the bucket first.")
    no_verify = click.option(
        "--no-verify", is_flag=True, help="Do not verify the contents of new files first; the report says so."
    )
    return as_of(no_sync(no_verify(confirm_disappearance(command))))


confirm_disappearance = click.option(
    "--confirm-disappearance",
    "confirmed",
    is_flag=True,
    help="Go on although most sales, records or objects are gone at once.",
)


def asked_for(
    ctx: Context,
    as_of: str | None,
    no_sync: bool,
    no_verify: bool,
    confirmed: bool,
    *,
    unmasking: Unmasking | None = None,
    with_file_findings: bool = False,
) -> AuditResult:
    """Run the audit that the options ask for.

    Raises:
        click.BadParameter: ``--as-of`` is no past moment.
    """
    moment = None if as_of is None else past_moment(ctx, as_of, "--as-of")
    return audit(
        ctx.application,
        as_of=moment,
        sync=not no_sync,
        confirmed=confirmed,
        verify=not no_verify,
        unmasking=unmasking,
        with_file_findings=with_file_findings,
        progress=ctx.progress,
    )


def past_moment(ctx: Context, text: str, option: str) -> datetime:
    """The moment that an option names.

    Raises:
        click.BadParameter: it is no past moment.
    """
    try:
        return parse_timestamp(text, timezone=ctx.settings.timezone, now=ctx.now())
    except InvalidInput as error:
        raise click.BadParameter(str(error), param_hint=option) from None
