"""The texts of ``--help`` in the reader's language: of a command paragraph by paragraph, and of its options."""

import re
from collections.abc import Iterable
from typing import Final

import click

from toolkit.entrypoints.spoken import _

_KEPT: Final = "\b\n"
"""The line before a paragraph whose lines click does not wrap anew."""

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
        """Write paragraphs."""
        super().write_text("\n\n".join("".join(map(_, pieces(each))) for each in text.split("\n\n")))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write names, each with its line."""
        super().write_dl([(name, _line(told)) for name, told in rows], col_max, col_spacing)


def pieces(paragraph: str) -> list[str]:
    """Split a paragraph into the pieces that are translated: a heading such as ``Examples:``, and the rest."""
    mark = _KEPT if paragraph.startswith(_KEPT) else ""
    text = paragraph.removeprefix(mark)
    heading, colon, rest = text.partition(":\n")
    return [mark, f"{heading}:", "\n", rest] if colon and "\n" not in heading else [mark, text]


def _line(told: str) -> str:
    text, bracket, rules = told.partition("  [")
    return _(text) + bracket + _RULES.sub(lambda word: _(word.group()), rules)
