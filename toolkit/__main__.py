"""The console script, also as ``python -m toolkit``."""

import gc
import sys
from typing import Final

_OBJECTS_BEFORE_A_LOOK: Final = 50_000
_INTERRUPTED: Final = 130


def run() -> None:
    """Run the command that the arguments name, and exit with its status."""
    # Loading the libraries makes very many objects that stay: collecting garbage among them takes a fifth of
    # a short command's time.
    gc.set_threshold(_OBJECTS_BEFORE_A_LOOK)
    try:
        from toolkit.entrypoints.cli import main

        status = main(sys.argv[1:])
    except KeyboardInterrupt:
        status = _INTERRUPTED
    if "duckdb" not in sys.modules:  # which reports what is not collected
        gc.freeze()  # nor is garbage looked for on the way out, which takes a quarter of a second
    sys.exit(status)


if __name__ == "__main__":
    run()
