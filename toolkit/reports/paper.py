"""A sheet of A4 to draw on, in inches from its top left corner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from toolkit.reports.charts import WIDTH, Segment
from toolkit.reports.palette import COLOURS, INK, LINE

WIDE: Final = 8.27
HIGH: Final = 11.69
MARGIN: Final = 0.7
INNER: Final = WIDE - 2 * MARGIN

SERIF: Final = "DejaVu Serif"


class Paper:
    """One sheet; ``y`` is where the next thing goes."""

    def __init__(self) -> None:
        self.figure = Figure(figsize=(WIDE, HIGH))
        self._axes = self.figure.add_axes((0, 0, 1, 1))
        self._axes.set_xlim(0, WIDE)
        self._axes.set_ylim(HIGH, 0)
        self._axes.axis("off")
        self.y = MARGIN

    @property
    def left(self) -> float:
        """Inches until the lower margin."""
        return HIGH - MARGIN - self.y

    def text(
        self,
        x: float,
        text: str,
        *,
        size: float = 8.5,
        colour: str = INK,
        bold: bool = False,
        family: str = "DejaVu Sans",
        align: Literal["left", "right"] = "left",
        y: float | None = None,
    ) -> None:
        """Write one line, its baseline at ``y``; whatever it holds is text and no formula."""
        self._axes.text(
            x,
            self.y if y is None else y,
            " ".join(text.split()),
            fontsize=size,
            color=colour,
            fontfamily=family,
            fontweight="bold" if bold else "normal",
            ha=align,
            va="baseline",
            parse_math=False,
        )

    def bar(self, x: float, width: float, height: float, segments: Sequence[Segment]) -> None:
        """Draw a stacked bar that stands on ``y``."""
        for segment in segments:
            start, length = x + width * segment.start / WIDTH, width * segment.length / WIDTH
            self.box(start, length, height, COLOURS[segment.code])

    def dot(self, x: float, code: str) -> None:
        """Draw a small square in the colour of a code, before its name."""
        self.box(x, 0.09, 0.09, COLOURS[code])

    def box(self, x: float, width: float, height: float, colour: str) -> None:
        """Fill a rectangle that stands on ``y``."""
        self._axes.add_patch(Rectangle((x, self.y - height), width, height, facecolor=colour, linewidth=0))

    def rule(self) -> None:
        """Draw a thin line across the sheet at ``y``."""
        self._axes.plot([MARGIN, WIDE - MARGIN], [self.y, self.y], color=LINE, linewidth=0.6)


def clipped(text: Any, length: int) -> str:
    """The text, shortened to so many characters."""
    plain = " ".join(str(text or "").split())
    return plain if len(plain) <= length else f"{plain[: length - 1]}…"
