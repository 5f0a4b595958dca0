"""Refuse to write observations where most of what was known is gone at once.

A mistyped bucket, a policy that hides rows, a mapping with a wrong filter: each looks as if everything had been
deleted. What is taken over then stands in the history for ever, so somebody has to confirm it.
"""

from dataclasses import dataclass
from typing import Final

from toolkit.errors import MassDisappearance

FEW: Final = 10
"""The number that may always be gone."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The share of what is known that may be gone at once, in percent, and whether more was ``confirmed``."""

    percent: int = 50
    confirmed: bool = False

    def check(self, gone: int, known: int, what: str) -> None:
        """Make sure that not too many are gone.

        Raises:
            MassDisappearance: with the numbers, and what to do.
        """
        if not self.confirmed and gone > FEW and gone * 100 > known * self.percent:
            raise MassDisappearance(
                f"{gone:,} of the {known:,} {what} that were known are gone at once. Nothing was written. Check "
                "that this is the right database and bucket, and that their rows and objects are not hidden; if "
                "they are really gone, run it again with --confirm-disappearance."
            )
