"""The parts that all commands share: exit statuses, the kit, kinds of options, the printing of results and help.

Results go to stdout, notes to stderr: for people, or as one JSON document for machines.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

import click

from toolkit.errors import InvalidInput
from toolkit.kit.shown import Shown, json_text
from toolkit.kit.spoken import ProgressBar, _, current_language
from toolkit.message import Message

if TYPE_CHECKING:  # what `toolkit --help` does without
    from toolkit.kit.audits import AuditResult
    from toolkit.kit.connection import Kit

P = ParamSpec("P")
R = TypeVar("R")

DONE: Final = 0
FAILED: Final = 1
WRONG_USAGE: Final = 2
NEEDS_ATTENTION: Final = 3

json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")

confirm_disappearance = click.option(
    "--confirm-disappearance",
    "confirmed",
    is_flag=True,
    help="Accept that most sales, records or objects are gone at once.",
)


def pass_kit(command: Callable[Concatenate[Kit, P], R]) -> Callable[P, R]:
    """Give a command the kit of this call, which is closed at its end."""

    @wraps(command)
    def with_kit(*args: P.args, **given: P.kwargs) -> R:
        from toolkit.kit.connection import Kit

        root = click.get_current_context().find_root()
        bar = None if root.params["quiet"] else ProgressBar(sys.stderr)
        with Kit(environ=root.obj, progress=bar) as kit:
            return command(kit, *args, **given)

    return with_kit


def finish(result: Shown[Any] | AuditResult, as_json: bool = False) -> int:
    """Print a result, remarks on stderr, and return the exit status."""
    if as_json:
        print_json(result.document)
    for part in result.parts:
        if part.aside:
            note(part.text)
        elif part.text and not as_json:
            show(part.text)
    return NEEDS_ATTENTION if result.needs_attention else DONE


def shows(attention: int = NEEDS_ATTENTION) -> Callable[[Callable[..., Any]], Callable[..., int]]:
    """Print what a command returns, as JSON with ``--json``; it ends with ``attention`` where that is needed."""

    def decorate(command: Callable[..., Any]) -> Callable[..., int]:
        @json_option
        @pass_kit
        @wraps(command)
        def printed(kit: Kit, /, as_json: bool, **given: Any) -> int:
            return attention if finish(command(kit, **given), as_json) else DONE

        return printed

    return decorate


def past_moment(kit: Kit, text: str | None, hint: str) -> datetime | None:
    """Return the moment that the option or argument ``hint`` names, ``None`` where it is not given.

    Raises:
        click.BadParameter: it is no past moment.
    """
    try:
        return None if text is None else kit.moment(text or "?")
    except InvalidInput as error:
        raise click.BadParameter(error.message, param_hint=hint) from None


def reason_for(asked: bool, reason: str, option: str) -> str | None:
    """Return the reason for what ``option`` asks for, ``None`` where it is not asked for.

    Raises:
        click.BadParameter: there is no reason.
    """
    if asked and not reason.strip():
        raise click.BadParameter(Message("is needed with {}: say why.", option), param_hint="--reason")
    return reason if asked else None


class NonEmptyPath(click.Path):
    """A path that somebody named: an empty one would silently mean the current folder."""

    def __init__(self, **rules: Any) -> None:
        super().__init__(**{"path_type": Path, **rules})

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path as click checks it.

        Raises:
            BadParameter: it is empty or no text that every library can write to, or what click says of it.
        """
        if not str(value):
            self.fail("the path is empty.", param, ctx)
        if re.search("[\0\ud800-\udfff]" if param and param.name == "out" else "\0", str(value)):
            self.fail("the path holds a NUL character, or bytes that are not UTF-8.", param, ctx)
        return super().convert(value, param, ctx)


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
    click.echo(plain(_(Message(text, *values) if values else text)))


def note(text: str, /, *values: Any) -> None:
    """Print a line for people on stderr, apart from the results."""
    click.echo(plain(_(Message(text, *values) if values else text)), err=True)


def plain(text: str) -> str:
    """Return the text with control characters escaped: names in files could otherwise steer the terminal.

    They are JSON's, so that a JSON document stays the same document.
    """
    return _TERMINAL_ORDER.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


_KEPT: Final = "\b\n"  # what tells click to write the lines of a paragraph as they stand

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
        said = ("".join([_KEPT * ("\n " in each), *map(current_language().text, pieces(each))]) for each in found)
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
