"""Print results on stdout and notes on stderr, for people, or as one JSON document for machines."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final, TypeVar

import click

from toolkit.domain.documents import named
from toolkit.entrypoints.spoken import _, sentence

T = TypeVar("T")

SHOWN: Final = 20
"""Items that are shown to people where there are many."""

_TERMINAL_ORDER: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Characters that a terminal obeys instead of showing them, and those that no output can encode."""


json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")


def print_json(document: Mapping[str, Any], *, one_line: bool = False) -> None:
    """Print one JSON document on stdout, for machines."""
    indent = None if one_line else 2
    click.echo(plain(json.dumps(document, ensure_ascii=False, indent=indent, default=_as_text)))


def _as_text(value: object) -> str:
    return value.isoformat() if isinstance(value, (date, datetime)) else str(value)


def rejected_row(row: Any) -> dict[str, Any]:
    """Return the line of a rejected row and what is wrong with it, for a JSON document."""
    return {"line": row.line, "errors": [named(item, "field", "message") for item in row.invalid]}


def show(text: str) -> None:
    """Print a line of the result on stdout, for people."""
    click.echo(plain(sentence(text)))


def note(text: str) -> None:
    """Print a line for people on stderr, apart from the results."""
    click.echo(plain(sentence(text)), err=True)


def show_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under their headings, which are translated, in columns that are as wide as it takes."""
    for line in aligned([[*map(_, headings)], *rows]):
        show(line)


def aligned(rows: Sequence[Sequence[str]], *, numbers: range = range(0)) -> list[str]:
    """Return a line for each row, with columns of one width; those of ``numbers`` are right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if place in numbers else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def first_of(items: Sequence[T]) -> Iterator[T]:
    """Yield the first items, to be shown to people, and then note how many more there are."""
    yield from items[:SHOWN]
    if len(items) > SHOWN:
        note(f"... and {len(items) - SHOWN} more; --json lists all of them")


def plain(text: str) -> str:
    """Return the text with control characters escaped: names in files could otherwise steer the terminal.

    They are JSON's, so that a JSON document stays the same document.
    """
    return _TERMINAL_ORDER.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
