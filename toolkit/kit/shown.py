"""Show results: figures, tables, files and remarks, as HTML in a notebook and as text on a terminal.

HTML is plain and everything in it is escaped, so that it stays readable wherever a notebook is opened.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum
from functools import cache, cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from urllib.parse import quote

from toolkit.kit.spoken import _, current_language, current_zone, notebook_shell
from toolkit.message import Message

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

RESULT_TYPE: Final = "application/vnd.evidence-toolkit+json"
"""The media type under which an executed notebook holds the numbers of a result."""

IN_A_NOTEBOOK: Final = 500  # rows of a table that a notebook shows
AS_TEXT: Final = 50  # rows of a table that a terminal shows

_SORTED: Final = (
    'table.sortable [role="button"] {cursor: pointer}'
    'table.sortable [role="button"]::after {content: " \\2195"}'
    'table.sortable [aria-sort="ascending"] [role="button"]::after {content: " \\2191"}'
    'table.sortable [aria-sort="descending"] [role="button"]::after {content: " \\2193"}'
    "table.texts :is(th, td:not([data-value])) {text-align: left}"
    "table.texts td:first-child {white-space: nowrap}"
)
"""The style of headings that sort, and of texts, which notebooks would put on the right."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of what is shown; a remark stands ``aside``, on stderr where a command writes it."""

    html: str
    text: str
    aside: bool = False


def say(text: str, /, *values: object, aside: bool = False) -> Part:
    """Show a sentence with its values."""
    said = _(Message(text, *values) if values else text)
    return Part(f"<p>{escape(said)}</p>", said, aside)


def figures(heading: str, facts: Mapping[str, object], below: str = "") -> Part:
    """Show figures with their labels under a heading, and a sentence below."""
    named = {_numbered(label, value): worded(value) for label, value in facts.items()}
    heading, below = _(heading), _(below)
    if any(isinstance(value, str) for value in facts.values()):
        text = "\n".join([heading, *(f"  {label}: {value}" for label, value in named.items())])
    else:
        text = f"{heading}: {', '.join(f'{value} {label}' for label, value in named.items())}"
    under = f"<p>{escape(below)}</p>" if below else ""
    return Part(_html(heading, named, [named.values()]) + under, f"{text}\n{below}" if below else text)


def _numbered(label: str, value: object) -> str:
    """Return a label, a plural, in the number of its figure, where the language has one for it."""
    number = value if isinstance(value, int) else 1
    one, said = label.removesuffix("s") if value == 1 else label, _(label)
    found = current_language().translations.ngettext(one, label, number)
    return found if said == label else next((each for each in (found, _(one)) if each != one), said)


def table(heading: str, columns: Sequence[str], rows: Iterable[Sequence[object]], total: int = 0) -> Part:
    """Show the first rows of a table; ``total`` tells how many there are where ``rows`` holds fewer."""
    rows = [*rows]
    cells = [[worded(value).replace("\n", ", ") for value in row] for row in rows]
    heading = _(heading)
    if not cells:
        return Part(f"<p><b>{escape(heading)}</b>: {_('none')}</p>", f"\n{heading}: {_('none')}")
    total, shown, names = max(total, len(cells)), rows[:IN_A_NOTEBOOK], [_(name) for name in columns]
    number = _number(len(shown), total)
    lines = [f"\n{heading} ({worded(total)})", *(f"  {line}" for line in aligned([names, *cells[:AS_TEXT]]))]
    if total > AS_TEXT:
        lines.append(_(Message("... and {:,} more; --json lists all of them", total - AS_TEXT)))
    return Part(_html(f"{heading} ({number})", names, shown, ' class="sortable texts"'), "\n".join(lines))


def links(heading: str, paths: Sequence[Path]) -> Part:
    """Show files that were written, as links that a file browser around the notebook opens."""
    html = ", ".join(f'<a href="{escape(quote(os.path.relpath(each)))}">{escape(str(each))}</a>' for each in paths)
    return Part(f"<p>{escape(_(heading))}: {html}</p>", f"{_(heading)}: {', '.join(map(str, paths))}")


def remark(subject: str, text: str, /, *values: object) -> Part:
    """Show a sentence with its values about a subject."""
    subject, said = _(subject), say(text, *values).text
    return Part(f"<p><b>{escape(subject)}</b>: {escape(said)}</p>", f"{subject}: {said}", aside=True)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a line for each row, with columns of one width; numbers are right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if cell.strip("-").replace(",", "").replace(".", "").isdigit() else cell.ljust(width)
            for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


def worded(value: object) -> str:
    """Return a value as people read it, and nothing for one that is not known."""
    short = round(value, 1) if isinstance(value, float) else value
    return current_language().worded(short, current_zone())


def _number(shown: int, total: int) -> str:
    return worded(shown) + (f" / {worded(total)}" if total > shown else "")


def _html(heading: str, columns: Iterable[str], rows: Iterable[Iterable[object]], kind: str = "") -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(map(_td, row))}</tr>" for row in rows)
    rows = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f"<h4>{escape(heading)}</h4><table{kind}>{rows}</table>"


def _td(value: object) -> str:
    """Return a cell, with the number that sorts it."""
    by = value.toordinal() if isinstance(value, date) else value
    by = value.timestamp() if isinstance(value, datetime) else by
    order = f' data-value="{by}"' if isinstance(by, (int, float)) and by == by else ""
    return f"<td{order}>{escape(worded(value))}</td>"


def _as_json(value: Any) -> Any:
    """Return a document with its ids, paths, days and moments as texts."""
    if isinstance(value, Mapping):
        return {key: _as_json(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_json(each) for each in value]
    if value is None or isinstance(value, (str, int, float)):
        return value
    return json_text(value)


def json_text(value: object) -> str:
    """Return what JSON holds of a value for which it has no type of its own; moments in the zone of reports."""
    value = value.astimezone(current_zone()) if isinstance(value, datetime) else value
    return value.isoformat() if isinstance(value, date) else str(value)


@dataclass(frozen=True, repr=False)
class Shown(Generic[T]):
    """The result of a call: it shows itself in a notebook, and ``print`` gives its text.

    Attributes:
        result: the value, with all its counts.
        parts: what is shown of it.
        document: what the command prints with ``--json``.
        needs_attention: whether a person has to look at it.
    """

    result: T
    parts: Sequence[Part]
    document: Mapping[str, Any] = field(default_factory=dict)
    needs_attention: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "document", _as_json(self.document))

    @cached_property
    def rejected(self) -> pd.DataFrame:
        """The rows that were refused as they were given, with ``line`` and ``errors``, all of them texts.

        Corrected there, they can be given back as they are: the two columns are ignored then.
        """
        import pandas as pd
        import pyarrow as pa

        from toolkit.intake.sources import any_cell, source_of, unescape
        from toolkit.intake.tables import DelimitedText

        found: list[pd.DataFrame] = []
        for file in map(Path, self.document.get("rejectedFiles", ())):
            if file.suffix == ".csv":  # the workbook beside it holds the same
                table = DelimitedText(source_of(file), any_cell)
                for chunk in table.chunks():
                    columns = pa.Table.from_arrays([*map(unescape, chunk.columns)], names=[*table.layout.headings])
                    found.append(columns.to_pandas(types_mapper=pd.ArrowDtype))
        if found:
            return pd.concat(found, ignore_index=True)
        rows = [
            (str(row["line"]), "; ".join(f"{each['field']}: {each['message']}" for each in row["errors"]))
            for row in self.document.get("rejectedRows", ())
        ]
        return pd.DataFrame(rows, columns=["line", "errors"])

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:  # noqa: ARG002
        return bundle(self.parts, self.document, needs_attention=self.needs_attention)

    def __repr__(self) -> str:
        return text_of(self.parts)


@cache
def _sorting() -> str:
    """Return what makes the tables of an output sort at a click; where it may not run, they are whole still.

    It is the script of the report's page, 3 KB beside each output: itables puts a megabyte into each notebook, its
    rows are read by its script alone, and paper shows ten of them.
    """
    from toolkit.reports.page import TABLE_SCRIPT, asset

    run = 'document.currentScript.parentElement.querySelectorAll("table.sortable").forEach(makeSortable);'
    return f"<style>{_SORTED}</style><script>(() => {{{asset(TABLE_SCRIPT)}{run}}})();</script>"


def sort_frames() -> None:
    """Have this notebook show DataFrames with their first rows, sorted at a click, where it is one."""
    if (shell := notebook_shell()) is not None:
        shell.display_formatter.formatters["text/html"].for_type_by_name("pandas", "DataFrame", frame_html)


def frame_html(frame: pd.DataFrame) -> str:
    """Return the first rows of a DataFrame as a table that is sorted at a click, and how many there are."""
    import pandas as pd

    shown = frame.head(IN_A_NOTEBOOK)
    with pd.option_context("display.max_colwidth", None):
        named = not isinstance(frame.index, pd.RangeIndex)
        markup = shown.to_html(classes="sortable", border=0, sparsify=False, index=named)
    return f"{markup}<p>({_number(len(shown), len(frame))})</p>{_sorting()}"


def text_of(parts: Iterable[Part]) -> str:
    """Return the text of what is shown."""
    return "\n".join(each.text for each in parts if each.text)


def bundle(parts: Sequence[Part], document: Mapping[str, Any], *, needs_attention: bool) -> dict[str, Any]:
    """Return what a notebook shows and keeps: the parts, and the numbers of the document."""
    markup = "".join(each.html for each in parts)
    return {
        "text/html": markup + (_sorting() if "<table class" in markup else ""),
        "text/plain": text_of(parts),
        RESULT_TYPE: {**_numbers(document), "needsAttention": needs_attention},
    }


def _numbers(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers and codes of a document: no text, which may be about a person.

    The lengths of its lists stand apart: the list ``missing`` has a row for each type, not for each missing piece.
    """
    lists = {str(name): len(value) for name, value in document.items() if isinstance(value, (list, tuple))}
    inner = {str(name): _numbers(value) for name, value in document.items() if isinstance(value, Mapping)}
    numbers = {str(name): value for name, value in document.items() if isinstance(value, (int, Enum))}
    return numbers | inner | ({"lists": lists} if lists else {})
