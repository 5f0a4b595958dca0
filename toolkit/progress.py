"""The interface by which a long job reports its progress."""

from typing import Protocol


class Progress(Protocol):
    """One task after another: ``begin``, then ``advance`` as often as needed, then ``end``."""

    def begin(self, task: str, total: int | None, unit: str) -> None:
        """Start a task of ``total`` units (``None``: not known)."""

    def advance(self, count: int) -> None:
        """Note that ``count`` more units are done."""

    def end(self) -> None:
        """Finish the task that was begun last."""


class Quiet:
    """Shows no progress."""

    def begin(self, task: str, total: int | None, unit: str) -> None:
        """Say nothing."""

    def advance(self, count: int) -> None:
        """Say nothing."""

    def end(self) -> None:
        """Say nothing."""
