"""Displays of a notebook: figures, charts and tables that stay readable wherever the notebook is opened.

Everything is escaped. Bars are boxes of HTML and styles stand in the tags, because JupyterLab strips scripts,
style sheets and SVG from a notebook that somebody else has run.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, Protocol, Self, TypeVar
from urllib.parse import quote

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from toolkit.contract.findings import Status
from toolkit.kit.spoken import _, sentence, spoken
from toolkit.notebooks.calls import working_folder
from toolkit.notebooks.packaged import RESULT_TYPE
from toolkit.reports.wording import COLOURS


class Colour(StrEnum):
    """The colours of the report's pages (``toolkit/reports/templates/page.css``)."""

    GOOD = COLOURS[Status.COMPLIANT]
    WARNING = COLOURS[Status.INCOMPLETE]
    BAD = COLOURS[Status.CONFLICT]
    NEUTRAL = "#1f5a8a"
    QUIET = "#8a94a0"


STATUS_COLOURS: Final = {str(status): COLOURS[status] for status in Status}
"""The colour of each status of a sale."""

_EDGE: Final = "1px solid rgba(128,128,128,.35)"
_NO_WRAP: Final = 24
"""Cells up to so many characters stay on one line."""
_DIGIT_SHARE: Final = 1.6
"""The width of a digit, in hundredths of the longest bar."""


class DisplayPart(Protocol):
    """One output of a page, as Jupyter takes it."""

    def bundle(self) -> dict[str, Any]:
        """Return the data by their media types."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A figure with its label; ``colour`` marks it as good or bad."""

    label: str
    value: int | str
    colour: str = Colour.NEUTRAL


@dataclass(frozen=True, slots=True)
class FactTable:
    """Figures side by side under a heading, with a sentence below."""

    heading: str
    facts: Sequence[Fact]
    sentence: str = ""

    def bundle(self) -> dict[str, Any]:
        """As HTML, and as one line of text."""
        cards = "".join(
            f'<div style="border:{_EDGE};border-left:4px solid {fact.colour};border-radius:6px;'
            'padding:6px 16px 8px 12px;min-width:84px">'
            f'<div style="font-size:1.7em;font-weight:600;line-height:1.25">{escape(_number(fact.value))}</div>'
            f'<div style="opacity:.75">{escape(_(fact.label))}</div></div>'
            for fact in self.facts
        )
        below = f'<div style="margin:4px 0 8px">{escape(sentence(self.sentence))}</div>' if self.sentence else ""
        heading = sentence(self.heading)
        markup = (
            f'<div style="font-size:1.15em;font-weight:600;margin:8px 0 6px">{escape(heading)}</div>'
            f'<div style="display:flex;flex-wrap:wrap;gap:10px;margin-bottom:6px">{cards}</div>{below}'
        )
        text = f"{heading}: " + ", ".join(f"{_(fact.label)} {_number(fact.value)}" for fact in self.facts)
        return {"text/html": markup, "text/plain": text}


@dataclass(frozen=True, slots=True)
class Bars:
    """Horizontal bars, one a row of ``counts``, each stacked from the series in ``colours``."""

    heading: str
    counts: Mapping[str, Mapping[str, int]]
    colours: Mapping[str, str] = field(default_factory=lambda: STATUS_COLOURS)

    MOST: ClassVar = 12

    @classmethod
    def ranked(cls, heading: str, counts: Mapping[str, int], colour: str) -> Self:
        """Return one bar for each of the first in ``counts``, the most frequent, and one for all the others."""
        rows = {name: {"": count} for name, count in list(counts.items())[: cls.MOST]}
        others = sum(list(counts.values())[cls.MOST :])
        return cls(heading, {**rows, _("all others"): {"": others}} if others else rows, {"": colour})

    def bundle(self) -> dict[str, Any]:
        """As HTML, and as one line of text."""
        widest = max((sum(row.values()) for row in self.counts.values()), default=0) or 1
        rows = "".join(self._row(name, row, widest) for name, row in self.counts.items())
        legend = "".join(
            f'<span style="margin-right:16px"><span style="color:{colour}">&#9632;</span> {escape(_(name))}</span>'
            for name, colour in self.colours.items()
            if len(self.colours) > 1
        )
        markup = (
            f'<div style="font-weight:600;margin:10px 0 4px">{escape(sentence(self.heading))}</div>'
            # Jupyter fixes the widths of columns, which hides the names before the bars.
            '<table style="width:100%;max-width:760px;border-collapse:collapse;table-layout:auto">'
            f"{rows}</table><div>{legend}</div>"
        )
        text = f"{sentence(self.heading)}: " + ", ".join(
            f"{name} {sum(row.values())}" for name, row in self.counts.items()
        )
        return {"text/html": markup, "text/plain": text}

    def _row(self, name: str, counts: Mapping[str, int], widest: int) -> str:
        boxes = ""
        for series, colour in self.colours.items():
            share = 100 * counts.get(series, 0) / widest
            number = _number(counts.get(series, 0))
            shown = number if share > _DIGIT_SHARE * (len(number) + 1) else ""
            style = f"width:{share:.2f}%;background-color:{colour};color:{_ink(colour)};text-align:center"
            boxes += f'<div style="{style}">{shown or "&nbsp;"}</div>' if share else ""
        total = f'<td style="text-align:right;padding:2px 0 2px 8px">{_number(sum(counts.values()))}</td>'
        return (
            f'<tr><td style="text-align:left;white-space:nowrap;padding:2px 10px 2px 0">{escape(name)}</td>'
            '<td style="width:100%;padding:2px 0"><div style="display:flex;overflow:hidden">'
            f"{boxes}</div></td>{total}</tr>"
        )


def _ink(colour: str) -> str:
    """Black or white, whichever can be read on ``colour``."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return "black" if 0.3 * red + 0.6 * green + 0.1 * blue > 153 else "white"


_SORTING: Final = files("toolkit.notebooks").joinpath("templates", "sorting.js").read_text("utf-8").strip()
"""A script that lets people sort and filter a table by the texts in it."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of the first ``SHOWN`` rows; ``total`` tells how many there are where ``rows`` holds fewer.

    Where the notebook was run, its script lets it be sorted and filtered; JupyterLab strips the script from a
    notebook that somebody else has run, and the table stays readable.
    """

    heading: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    total: int = 0

    SHOWN: ClassVar = 500

    def bundle(self) -> dict[str, Any]:
        """As HTML, and as tab-separated text."""
        head = "".join(
            f'<th style="text-align:left;padding:4px 12px 4px 0">{escape(_(name))}</th>' for name in self.columns
        )
        rows = self.rows[: self.SHOWN]
        if not rows:
            return Remark(self.heading, _("none")).bundle()
        place = f"grid-{sha256(repr((self.heading, self.columns, rows)).encode()).hexdigest()[:12]}"
        body = "".join(f"<tr>{''.join(_cell(value) for value in row)}</tr>" for row in rows)
        total = max(self.total, len(self.rows))
        word = json.dumps(_("Filter"))
        shown = sentence(f"The first {len(rows):,} of {total:,}.")
        note = f'<div style="opacity:.75;margin-top:4px">{escape(shown)}</div>'
        markup = (
            f'<div style="font-weight:600;margin:10px 0 4px">{escape(sentence(self.heading))}</div>'
            f'<div class="{place}" style="max-height:32em;overflow:auto"><table style="border-collapse:collapse">'
            f'<thead><tr style="border-bottom:{_EDGE}">{head}</tr></thead><tbody>{body}</tbody></table></div>'
            f"{note if total > len(rows) else ''}<script>({_SORTING})('{place}', {word})</script>"
        )
        lines = ["\t".join(str(value) for value in row) for row in ([*map(_, self.columns)], *rows)]
        return {"text/html": markup, "text/plain": "\n".join([sentence(self.heading), *lines])}


def _cell(value: object) -> str:
    if isinstance(value, int):
        style = "text-align:right;vertical-align:top;padding:3px 12px 3px 0"
        return f'<td data-value="{value}" style="{style}">{_number(value)}</td>'
    text = str(value)
    wrap = "normal" if len(text) > _NO_WRAP else "nowrap"
    style = f"text-align:left;vertical-align:top;white-space:{wrap};padding:3px 12px 3px 0"
    return f'<td style="{style}">{escape(text)}</td>'


def _number(value: int | str) -> str:
    return spoken().number(value) if isinstance(value, int) else value


@dataclass(frozen=True, slots=True)
class Files:
    """Files that were written, as links that a file browser around the notebook opens."""

    heading: str
    paths: Sequence[Path]

    def bundle(self) -> dict[str, Any]:
        """As HTML, and as one line of text."""
        links = " &nbsp; ".join(
            f'<a href="{escape(quote(_from_notebook(path)))}">{escape(str(path))}</a>' for path in self.paths
        )
        markup = f'<div style="margin:4px 0 8px">{escape(_(self.heading))}: {links}</div>'
        return {"text/html": markup, "text/plain": f"{_(self.heading)}: {', '.join(map(str, self.paths))}"}


def _from_notebook(path: Path) -> str:
    """Return the relative link from the notebook to a file, in the browser that shows the working folder."""
    here, work = Path.cwd(), working_folder()
    if work is None or here.is_relative_to(work):
        return os.path.relpath(path, here)
    return f"../{os.path.relpath(path, work)}"


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence about a subject, shown while a job runs."""

    subject: str
    text: str

    def bundle(self) -> dict[str, Any]:
        """As HTML, and as text."""
        subject, text = _(self.subject), sentence(self.text)
        markup = f'<div style="margin:4px 0"><b>{escape(subject)}</b>: {escape(text)}</div>'
        return {"text/html": markup, "text/plain": f"{subject}: {text}"}


def show(part: DisplayPart) -> None:
    """Show one part now; in a script, which has no cells, as text on stderr."""
    if InteractiveShell.initialized():
        display(part.bundle(), raw=True)
    else:
        print(part.bundle()["text/plain"], file=sys.stderr)


T = TypeVar("T")


@dataclass(frozen=True, slots=True, repr=False)
class Shown(Generic[T]):
    """The value that an operation returned, shown as ``parts``; programs read its ``counts``.

    In a script, use ``result``; in a notebook, end a cell with the object.
    """

    result: T
    parts: Sequence[DisplayPart]
    counts: Mapping[str, Any]

    def _ipython_display_(self) -> None:
        for number, part in enumerate(self.parts):
            display(part.bundle() | ({RESULT_TYPE: dict(self.counts)} if number == 0 else {}), raw=True)

    def __repr__(self) -> str:
        return "\n".join(str(part.bundle()["text/plain"]) for part in self.parts)
