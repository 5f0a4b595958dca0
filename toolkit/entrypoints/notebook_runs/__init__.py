"""Run notebooks as a scheduler does: strict about parameters, to the end or not at all.

::

    parameters    the parameters cell, and the values that a run gives
    running       a run as a whole: the executed notebook, or what is left of one that failed
    executing     papermill with a time limit, and no kernel left behind
    failures      what is told of a notebook's errors
"""

import sys

# At its import jsonschema has a grammar of internationalised addresses compiled, which takes a second or two.
# It does without where there is none, and no notebook holds such an address in a field that is checked.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

from toolkit.entrypoints.notebook_runs.running import NotebookRun, run_notebook  # noqa: E402

__all__ = ["NotebookRun", "run_notebook"]
