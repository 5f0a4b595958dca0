"""Notebooks of a few cells, for tests that run them."""

import nbformat

_KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


def write_notebook(path, *sources, parameters=None):
    """A notebook of these cells, behind one of parameters where they are given."""
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    if parameters is not None:
        cells.insert(0, nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]}))
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": _KERNEL}), path)
    return path
