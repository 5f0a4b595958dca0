"""``toolkit audit``: judge every sale, and show the totals."""

from collections.abc import Mapping
from types import MappingProxyType

import click
import pandas as pd

from toolkit.cli.audit_options import AuditOptions, audit_options, run_audit_from_options
from toolkit.cli.context import DONE, NEEDS_ATTENTION, Context, pass_context
from toolkit.cli.printing import aligned, json_option, note, print_json, show
from toolkit.contract.codes import CODES, names_of
from toolkit.contract.findings import Problem, Reason
from toolkit.kit.auditing import as_audited
from toolkit.kit.spoken import _, current_language, readable
from toolkit.reports.audited import Audited
from toolkit.reports.json_document import summary
from toolkit.reports.notices import headline, notices


@click.command()
@audit_options
@click.option("--out", metavar="DIR", help="Where the folder of the audit goes, instead of TOOLKIT_AUDITS.")
@json_option
@pass_context
def audit(ctx: Context, asked: AuditOptions, out: str | None, as_json: bool) -> int:
    """Judge every sale by the evidence that lies in the bucket, and show the totals.

    \b
    The sales and the bucket are looked at first, and new files are verified, as many as
    TOOLKIT_VERIFY_SECONDS and TOOLKIT_VERIFY_BYTES allow; the next audit goes on with the
    rest. An audit of the past (--as-of) takes what was seen then; times without an offset
    are in TOOLKIT_TIMEZONE, a bare date is the end of that day. `toolkit report` names the
    single sales.

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
    return NEEDS_ATTENTION if result.open or result.source.service_changes else DONE


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
