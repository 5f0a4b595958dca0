"""What every command shares: the environment, the workspace, and how results are printed."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import click

from toolkit.faces.progress import Bar
from toolkit.faces.workspace import Workspace
from toolkit.operations.progress import Progress, Quiet
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
        return Settings.from_environment(self.environ)

    @cached_property
    def workspace(self) -> Workspace:
        """The database and bucket, opened at first use."""
        return Workspace(self.settings)

    @property
    def progress(self) -> Progress:
        """A bar on stderr, unless the caller wants quiet."""
        return Quiet() if self.quiet else Bar(sys.stderr)

    def close(self) -> None:
        """Close what was opened."""
        if "workspace" in self.__dict__:
            self.workspace.close()


pass_context = click.make_pass_decorator(Context)


def print_json(document: Mapping[str, Any]) -> None:
    """One JSON document on stdout, for machines."""
    click.echo(json.dumps(document, ensure_ascii=False, indent=2, default=str))


def note(text: str) -> None:
    """A line for people on stderr, where it does not mix with results."""
    click.echo(text, err=True)
