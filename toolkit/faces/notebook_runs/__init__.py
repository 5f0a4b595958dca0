"""Run notebooks as a scheduler does: strict about parameters, to the end or not at all.

::

    parameters    the parameters cell, and the values that a run gives
    running       a run as a whole: the executed notebook, or what is left of one that failed
    executing     papermill with a time limit, and no kernel left behind
    failures      what is told of a notebook's errors
"""

from toolkit.faces.notebook_runs.running import NotebookRun, run_notebook

__all__ = ["NotebookRun", "run_notebook"]
