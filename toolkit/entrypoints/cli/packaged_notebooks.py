"""``toolkit notebooks``: the notebooks that come with the toolkit."""

from pathlib import Path

import click

from toolkit.entrypoints.cli.context import DONE, Place
from toolkit.entrypoints.cli.printing import print_json, show
from toolkit.entrypoints.packaged_notebooks import copy_notebooks, packaged_notebooks


@click.group()
def notebooks() -> None:
    """List the notebooks that come with the toolkit, or copy them.

    \b
    Examples:
      toolkit notebooks list
      toolkit notebooks copy analysis
    """


@notebooks.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def list_notebooks(as_json: bool) -> int:
    """Show each notebook's name and question. `toolkit run` takes the name.

    \b
    Examples:
      toolkit notebooks list
      toolkit run 03_missing_evidence_report --out night.ipynb
    """
    found = packaged_notebooks().values()
    if as_json:
        rows = [{"name": each.name, "question": each.question, "path": each.path} for each in found]
        print_json({"notebooks": rows})
    else:
        width = max(len(each.name) for each in found)
        for each in found:
            show(f"{each.name:{width}}  {each.question}")
    return DONE


@notebooks.command()
@click.argument("folder", metavar="DIR", type=Place(file_okay=False))
@click.option("--replace", is_flag=True, help="Replace notebooks there that were changed.")
def copy(folder: Path, replace: bool) -> int:
    """Copy the notebooks into DIR, to be opened and changed there.

    A notebook that is there already and was changed is kept: then nothing is copied.

    \b
    Example:
      toolkit notebooks copy analysis
    """
    for path in copy_notebooks(folder, replace=replace):
        show(str(path))
    return DONE
