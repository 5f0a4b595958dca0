"""``toolkit audit``, ``findings`` and ``changes``: judge every sale, and tell what is found and what changed."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from toolkit.cli.context import NonEmptyPath, confirm_disappearance, finish, json_option, pass_kit, past_moment
from toolkit.cli.printing import show
from toolkit.contract.findings import FindingStatus
from toolkit.kit.audits import AuditResult
from toolkit.kit.connection import Kit
from toolkit.kit.spoken import EXAMPLES


def audit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the kit, the options of an audit, and as ``judge`` what makes the audit that they ask for."""

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
    def with_judge(
        kit: Kit, /, as_of: str | None, no_sync: bool, no_verify: bool, confirmed: bool, engine: str, **given: Any
    ) -> Any:
        def judge(out: str | None = None) -> AuditResult:
            moment = past_moment(kit, as_of, "--as-of")
            looks = {"sync": not no_sync, "verify": not no_verify, "confirmed": confirmed}
            return kit.audit(moment, **looks, out=out, engine=engine)

        return command(kit, judge=judge, **given)

    return pass_kit(with_judge)


@click.command()
@audit_options
@click.option("--out", metavar="DIR", help="Where the folder of the audit goes, instead of TOOLKIT_AUDITS.")
@json_option
def audit(kit: Kit, judge: Callable[[str | None], AuditResult], out: str | None, as_json: bool) -> int:  # noqa: ARG001
    """Judge every sale by the evidence that lies in the bucket, and show the totals.

    \b
    The sales and the bucket are looked at first, and new files are verified for as long as
    TOOLKIT_VERIFY_SECONDS allow; the next audit goes on with the rest. An audit of the past
    (--as-of) takes what was seen then; times without an offset are in TOOLKIT_TIMEZONE, a
    bare date is the end of that day. `toolkit report` names the single sales.

    The audit is a folder of Parquet below TOOLKIT_AUDITS, which reports and other programs
    read; --out names another place.

    \b
    Examples:
      toolkit audit
      toolkit audit --as-of 2026-11-20
      toolkit audit --as-of "2026-11-20 18:00" --json

    Exit status 3: some sale is not compliant, or the service is read otherwise than before: its
    tables changed, rows that cannot be used became many, a dump was restored. Exit status 1:
    nothing was evaluated, because no sale is there, or because most sales, records or objects
    are gone at once.
    """
    return finish(judge(out), as_json)


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
