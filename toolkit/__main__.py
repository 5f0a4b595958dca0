"""The console script, also as ``python -m toolkit``."""

import os
import sys
from contextlib import suppress


def run() -> None:
    """Run the command that the arguments name, and exit with its status."""
    try:
        from toolkit.cli import main

        status = main(sys.argv[1:], os.environ)
    except KeyboardInterrupt:
        status = 130
    with suppress(OSError, AttributeError):  # what a full disk refused is not written again at the end
        sys.stdout.close()
    sys.exit(status)


if __name__ == "__main__":
    run()
