"""DuckDB in this process, within a limit of memory; what does not fit is spilled to the disk."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from psycopg import sql

from toolkit.errors import EngineUnavailable

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

DEFAULT_MEMORY: Final = "2GB"
"""The memory of DuckDB, where nothing else is set."""


@contextmanager
def duckdb_session(scratch: Path | None = None, memory: str = DEFAULT_MEMORY) -> Iterator[DuckDBPyConnection]:
    """DuckDB with a limit of memory (such as ``1GB``), spilling into ``scratch``, or, without one, nowhere.

    Raises:
        EngineUnavailable: the memory, or the disk under ``scratch``, does not suffice.
    """
    import duckdb

    database, spilled = (":memory:", "") if scratch is None else (str(scratch / "work.duckdb"), str(scratch))
    connection = duckdb.connect(database, config={"memory_limit": memory, "temp_directory": spilled})
    try:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET preserve_insertion_order = false")
        yield connection
    except duckdb.OutOfMemoryException:
        raise EngineUnavailable(
            f"DuckDB needs more than {memory} of memory; give it more by TOOLKIT_ENGINE_MEMORY, or use a cluster."
        ) from None
    finally:
        connection.close()


def files_alone(paths: Iterable[Path | str]) -> str:
    """Return the arguments with which a reader of DuckDB reads these files alone, and their own columns alone.

    Otherwise it takes the name of a folder for a pattern, which other files match too, and a folder called
    ``partner=Norte`` for the values of a column, in place of those in the files.
    """
    listed = (sql.Literal(re.sub(r"[\[*?]", r"[\g<0>]", str(path))).as_string() for path in paths)
    return f"[{', '.join(listed)}], hive_partitioning = false"
