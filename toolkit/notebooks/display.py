"""Displays of a notebook: sentences and plain tables that stay readable wherever the notebook is opened.

Each is a bundle of HTML and text, as Jupyter takes it. pandas writes the tables, and everything is escaped.
"""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

import pandas as pd
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from toolkit.kit.spoken import _, current_language, translate
from toolkit.notebooks.packaged import RESULT_TYPE

Bundle = dict[str, Any]
"""A display by media type."""

SHOWN: Final = 500
"""Rows of a table that are shown."""


def figures(heading: str, facts: Mapping[str, int | str], below: str = "") -> Bundle:
    """Show figures by their labels in one row under a heading, with a sentence below."""
    named = {_(label): _cell(value) for label, value in facts.items()}
    under = f"<p>{escape(translate(below))}</p>" if below else ""
    told = ", ".join(f"{label} {value}" for label, value in named.items())
    shown = _html(translate(heading), pd.DataFrame([named])) + under
    return {"text/html": shown, "text/plain": f"{translate(heading)}: {told}"}


def table(heading: str, columns: Sequence[str], rows: Iterable[Sequence[object]], total: int = 0) -> Bundle:
    """Show the first rows of a table; ``total`` tells how many there are where ``rows`` holds fewer."""
    every = list(rows)
    if not every:
        return remark(heading, _("none"))
    total, shown = max(total, len(every)), every[:SHOWN]
    number = _cell(len(shown)) + (f" / {_cell(total)}" if total > len(shown) else "")
    titled, names = f"{translate(heading)} ({number})", [_(name) for name in columns]
    cells = [[_cell(value) for value in row] for row in shown]
    told = "\n".join("\t".join(row) for row in (names, *cells))
    return {"text/html": _html(titled, pd.DataFrame(cells, columns=names)), "text/plain": f"{titled}\n{told}"}


def _html(heading: str, frame: pd.DataFrame) -> str:
    with pd.option_context("display.max_colwidth", None):
        return f"<h4>{escape(heading)}</h4>{frame.to_html(index=False, border=0, justify='left')}"


def _cell(value: object) -> str:
    return current_language().number(round(value, 1)) if isinstance(value, (int, float)) else str(value)


def links(heading: str, paths: Sequence[Path]) -> Bundle:
    """Show files that were written, as links that a file browser around the notebook opens."""
    here = Path.cwd()
    told = ", ".join(
        f'<a href="{escape(quote(os.path.relpath(path, here)))}">{escape(str(path))}</a>' for path in paths
    )
    shown = f"<p>{escape(_(heading))}: {told}</p>"
    return {"text/html": shown, "text/plain": f"{_(heading)}: {', '.join(map(str, paths))}"}


def remark(subject: str, text: str) -> Bundle:
    """Show a sentence about a subject."""
    told = translate(text)
    shown = f"<p><b>{escape(_(subject))}</b>: {escape(told)}</p>"
    return {"text/html": shown, "text/plain": f"{_(subject)}: {told}"}


def show(part: Bundle) -> None:
    """Show one part now; in a script, which has no cells, as text on stderr."""
    if InteractiveShell.initialized():
        display(part, raw=True)
    else:
        print(part["text/plain"], file=sys.stderr)


T = TypeVar("T")


@dataclass(frozen=True, slots=True, repr=False)
class Shown(Generic[T]):
    """The value that an operation returned, shown as ``parts``; programs read its ``counts``.

    In a script, use ``result``; in a notebook, end a cell with the object.
    """

    result: T
    parts: Sequence[Bundle]
    counts: Mapping[str, Any]

    def _ipython_display_(self) -> None:
        for number, part in enumerate(self.parts):
            display(part | ({RESULT_TYPE: dict(self.counts)} if number == 0 else {}), raw=True)

    def __repr__(self) -> str:
        return "\n".join(part["text/plain"] for part in self.parts)
