"""The console script, also as ``python -m toolkit``."""

import os
import sys
from contextlib import suppress


def run() -> None:
    """Run the command that the arguments name, and exit with its status."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed: else a connection gets its number, and what is written to it
            setattr(sys, name, file := open(os.devnull, mode))  # noqa: PTH123, SIM115
            os.set_inheritable(file.fileno(), True)
    try:
        from toolkit.cli import main

        status = main(sys.argv[1:], os.environ)
    except KeyboardInterrupt:
        status = 130
    with suppress(OSError):  # what a full disk refused is not written again at the end
        sys.stdout.close()
    sys.exit(status)


if __name__ == "__main__":
    run()
