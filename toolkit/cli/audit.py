"""``toolkit audit``: judge every sale, and show the totals; the options that other commands share with it."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

import click
import pandas as pd

from toolkit.audit.folder import Audit
from toolkit.audit.object_history import Synced
from toolkit.cli.context import DONE, NEEDS_ATTENTION, Context, pass_context
from toolkit.cli.printing import aligned, json_option, note, print_json, show
from toolkit.contract.codes import CODES, names_of
from toolkit.contract.findings import Problem, Reason
from toolkit.kit.auditing import as_audited
from toolkit.kit.auditing import audit as run_audit
from toolkit.kit.spoken import EXAMPLES, _, counted, current_language, readable
from toolkit.reports.audited import Audited
from toolkit.reports.json_document import summary
from toolkit.reports.notices import headline, notices


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
    return run_audit(
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
    ):
        if keys:
            folder = f"{keys[0].rpartition('/')[0]}/"  # the name of the file itself may be the name of a person
            note("{}: {}, for example below {}", counted(len(keys), "object"), why, folder)


@click.command()
@audit_options
@click.option("--out", metavar="DIR", help="Where the folder of the audit goes, instead of TOOLKIT_AUDITS.")
@json_option
@pass_context
def audit(ctx: Context, asked: AuditOptions, out: str | None, as_json: bool) -> int:
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
    judged = run_audit_from_options(ctx, asked, out=out)
    result = as_audited(judged)
    if as_json:
        print_json(summary(result, ctx.settings.timezone) | {"folder": judged.folder})
    else:
        _show(ctx, result)
        show("\n{} {}", _("Folder of the audit"), judged.folder)
    return NEEDS_ATTENTION if result.open or result.service_is_odd else DONE


def _show(ctx: Context, result: Audited) -> None:
    show("{} {}", _("As of"), readable(result.as_of, ctx.settings.timezone))
    show("{}.", headline(result, current_language()))
    for text in notices(result, current_language(), ctx.settings.timezone):
        note("note: {}", text)
    if result.sales:
        _table(_("Sales"), result.by_group, "utilityGroup", _("utility group"))
    if result.incomplete:
        missing = result.missing.rename(columns={reason.value: _(CODES[reason].name) for reason in Reason})
        _table(_("What is missing, and why"), missing, "evidenceType", _("evidence type"))
    problems = result.problems.loc[result.problems["sales"] > 0, ["problem", "sales"]]
    if len(problems):
        _table(_("Problems"), problems, "problem", _("problem"), names_of(Problem))
    if result.open:
        _table(_("Age of what is open, in days"), result.ages, "ageDays", _("age"))


def _table(
    title: str,
    table: pd.DataFrame,
    key: str,
    heading: str,
    meanings: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Show a table with its numbers aligned, and the meaning of each code after them."""
    counts = [name for name in table.columns if name != key]
    rows = [
        [
            str(row[key]),
            *(current_language().number(row[name]) for name in counts),
            _(meanings.get(str(row[key]), "")),
        ]
        for row in table.to_dict("records")
    ]
    show("\n{}", title)
    for line in aligned([[heading, *map(_, counts), ""], *rows], numbers=range(1, len(counts) + 1)):
        show("  {}", line)
