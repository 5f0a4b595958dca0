"""The console script, also as ``python -m toolkit``."""

import gc
import os
import sys
from typing import Final

_OBJECTS_BEFORE_A_LOOK: Final = 250_000
_INTERRUPTED: Final = 130


class _NoPandas:
    """Hides pandas while it stands among the finders of modules."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name=name)


def _arrow_without_pandas() -> None:
    """Have pyarrow go without pandas, which it imports at its first array: a third of the start of a load."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads spin while they wait for nothing
    import pyarrow as pa

    sys.meta_path.insert(0, _NoPandas())
    pa.array([])
    del sys.meta_path[0]


def run() -> None:
    """Run the command that the arguments name, and exit with its status."""
    # Loading the libraries makes very many objects that stay: collecting garbage among them takes a fifth of
    # a short command's time. The HTTP server lives for months, and would hold a sixth more memory.
    if "serve" not in sys.argv[1:]:
        gc.set_threshold(_OBJECTS_BEFORE_A_LOOK)
    if "load" in sys.argv[1:]:  # of clients or sales, whose tables never become those of pandas
        _arrow_without_pandas()
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
