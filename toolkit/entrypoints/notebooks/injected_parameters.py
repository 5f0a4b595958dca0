"""Refuse, in the kernel, a parameter that the notebook does not have.

papermill only warns of it and goes on with the defaults. But it writes the values that it was given into a cell of
their own behind the parameters cell, and the kernel keeps the source of every cell that it executed.
"""

import ast
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from IPython.core.getipython import get_ipython

from toolkit.errors import SettingsError

_MARK: Final = "# Parameters"
"""The first line of the cell that papermill writes."""


def refuse_unknown_parameters() -> None:
    """Refuse what papermill set and no cell before it did; nothing to do outside a notebook.

    Raises:
        SettingsError: naming the parameter, and the one that was probably meant.
    """
    shell = get_ipython()
    if shell is None:
        return
    unknown, known = _unknown_names(shell.user_ns.get("In", ()))
    if unknown:
        near = get_close_matches(unknown[0], known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise SettingsError(
            f"This notebook has no parameter {unknown[0]!r}.{hint} It has: {', '.join(known) or 'none'}"
        )


def _unknown_names(executed: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the names that the last cell of papermill's sets beyond those of the cells before it, and these."""
    written = [number for number, source in enumerate(executed) if source.partition("\n")[0].strip() == _MARK]
    if not written:
        return [], []
    known = list(dict.fromkeys(name for source in executed[: written[-1]] for name in _assigned(source)))
    return [name for name in _assigned(executed[written[-1]]) if name not in known], known


def _assigned(source: str) -> list[str]:
    try:
        nodes = ast.walk(ast.parse(source))
    except SyntaxError:  # a magic, or a cell that failed
        return []
    return [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
