"""Displays of a notebook: figures, bars and tables that stay readable wherever the notebook is opened.

Each is a bundle of HTML and text, as Jupyter takes it. Everything is escaped. Bars are boxes of HTML, and styles
stand in the tags: JupyterLab strips scripts, style sheets and SVG from a notebook that somebody else has run.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar
from urllib.parse import quote

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from toolkit.contract.findings import Status
from toolkit.kit.spoken import _, current_language, translate
from toolkit.notebooks.packaged import RESULT_TYPE
from toolkit.reports.wording import COLOURS

Bundle = dict[str, Any]
"""A display by media type."""


class Colour(StrEnum):
    """The colours of the report's pages (``toolkit/reports/templates/page.css``)."""

    GOOD = COLOURS[Status.COMPLIANT]
    WARNING = COLOURS[Status.INCOMPLETE]
    BAD = COLOURS[Status.CONFLICT]
    NEUTRAL = "#1f5a8a"
    QUIET = "#8a94a0"


STATUS_COLOURS: Final = {str(status): COLOURS[status] for status in Status}
"""The colour of each status of a sale."""

SHOWN: Final = 500
"""Rows of a table that are shown."""
BARS: Final = 12
"""Bars of a ranking, before the one for all others."""
_EDGE: Final = "1px solid rgba(128,128,128,.35)"
_CELL: Final = "vertical-align:top;padding:3px 12px 3px 0"
_NO_WRAP: Final = 24
"""Cells up to so many characters stay on one line."""
_DIGIT_SHARE: Final = 1.6
"""The width of a digit, in hundredths of the longest bar."""
_PRINTED_WHOLE: Final = "<style>@media print{.toolkit-table{max-height:none!important}}</style>"


class Fact(NamedTuple):
    """A figure with its label; ``colour`` says whether it is good or bad news, where it is not 0."""

    label: str
    value: int | str
    colour: str = Colour.NEUTRAL


def figures(heading: str, facts: Sequence[Fact], below: str = "") -> Bundle:
    """Show figures side by side under a heading, with a sentence below."""
    cards = "".join(
        f'<div style="border:{_EDGE};border-left:4px solid {colour if value else Colour.QUIET};border-radius:6px;'
        'padding:6px 16px 8px 12px;min-width:84px">'
        f'<div style="font-size:1.7em;font-weight:600;line-height:1.25">{escape(_number(value))}</div>'
        f'<div style="opacity:.75">{escape(_(label))}</div></div>'
        for label, value, colour in facts
    )
    under = f'<div style="margin:4px 0 8px">{escape(translate(below))}</div>' if below else ""
    markup = (
        f'<div style="font-size:1.15em;font-weight:600;margin:8px 0 6px">{escape(translate(heading))}</div>'
        f'<div style="display:flex;flex-wrap:wrap;gap:10px;margin-bottom:6px">{cards}</div>{under}'
    )
    told = ", ".join(f"{_(label)} {_number(value)}" for label, value, _colour in facts)
    return {"text/html": markup, "text/plain": f"{translate(heading)}: {told}"}


def bars(
    heading: str, counts: Mapping[str, Mapping[str, int]], colours: Mapping[str, str] = STATUS_COLOURS
) -> Bundle:
    """Show horizontal bars, one for each row of ``counts``, stacked from the series in ``colours``."""
    totals = {name: sum(row.values()) for name, row in counts.items()}
    widest = max(totals.values(), default=0) or 1
    rows = "".join(
        f'<tr><td style="text-align:left;white-space:nowrap;padding:2px 10px 2px 0">{escape(name)}</td>'
        f'<td style="width:100%;padding:2px 0"><div style="display:flex;overflow:hidden">'
        f"{''.join(_box(row.get(series, 0), widest, colour) for series, colour in colours.items())}</div></td>"
        f'<td style="text-align:right;padding:2px 0 2px 8px">{_number(totals[name])}</td></tr>'
        for name, row in counts.items()
    )
    legend = "".join(
        f'<span style="margin-right:16px"><span style="color:{colour}">&#9632;</span> {escape(_(name))}</span>'
        for name, colour in colours.items()
        if len(colours) > 1
    )
    # Jupyter fixes the widths of columns, which hides the names before the bars.
    table_style = "width:100%;max-width:760px;border-collapse:collapse;table-layout:auto"
    markup = f'{_heading(translate(heading))}<table style="{table_style}">{rows}</table><div>{legend}</div>'
    told = ", ".join(f"{name} {total}" for name, total in totals.items())
    return {"text/html": markup, "text/plain": f"{translate(heading)}: {told}"}


def ranked(heading: str, counts: Mapping[str, int], colour: str) -> Bundle:
    """Show one bar for each of the first in ``counts``, the most frequent, and one for all the others."""
    first, others = list(counts.items())[:BARS], sum(list(counts.values())[BARS:])
    rows = {name: {"": count} for name, count in [*first, *([(_("all others"), others)] if others else [])]}
    return bars(heading, rows, {"": colour})


def _box(count: int, widest: int, colour: str) -> str:
    share, number = 100 * count / widest, _number(count)
    shown = number if share > _DIGIT_SHARE * (len(number) + 1) else "&nbsp;"
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    ink = "black" if 0.3 * red + 0.6 * green + 0.1 * blue > 153 else "white"
    style = f"width:{share:.2f}%;background-color:{colour};color:{ink};text-align:center"
    return f'<div style="{style}">{shown}</div>' if count else ""


def table(heading: str, columns: Sequence[str], rows: Sequence[Sequence[object]], total: int = 0) -> Bundle:
    """Show the first rows of a table; ``total`` tells how many there are where ``rows`` holds fewer."""
    total, rows = max(total, len(rows)), rows[:SHOWN]
    if not rows:
        return remark(heading, _("none"))
    number = _number(len(rows)) + (f" / {_number(total)}" if total > len(rows) else "")
    titled = f"{translate(heading)} ({number})"
    names = [_(name) for name in columns]
    head = "".join(f'<th style="text-align:left;{_CELL}">{escape(name)}</th>' for name in names)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    markup = (
        f'{_PRINTED_WHOLE}{_heading(titled)}<div class="toolkit-table" style="max-height:32em;overflow:auto">'
        f'<table style="border-collapse:collapse"><thead><tr style="border-bottom:{_EDGE}">{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
    lines = ["\t".join(str(value) for value in row) for row in (names, *rows)]
    return {"text/html": markup, "text/plain": "\n".join([titled, *lines])}


def _cell(value: object) -> str:
    if isinstance(value, (int, float)):
        return f'<td style="text-align:right;{_CELL}">{current_language().number(round(value, 1))}</td>'
    text = str(value)
    wrap = "normal" if len(text) > _NO_WRAP else "nowrap"
    return f'<td style="text-align:left;white-space:{wrap};{_CELL}">{escape(text)}</td>'


def _heading(text: str) -> str:
    return f'<div style="font-weight:600;margin:10px 0 4px">{escape(text)}</div>'


def _number(value: int | str) -> str:
    return current_language().number(value) if isinstance(value, int) else value


def links(heading: str, paths: Sequence[Path]) -> Bundle:
    """Show files that were written, as links that a file browser around the notebook opens."""
    here = Path.cwd()
    told = " &nbsp; ".join(
        f'<a href="{escape(quote(os.path.relpath(path, here)))}">{escape(str(path))}</a>' for path in paths
    )
    markup = f'<div style="margin:4px 0 8px">{escape(_(heading))}: {told}</div>'
    return {"text/html": markup, "text/plain": f"{_(heading)}: {', '.join(map(str, paths))}"}


def remark(subject: str, text: str) -> Bundle:
    """Show a sentence about a subject."""
    told = translate(text)
    markup = f'<div style="margin:4px 0"><b>{escape(_(subject))}</b>: {escape(told)}</div>'
    return {"text/html": markup, "text/plain": f"{_(subject)}: {told}"}


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
