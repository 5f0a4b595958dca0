"""The console script, also as ``python -m toolkit``."""

import sys
from typing import Final

_INTERRUPTED: Final = 130


def run() -> None:
    """Run the command that the arguments name, and exit with its status."""
    try:
        from toolkit.cli import main

        status = main(sys.argv[1:])
    except KeyboardInterrupt:
        status = _INTERRUPTED
    sys.exit(status)


if __name__ == "__main__":
    run()
