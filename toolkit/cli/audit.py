"""``toolkit audit``: judge every sale, and show the totals; the options that other commands share with it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from toolkit.cli.context import finish, json_option, pass_kit, past_moment
from toolkit.kit.spoken import EXAMPLES

if TYPE_CHECKING:
    from toolkit.kit.audits import AuditResult
    from toolkit.kit.connection import Kit

confirm_disappearance = click.option(
    "--confirm-disappearance",
    "confirmed",
    is_flag=True,
    help="Accept that most sales, records or objects are gone at once.",
)


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
