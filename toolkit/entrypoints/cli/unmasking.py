"""Read the options that ask for unmasked personal data, which need a reason."""

import click

from toolkit.domain.fields import required_text
from toolkit.domain.masking import Unmasking
from toolkit.entrypoints.account import signed_in_account


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
