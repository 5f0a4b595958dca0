"""Show progress as a bar on a terminal."""

from typing import NoReturn, TextIO

from tqdm import tqdm

from toolkit.entrypoints.spoken import _, sentence


class ProgressBar:
    """Shows a bar for each task on ``stream``, only where that is a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._bar: tqdm[NoReturn] | None = None

    def begin(self, task: str, total: int | None, unit: str) -> None:
        """Show a new bar."""
        self.end()
        self._bar = tqdm(
            desc=sentence(task),
            total=total,
            unit=f" {_(unit)}",
            file=self._stream,
            disable=None,
            leave=False,
            unit_scale=True,
        )

    def advance(self, count: int) -> None:
        """Move the bar."""
        if self._bar is not None:
            self._bar.update(count)

    def end(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
