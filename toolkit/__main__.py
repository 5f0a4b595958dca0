"""The console script, also as ``python -m toolkit``."""

import os
import sys


def run() -> None:
    """Run the command that the arguments name, and exit with its status."""
    try:
        from toolkit.cli import main

        status = main(sys.argv[1:], os.environ)
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)


if __name__ == "__main__":
    run()
