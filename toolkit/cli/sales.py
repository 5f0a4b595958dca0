"""``toolkit sales``: take sales over, and complete them."""

from pathlib import Path

import click

from toolkit.cli.context import DONE, FAILED, NEEDS_ATTENTION, Context, NonEmptyPath, pass_context
from toolkit.cli.printing import SHOWN, first_of, json_option, note, print_json, rejected_row, show
from toolkit.contract.codes import CODES
from toolkit.contract.fields import pick_camel
from toolkit.intake.sales import load_sales
from toolkit.kit.spoken import _, counted, current_language, readable, translate


@click.group()
def sales() -> None:
    """Take over the sales of another system, and complete them when their evidence allows it.

    \b
    Examples:
      toolkit sales load sales.csv
      toolkit sales complete V-2026-00001
    """


@sales.command(short_help="Take over the sales of a file, or compare them.")
@click.argument("file", type=NonEmptyPath())
@click.option("--overwrite", is_flag=True, help="Write into a shared database, whose sales are the service's own.")
@click.option("--out", type=NonEmptyPath(), help="Folder for rejected rows; beside FILE by default.")
@json_option
@pass_context
def load(ctx: Context, file: Path, overwrite: bool, out: Path | None, as_json: bool) -> int:
    """Take over the sales of FILE (CSV or XLSX), or compare them with those of a shared database.

    \b
    Columns: saleId, clientId, utilityGroup, isClientFinancialResponsible, createdAt
    and, where there are any: partner, completedAt; or their usual Portuguese names
    (ID da venda, ID do cliente, grupo tarifário, contratante paga, data da venda, ...).
    Rejected rows come back in FILE.rejected.csv and FILE.rejected.xlsx with line and
    errors: correct the cells there and load that file.
    In the embedded database a known sale with other values is updated; what was seen
    before is kept. A shared database is compared with the file, and each difference is
    named; --overwrite writes them there, over the service's own values.
    Times without an offset are in TOOLKIT_TIMEZONE.

    \b
    Examples:
      toolkit sales load sales.csv
      toolkit sales load sales.csv --overwrite

    Exit status 3: some rows were rejected, or a shared database differs; each is named with its line.
    """
    loaded = load_sales(
        ctx.application.database,
        file,
        timezone=ctx.settings.timezone,
        clock=ctx.application.clock,
        write=overwrite or ctx.application.database.embedded,
        out=out,
        language=current_language(),
    )
    if as_json:
        print_json(
            {
                **pick_camel(loaded, "rows", "inserted", "updated", "unchanged"),
                "rejected": len(loaded.rejected),
                "rejectedRows": [rejected_row(row) for row in loaded.rejected],
                "rejectedFiles": [str(path) for path in loaded.rejected_files],
                "differing": len(loaded.differing),
                "differingRows": [pick_camel(row, "line", "sale_id", "fields") for row in loaded.differing],
            }
        )
    else:
        show(
            "{}: {}: {:,} new, {:,} updated, {:,} unchanged, {:,} rejected"
            + (", {:,} that differ and were not written" if loaded.differing else ""),
            file.name,
            counted(loaded.rows, "sale"),
            loaded.inserted,
            loaded.updated,
            loaded.unchanged,
            len(loaded.rejected),
            len(loaded.differing),
        )
        for sale in loaded.differing[:SHOWN]:
            fields = ", ".join(sale.fields)
            says = f"{_('differs in')} {fields}" if fields else _("is not in the service's sales")
            note("{}, line {}: {} {}", file.name, sale.line, sale.sale_id, says)
        if len(loaded.differing) > SHOWN:
            note("... and {} more that differ; --json lists all of them", len(loaded.differing) - SHOWN)
        for row in first_of(loaded.rejected):
            reasons = "; ".join(f"{item.field}: {translate(item.message)}" for item in row.invalid)
            note("{}, line {}: {}", file.name, row.line, reasons)
        for path in loaded.rejected_files:
            show("  rejected rows: {}", path)
    return NEEDS_ATTENTION if loaded.rejected or loaded.differing else DONE


@sales.command(short_help="Mark a sale as completed, if its evidence allows it.")
@click.argument("sale_id")
@json_option
@pass_context
def complete(ctx: Context, sale_id: str, as_json: bool) -> int:
    """Mark the sale SALE_ID as completed, if its files, read to their end, satisfy the rules.

    \b
    Guaranteed: every file that counts was read whole and found sound, and the very same
    versions lay in the bucket while the sale was locked, a moment before it was marked.
    Not guaranteed: that they stay; the next audit tells. The custody log keeps which
    versions (ids, ETags, SHA-256) allowed it, as COMPLETED.

    \b
    Example:
      toolkit sales complete VND-2026-0001

    Exit status 1: the evidence does not allow it (what is missing or in conflict is named), a
    file cannot be read, or somebody else keeps the sale locked.
    """
    from toolkit.evidence.completion import complete_sale  # pandas and Ibis take a second to load

    done = complete_sale(ctx.application.database, ctx.application.bucket, sale_id, ctx.application.clock)
    completed = done.completed_at is not None
    if as_json:
        document = {"saleId": sale_id, "completed": completed, **pick_camel(done, "already", "completed_at")}
        if done.verdict is not None:
            document |= {
                "status": done.verdict.status,
                "missing": [pick_camel(piece, "evidence_type", "reason") for piece in done.verdict.missing],
                "problems": list(done.verdict.problems),
            }
        print_json(document)
    elif done.already and done.completed_at is not None:
        show("{}: was completed before, at {}", sale_id, readable(done.completed_at, ctx.settings.timezone))
    elif completed:
        show("{}: completed", sale_id)
    elif done.verdict is not None:
        note("toolkit: {} cannot be completed, its status is {}", sale_id, _(done.verdict.status))
        for piece in done.verdict.missing:
            note("  {} is missing: {}", piece.evidence_type, piece.reason)
        for problem in done.verdict.problems:
            note("  {}: {}", problem, _(CODES[problem].meaning))
    return DONE if completed else FAILED
