"""The interface by which a long job reports its progress."""


class Progress:
    """One task after another: ``begin``, ``advance`` as often as needed, ``end``; this one shows nothing."""

    def begin(self, task: str, total: int | None, unit: str) -> None:
        """Start a task of ``total`` units (``None``: not known)."""

    def advance(self, count: int) -> None:
        """Note that ``count`` more units are done."""

    def end(self) -> None:
        """Finish the task that was begun last."""
