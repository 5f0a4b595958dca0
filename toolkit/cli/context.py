"""The parts that all commands share: exit statuses, environment and application context, and paths."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from toolkit.errors import InvalidInput
from toolkit.kit.process import signed_in_account
from toolkit.kit.spoken import parse_timestamp
from toolkit.message import Message

if TYPE_CHECKING:  # what `toolkit --help` does without
    from toolkit.contract.people import Unmasking
    from toolkit.kit.context import ApplicationContext
    from toolkit.progress import Progress
    from toolkit.settings import Settings

DONE: Final = 0
FAILED: Final = 1
WRONG_USAGE: Final = 2
NEEDS_ATTENTION: Final = 3


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
        from toolkit.kit.context import ApplicationContext

        return ApplicationContext(self.settings)

    @property
    def progress(self) -> Progress:
        """A bar on stderr, unless the caller wants quiet."""
        from toolkit.kit.spoken import ProgressBar
        from toolkit.progress import Quiet

        return Quiet() if self.quiet else ProgressBar(sys.stderr)

    def now(self) -> datetime:
        """Return the time on the clock of the application."""
        return self.application.clock()

    def today(self) -> date:
        """Return the day in the time zone of the settings."""
        return self.now().astimezone(self.settings.timezone).date()

    def past_moment(self, text: str, hint: str) -> datetime:
        """Return the moment that the option or argument ``hint`` names.

        Raises:
            click.BadParameter: it is no past moment.
        """
        try:
            return parse_timestamp(text, timezone=self.settings.timezone, now=self.now())
        except InvalidInput as error:
            raise click.BadParameter(error.message, param_hint=hint) from None

    def close(self) -> None:
        """Close what was opened."""
        if "application" in self.__dict__:
            self.application.close()


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


pass_context = click.make_pass_decorator(Context)


def unmasking_for(asked: bool, reason: str, option: str) -> Unmasking | None:
    """Return the unmasking that ``option`` asks for, by whoever is signed in.

    Raises:
        click.BadParameter: it is asked for without a reason.
    """
    from toolkit.contract.fields import required_text
    from toolkit.contract.people import Unmasking

    if not asked:
        return None
    try:
        return Unmasking(signed_in_account(), required_text(reason))
    except ValueError:
        raise click.BadParameter(Message("is needed with {}: say why.", option), param_hint="--reason") from None
