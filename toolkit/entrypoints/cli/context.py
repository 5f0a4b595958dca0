"""The parts that all commands share: environment, application context, and printing of results."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from toolkit.entrypoints.spoken import sentence

if TYPE_CHECKING:  # what `toolkit --help` does without
    from toolkit.entrypoints.application_context import ApplicationContext
    from toolkit.operations.progress import Progress
    from toolkit.settings import Settings

DONE: Final = 0
FAILED: Final = 1
WRONG_USAGE: Final = 2
NEEDS_ATTENTION: Final = 3

_TERMINAL_ORDER: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Characters that a terminal obeys instead of showing them, and those that no output can encode."""


@dataclass(frozen=True)
class Context:
    """The environment of one call of the command line."""

    environ: Mapping[str, str]
    quiet: bool = False

    @cached_property
    def settings(self) -> Settings:
        """The settings that the environment gives."""
        from toolkit.settings import Settings

        return Settings.from_environment(self.environ)

    @cached_property
    def application(self) -> ApplicationContext:
        """The database and bucket, opened at first use."""
        from toolkit.entrypoints.application_context import ApplicationContext

        return ApplicationContext(self.settings)

    @property
    def progress(self) -> Progress:
        """A bar on stderr, unless the caller wants quiet."""
        from toolkit.entrypoints.progress_bar import ProgressBar
        from toolkit.operations.progress import Quiet

        return Quiet() if self.quiet else ProgressBar(sys.stderr)

    def now(self) -> datetime:
        """Return the time on the clock of the application."""
        return self.application.clock()

    def today(self) -> date:
        """Return the day in the time zone of the settings."""
        return self.now().astimezone(self.settings.timezone).date()

    def close(self) -> None:
        """Close what was opened."""
        if "application" in self.__dict__:
            self.application.close()


class Place(click.Path):
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


pass_context = click.make_pass_decorator(Context)


def print_json(document: Mapping[str, Any], *, one_line: bool = False) -> None:
    """Print one JSON document on stdout, for machines."""
    indent = None if one_line else 2
    click.echo(plain(json.dumps(document, ensure_ascii=False, indent=indent, default=_as_text)))


def _as_text(value: object) -> str:
    return value.isoformat() if isinstance(value, (date, datetime)) else str(value)


def show(text: str) -> None:
    """Print a line of the result on stdout, for people."""
    click.echo(plain(sentence(text)))


def note(text: str) -> None:
    """Print a line for people on stderr, apart from the results."""
    click.echo(plain(sentence(text)), err=True)


def plain(text: str) -> str:
    """Return the text with control characters escaped: names in files could otherwise steer the terminal.

    They are JSON's, so that a JSON document stays the same document.
    """
    return _TERMINAL_ORDER.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
