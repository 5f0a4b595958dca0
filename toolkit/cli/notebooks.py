"""``toolkit run``: a notebook, as a scheduler runs it; ``toolkit notebooks``: those that come with the toolkit."""

import sys
from pathlib import Path

import click

from toolkit.cli.context import DONE, NEEDS_ATTENTION, NonEmptyPath, finish, json_option, note, print_json, show
from toolkit.kit.shown import Shown, table
from toolkit.notebooks.packaged import copy_notebooks, find_notebook, packaged_notebooks, question_of


@click.command()
@click.argument("notebook")
@click.option("-p", "--parameter", "given", nargs=2, multiple=True, metavar="NAME VALUE", help="Set a parameter.")
@click.option(
    "--out",
    type=NonEmptyPath(),
    help="The executed notebook; default: runs/ beside it, or here for one of an installed toolkit.",
)
@click.option("--timeout", type=click.FloatRange(min=1), metavar="SECONDS", help="Limit of the whole run.")
@click.option("--fail-on", type=click.Choice(["attention"]), help="Exit status 3 if something needs attention.")
@json_option
@click.pass_context
def run(
    ctx: click.Context,
    notebook: str,
    given: tuple[tuple[str, str], ...],
    out: Path | None,
    timeout: float | None,
    fail_on: str | None,
    as_json: bool,
) -> int:
    """Execute NOTEBOOK, strict about its parameters, and print where the executed notebook is.

    NOTEBOOK is a file, or the name of one that comes with the toolkit (`toolkit notebooks list`).
    Only names from the cell tagged `parameters` are taken, and each value keeps the type of its
    default: a text stays a text, with its leading zeros. A list is given item by item or as JSON.

    Examples:
      toolkit run 03_missing_evidence_report --timeout 3600
      toolkit run analysis/january.ipynb -p files january.csv -p files february.xlsx

    At night, so that the scheduler notices what is wrong:
      toolkit run 03_missing_evidence_report --fail-on attention

    Exit status 1: a cell failed or the time was up; the file under --out is then what it was before.
    """
    from toolkit.notebooks.running import run_notebook  # papermill takes a second to load

    path = find_notebook(notebook)
    done = run_notebook(
        path,
        given,
        out,
        timeout=timeout,
        environ=ctx.obj,
        progress_bar=not ctx.find_root().params["quiet"] and sys.stderr.isatty(),
    )
    if as_json:
        print_json({"out": done.path, "seconds": round(done.seconds, 1), "results": done.results})
    else:
        show(str(done.path))
        note("{} ran in {:.1f} s", path.name, done.seconds)
    return NEEDS_ATTENTION if fail_on == "attention" and done.needs_attention else DONE


notebooks = click.Group("notebooks")


@notebooks.command("list")
@json_option
def list_notebooks(as_json: bool) -> int:
    """Show each notebook's name and question. `toolkit run` takes the name.

    Examples:
      toolkit notebooks list
      toolkit run 03_missing_evidence_report --out night.ipynb
    """
    found = packaged_notebooks()
    asked = {name: question_of(path) for name, path in found.items()}
    document = [{"name": name, "question": asked[name], "path": path} for name, path in found.items()]
    parts = [table("Notebooks", ["name", "question"], [*asked.items()])]
    return finish(Shown(found, parts, {"notebooks": document}), as_json)


@notebooks.command()
@click.argument("folder", metavar="DIR", type=NonEmptyPath(file_okay=False))
@click.option("--replace", is_flag=True, help="Replace notebooks there that were changed.")
def copy(folder: Path, replace: bool) -> None:
    """Copy the notebooks into DIR, to be opened and changed there.

    A notebook that is there already and is another one is kept.

    Example:
      toolkit notebooks copy analysis
    """
    copied, kept = copy_notebooks(folder, replace=replace)
    for path in copied:
        show(str(path))
    if kept:
        note("{} notebooks there were kept: changed, or of another version; --replace replaces them", len(kept))
