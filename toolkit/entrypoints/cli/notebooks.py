"""``toolkit run``: a notebook, as a scheduler runs it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from toolkit.entrypoints.cli.context import DONE, NEEDS_ATTENTION, Context, Place, note, pass_context, print_json
from toolkit.entrypoints.notebook_runs import run_notebook


@click.command()
@click.argument("notebook", type=Place(exists=True, dir_okay=False))
@click.option("-p", "--parameter", "given", nargs=2, multiple=True, metavar="NAME VALUE", help="Set a parameter.")
@click.option("--out", type=Place(), help="The executed notebook; default: runs/ beside it.")
@click.option("--timeout", type=click.FloatRange(min=1), metavar="SECONDS", help="Limit of the whole run.")
@click.option("--fail-on", type=click.Choice(["attention"]), help="Exit status 3 if something needs attention.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@pass_context
def run(
    ctx: Context,
    notebook: Path,
    given: tuple[tuple[str, str], ...],
    out: Path | None,
    timeout: float | None,
    fail_on: str | None,
    as_json: bool,
) -> int:
    """Execute NOTEBOOK, strict about its parameters, and print where the executed notebook is.

    Only names from the cell tagged `parameters` are taken, and each value keeps the type of its
    default: a text stays a text, with its leading zeros. A list is given item by item or as JSON.

    \b
    Examples:
      toolkit run notebooks/03_missing_evidence_report.ipynb --timeout 3600
      toolkit run notebooks/01_bulk_load_clients.ipynb -p files january.csv -p files february.xlsx

    \b
    At night, so that the scheduler notices what is wrong:
      toolkit run notebooks/03_missing_evidence_report.ipynb --fail-on attention

    Exit status 1: a cell failed or the time was up; the file under --out is then what it was before.
    """
    done = run_notebook(
        notebook,
        given,
        out,
        timeout=timeout,
        environ=ctx.environ,
        progress_bar=not ctx.quiet and sys.stderr.isatty(),
    )
    if as_json:
        print_json({"out": done.path, "seconds": round(done.seconds, 1), "results": done.results})
    else:
        click.echo(done.path)
        note(f"{notebook.name} ran in {done.seconds:.1f} s")
    return NEEDS_ATTENTION if fail_on == "attention" and done.needs_attention else DONE
