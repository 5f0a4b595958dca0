"""DuckDB in this process, within a limit of memory, and the texts of its statements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from toolkit.errors import EngineUnavailable

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

DEFAULT_MEMORY: Final = "500MB"
"""The memory of DuckDB, where nothing else is set; the process needs some 400 MB more."""

_GROUP_ROWS: Final = 20_480
"""Rows that a reader of a file unpacks at once: a sixth of what DuckDB takes, and the file grows by 2 %."""

PIECE: Final = 1 << 16  # rows that are read and written at once, where not all can be: some 25 MB


@contextmanager
def duckdb_session(
    scratch: Path | str | None = None, memory: str = DEFAULT_MEMORY
) -> Iterator[DuckDBPyConnection]:
    """DuckDB with a limit of memory (such as ``1GB``), spilling into ``scratch``, or a folder of its own.

    Raises:
        EngineUnavailable: the memory, or the disk under ``scratch``, does not suffice.
    """
    import duckdb

    try:
        with (
            nullcontext(scratch) if scratch else TemporaryDirectory() as scratch,
            duckdb.connect(config={"memory_limit": memory, "temp_directory": str(scratch)}) as connection,
        ):
            connection.execute("SET TimeZone = 'UTC'")
            with suppress(duckdb.InvalidInputException):  # where ipywidgets is not installed there is no bar
                connection.execute("SET enable_progress_bar = false")
            yield connection
    except duckdb.OutOfMemoryException:
        raise EngineUnavailable(
            "DuckDB needs more than {} of memory; give it more by TOOLKIT_ENGINE_MEMORY, or use a cluster.", memory
        ) from None
    except (duckdb.IOException, duckdb.FatalException) as error:
        # DuckDB puts its own words before those of the system about a file, and closes a JSON text behind them.
        reason = str(error).splitlines()[0].rpartition(": ")[2].partition('"')[0].strip().rstrip(".")
        raise EngineUnavailable("DuckDB cannot write below {}: {}.", scratch, reason) from None


def files_alone(paths: Sequence[Path | str]) -> str:
    """Return the arguments with which DuckDB reads these files alone, and their own columns alone.

    Otherwise it takes the name of a folder for a pattern, which other files match too, and a folder called
    ``partner=Norte`` for the values of a column, in place of those in the files.
    """
    listed = (quoted(re.sub(r"[\[*?]", r"[\g<0>]", str(path))) for path in paths)
    return f"[{', '.join(listed)}], hive_partitioning = false"


def quoted(text: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def copy_to(query: str, place: Path | str) -> str:
    """Return the statement with which DuckDB writes a query as one Parquet file."""
    how = f"FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE {_GROUP_ROWS}"
    return f"COPY ({query}) TO {quoted(str(place))} ({how})"


def write_in_turn(tables: Iterable[pa.Table], schema: pa.Schema, place: Path | str) -> None:
    """Write the rows of tables, one table after the other, as one Parquet file, in groups of one size."""
    import pyarrow.parquet as pq

    rows = schema.empty_table()
    with pq.ParquetWriter(place, schema, compression="zstd", compression_level=1) as writer:
        for table in tables:
            rows = pa.concat_tables([rows, table.cast(schema)])
            while rows.num_rows >= _GROUP_ROWS:
                writer.write_table(rows.slice(0, _GROUP_ROWS))
                rows = rows.slice(_GROUP_ROWS)
        if rows.num_rows:
            writer.write_table(rows)
