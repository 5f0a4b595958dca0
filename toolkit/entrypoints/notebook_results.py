"""Results of a notebook for programs: small JSON objects in its outputs, under a media type of their own.

A display of the toolkit puts its counts beside the table that people see; ``toolkit run --fail-on`` and
schedulers read them from the executed notebook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # nbformat takes longer to import than everything else that a kernel needs
    from nbformat import NotebookNode

RESULT_TYPE: Final = "application/vnd.evidence-toolkit+json"


def results_of(notebook: NotebookNode) -> tuple[dict[str, Any], ...]:
    """Return the results that an executed notebook holds, in the order of its cells."""
    return tuple(
        dict(output.data[RESULT_TYPE])
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if RESULT_TYPE in output.get("data", {})
    )
