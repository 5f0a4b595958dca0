"""Read the options that ask for unmasked personal data, which need a reason."""

from collections.abc import Callable
from typing import Any

import click

from toolkit.domain.fields import required_text
from toolkit.domain.masking import Unmasking
from toolkit.entrypoints.account import signed_in_account


def show_names_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that show the names of files; the command gets ``show_names`` and ``reason``."""
    names = click.option("--show-names", is_flag=True, help="Also show the names of the files; needs --reason.")
    reason = click.option(
        "--reason", default="", help="The reason for showing names; the custody log keeps it with your account."
    )
    return names(reason(command))


def unmasking_for(asked: bool, reason: str, option: str) -> Unmasking | None:
    """Return the unmasking that ``option`` asks for, by whoever is signed in.

    Raises:
        click.BadParameter: it is asked for without a reason.
    """
    if not asked:
        return None
    try:
        return Unmasking(signed_in_account(), required_text(reason))
    except ValueError:
        raise click.BadParameter(f"is needed with {option}: say why.", param_hint="--reason") from None
