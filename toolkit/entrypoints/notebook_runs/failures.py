"""Describe a notebook's errors by place and kind; with the text only of the toolkit's own errors.

The texts of the toolkit's own errors never hold personal data or secrets. Those of any other error may quote
the row or the address that it stumbled over.
"""

import os
import re
from typing import Any, Final

import nbformat
from papermill.exceptions import PapermillExecutionError, strip_color

from toolkit import errors

_OURS: Final = {
    name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.ToolkitError)
}
_LEFT_OUT: Final = (
    "(its text is left out here, because it may quote data; run the notebook in JupyterLab to see it)"
)
_OUR_PLACE: Final = re.compile(
    r"Cell In|File (?!.*site-packages).*[/\\]toolkit[/\\]\S*, in |File .*site-packages[/\\]toolkit[/\\]\S*, in "
)
"""A cell, or a module of this package; a project folder called ``toolkit`` holds the packages of others, too."""
_OF_SYSTEM: Final = re.compile(r"\[Errno (\d{1,3})\] ")
_FRAME: Final = re.compile(r"^(?:File .+?:\d+, in \w+|Cell In\[\d+\], line \d+)", re.MULTILINE)


def described_failure(error: PapermillExecutionError) -> str:
    """Return the place and reason of the notebook's failure, in one line."""
    text = _text(error.ename, error.evalue, _places(error.traceback))
    return f"failed at In [{error.exec_count}]: {error.ename}: {text}"


def cut_errors(notebook: nbformat.NotebookNode) -> None:
    """Reduce each error in the outputs to its kind and its traceback's places, without any text of others."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "error":
                _cut(output)


def _cut(output: Any) -> None:
    places = _places(output.traceback)
    output.evalue = _text(output.ename, output.evalue, places)
    output.traceback = [*places, f"{output.ename}: {output.evalue}"]


def _places(traceback: list[str]) -> list[str]:
    return _FRAME.findall(strip_color("\n".join(traceback)))


def _text(name: str, text: str, places: list[str]) -> str:
    """Return the text of an error of the toolkit, known by name and module: pandas has ``DatabaseError`` too."""
    if of_system := _OF_SYSTEM.match(text):  # without the path behind it
        return os.strerror(int(of_system[1]))
    return text if name in _OURS and (not places or _OUR_PLACE.match(places[-1])) else _LEFT_OUT
