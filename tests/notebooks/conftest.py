"""Notebooks whose cells this process executes, which takes a fraction of a kernel's time."""

import sys

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config


@pytest.fixture(scope="module")
def only_shell():
    """The one shell that a process may have; it takes the place of ``__main__``, which other tests need again."""
    main = sys.modules["__main__"]
    yield InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    InteractiveShell.clear_instance()
    sys.modules["__main__"] = main


@pytest.fixture
def shell(only_shell):
    """The shell that a kernel executes cells with; what a test executed is forgotten."""
    yield only_shell
    only_shell.reset()


@pytest.fixture
def executed_here(shell):
    """Execute the cells of a notebook as a kernel does; the notebook that is returned displays the same."""

    def executed(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
        shell.reset()
        with capture_output() as captured:
            for cell in notebook.cells:
                if cell.cell_type == "code":
                    shell.run_cell(cell.source, store_history=True).raise_error()
        shown = [nbformat.v4.new_output("display_data", each.data) for each in captured.outputs]
        cells = [nbformat.v4.new_code_cell(outputs=shown)]
        return nbformat.v4.new_notebook(cells=cells, metadata=notebook.metadata)

    return executed
