"""Print results on stdout and notes on stderr, for people, or as one JSON document for machines."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import click

from toolkit.kit.shown import json_text
from toolkit.kit.spoken import _, translate
from toolkit.message import Message

_TERMINAL_ORDER: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Characters that a terminal obeys instead of showing them, and those that no output can encode."""


def print_json(document: Mapping[str, Any], *, one_line: bool = False) -> None:
    """Print one JSON document on stdout, for machines."""
    indent = None if one_line else 2
    click.echo(plain(json.dumps(document, ensure_ascii=False, indent=indent, default=json_text)))


def show(text: str, /, *values: Any) -> None:
    """Print a line of the result on stdout, for people."""
    click.echo(plain(translate(Message(text, *values) if values else text)))


def note(text: str, /, *values: Any) -> None:
    """Print a line for people on stderr, apart from the results."""
    click.echo(plain(translate(Message(text, *values) if values else text)), err=True)


def plain(text: str) -> str:
    """Return the text with control characters escaped: names in files could otherwise steer the terminal.

    They are JSON's, so that a JSON document stays the same document.
    """
    return _TERMINAL_ORDER.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


_KEPT: Final = "\b\n"
"""What tells click to write the lines of a paragraph as they stand."""

_RULES: Final = re.compile("required|default")
"""The words that click writes behind the text of an option, in brackets."""


class Help(click.HelpFormatter):
    """Writes headings, texts, and the lines of commands and options in the reader's language."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the line that a command is called by."""
        super().write_usage(prog, args, prefix or f"{_('Usage:')} ")

    def write_heading(self, heading: str) -> None:
        """Write the heading of a section."""
        super().write_heading(_(heading))

    def write_text(self, text: str) -> None:
        """Write paragraphs: one with an indented line, such as an example, as it stands, and others wrapped."""
        found = text.split("\n\n")
        said = ("".join([_KEPT * ("\n " in each), *map(_, pieces(each))]) for each in found)
        super().write_text("\n\n".join(said))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write names, each with its line."""
        super().write_dl([(name, _line(about)) for name, about in rows], col_max, col_spacing)


def pieces(paragraph: str) -> list[str]:
    """Split a paragraph into the pieces that are translated: a heading such as ``Examples:``, and the rest."""
    heading, colon, rest = paragraph.partition(":\n")
    return [f"{heading}:", "\n", rest] if colon and "\n" not in heading else [paragraph]


def _line(about: str) -> str:
    text, bracket, rules = about.partition("  [")
    return _(text) + bracket + _RULES.sub(lambda word: _(word.group()), rules)
