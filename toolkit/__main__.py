"""``python -m toolkit``, the same as the console script."""

from toolkit.faces.cli import run

run()
