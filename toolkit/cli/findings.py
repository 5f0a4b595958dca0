"""``toolkit findings`` and ``toolkit changes``: findings with their lives, and the difference of two moments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolkit.cli.audit import audit_options
from toolkit.cli.context import NonEmptyPath, finish, json_option, pass_kit, past_moment
from toolkit.cli.printing import show
from toolkit.contract.findings import FindingStatus

if TYPE_CHECKING:
    from toolkit.kit.audits import AuditResult
    from toolkit.kit.connection import Kit


@click.command()
@audit_options
@click.option("--status", type=click.Choice(list(map(str, FindingStatus))), help="Only findings of this status.")
@click.option("--code", help="Only findings of this code.")
@click.option("--partner", help="Only findings of this partner's sales.")
@json_option
def findings(
    kit: Kit,  # noqa: ARG001
    judge: Callable[[], AuditResult],
    status: str | None,
    code: str | None,
    partner: str | None,
    as_json: bool,
) -> int:
    """Judge every sale, and list every finding with its status, dates, deadline and owner.

    \b
    A finding keeps its id while it lives: the same gap of the same sale, the same oddity of
    the same file. It is open, waived, resolved or reopened (it was resolved, and is back).
    Its deadline is counted in business days of Brazil from the day on which it was last
    opened; firstSeen is the first audit of now that saw it.

    \b
    Examples:
      toolkit findings
      toolkit findings --status open --partner "Norte Energia"
      toolkit findings --as-of 2026-11-20 --json > findings.json

    See also: toolkit explain CODE

    Exit status 3: some finding is open or reopened.
    """
    return finish(judge().listed_findings(status=status, code=code, partner=partner), as_json)


@click.command()
@click.option("--from", "start", metavar="TIME", required=True, help="The earlier moment, as for --as-of.")
@click.option("--to", "end", metavar="TIME", help="The later moment; now by default.")
@click.option(
    "--out", type=NonEmptyPath(), help="Also write the report of the later moment, with every change, into DIR."
)
@json_option
@pass_kit
def changes(kit: Kit, start: str, end: str | None, out: Path | None, as_json: bool) -> None:
    """Say which findings are new, resolved, reopened or still open between two moments.

    \b
    The findings of the first moment, without the resolved and with the new and reopened
    ones, are those of the second. What the audits of now saw is compared, without looking
    at anything again: a moment between two audits is answered by the earlier one.

    \b
    Examples:
      toolkit changes --from 2026-11-01 --to 2026-11-30
      toolkit changes --from 2026-11-20 --json
      toolkit changes --from 2026-10-31 --to 2026-11-30 --out november
    """
    first, last = past_moment(kit, start, "--from"), past_moment(kit, end, "--to") or kit.clock()
    finish(kit.changes(first, last), as_json)
    if out is not None:
        for path in kit.audit(last).report(out, formats="html,xlsx", since=first).result if not as_json else ():
            show(str(path))
