"""Show progress in a notebook: one line that is renewed, and ends with the count and the time."""

import sys
import time
from html import escape
from typing import Final

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import DisplayHandle

from toolkit.entrypoints.progress_bar import ProgressBar
from toolkit.entrypoints.spoken import _, sentence, spoken
from toolkit.operations.progress import Progress

_EVERY: Final = 0.25
"""Seconds between two changes of the line."""


def cell_progress() -> Progress:
    """Return the progress of a cell; in a script, which has no cells, a bar on stderr."""
    return NotebookProgress() if InteractiveShell.initialized() else ProgressBar(sys.stderr)


class NotebookProgress:
    """A line for each task, in the output of the cell that runs."""

    def __init__(self) -> None:
        self._line: DisplayHandle | None = None

    def begin(self, task: str, total: int | None, unit: str) -> None:
        """Show a new line."""
        self.end()
        self._task, self._total, self._unit, self._done = sentence(task), total, _(unit), 0
        self._started = self._shown = time.monotonic()
        self._line = DisplayHandle()
        self._line.display(self._moving(), raw=True)

    def advance(self, count: int) -> None:
        """Renew the line, at most a few times a second."""
        self._done += count
        if self._line is not None and time.monotonic() - self._shown >= _EVERY:
            self._shown = time.monotonic()
            self._line.update(self._moving(), raw=True)

    def end(self) -> None:
        """Leave a line with the final count and time."""
        if self._line is not None:
            seconds = time.monotonic() - self._started
            done = "" if self._unit == "%" else f"{spoken().number(self._done)} {self._unit}, "
            text = f"{self._task}: {done}{seconds:.1f} s"
            self._line.update(_bundle(f"{escape(text)}", text), raw=True)
            self._line = None

    def _moving(self) -> dict[str, str]:
        number, share = spoken().number, f" ({spoken().percent(self._done / self._total)})" if self._total else ""
        text = f"{self._task}: {number(self._done)} {self._unit}{'' if self._unit == '%' else share}"
        size = f' value="{self._done}" max="{self._total}"' if self._total else ""
        return _bundle(f"<progress{size}></progress> {escape(text)}", text)


def _bundle(markup: str, text: str) -> dict[str, str]:
    return {"text/html": f'<div style="opacity:.75">{markup}</div>', "text/plain": text}
