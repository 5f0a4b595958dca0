"""The parts that all commands share: exit statuses, the kit, kinds of options, and how a result is printed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

import click

from toolkit.cli.printing import note, print_json, show
from toolkit.errors import InvalidInput
from toolkit.message import Message

if TYPE_CHECKING:  # what `toolkit --help` does without
    from toolkit.kit.audits import AuditResult
    from toolkit.kit.connection import Kit
    from toolkit.kit.shown import Shown

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

_KIT: Final = "toolkit.kit"


def pass_kit(command: Callable[Concatenate[Kit, P], R]) -> Callable[P, R]:
    """Give a command the kit of this call, which is closed at its end."""

    @wraps(command)
    def with_kit(*args: P.args, **given: P.kwargs) -> R:
        from toolkit.kit.connection import Kit
        from toolkit.kit.spoken import ProgressBar

        root = click.get_current_context().find_root()
        if _KIT not in root.meta:
            bar = None if root.params["quiet"] else ProgressBar(sys.stderr)
            root.meta[_KIT] = kit = Kit(environ=root.obj, progress=bar)
            root.call_on_close(kit.close)
        return command(root.meta[_KIT], *args, **given)

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
        super().__init__(path_type=Path, **rules)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path as click checks it.

        Raises:
            BadParameter: it is empty or holds a NUL character, or what click says of it.
        """
        if not str(value):
            self.fail("the path is empty.", param, ctx)
        if "\0" in str(value):
            self.fail("the path holds a NUL character.", param, ctx)
        return super().convert(value, param, ctx)
