"""The engines that judge a snapshot: DuckDB in this process, or a Spark server through Spark Connect.

An engine reads Parquet files and runs Ibis expressions; the audit's own expressions are the same on all of them.
"""

from __future__ import annotations

import re
import socket
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from logging import getLogger
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol
from urllib.parse import urlsplit

import ibis
import pyarrow as pa
from ibis import Table
from ibis.expr import operations as ops

from toolkit.errors import EngineUnavailable, InvalidInput
from toolkit.storage.duckdb_session import DEFAULT_MEMORY, duckdb_session, files_alone

_PATTERN: Final = re.compile(r"[*?\[\]{}\\]")
"""The signs that make a path a pattern, by Hadoop's rules."""

_SPARK_PORT: Final = 15002
_PATIENCE: Final = 10.0

_RETRIES: Final = 5
"""Attempts to reach a server that died; the client's own fifteen take ten minutes."""
_BACKOFF: Final = 2000
"""Milliseconds between two attempts, at most."""


class Engine(Protocol):
    """Runs Ibis expressions over Parquet files."""

    def parquet(self, paths: Sequence[str], schema: pa.Schema) -> Table:
        """Return the rows of these files."""

    def kept(self, query: Table) -> Table:
        """Return the rows of ``query``, computed once where the engine can keep them."""

    def read(self, query: Table) -> pa.Table:
        """Return the rows of ``query``, in its schema."""


@contextmanager
def duckdb_engine(scratch: Path | None = None, memory: str = DEFAULT_MEMORY) -> Iterator[DuckdbEngine]:
    """DuckDB with a limit of memory, as in ``duckdb_session``, which tells what it raises."""
    with duckdb_session(scratch, memory) as session:
        yield DuckdbEngine(ibis.duckdb.from_connection(session))


@contextmanager
def spark_engine(url: str) -> Iterator[Engine]:
    """Connect to Spark at ``url`` (``sc://host:port``), which must be able to read the snapshot's files.

    Raises:
        EngineUnavailable: the server does not answer, or it failed.
    """
    _check_listens(url)
    # PySpark writes each failed statement and where it was called to the standard error, which hides the sentence.
    getLogger("SQLQueryContextLogger").disabled = True
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # of pandas 3, whose results tests compare, and of its own retries
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
        from pyspark.sql.connect.client.retries import DefaultPolicy

        try:
            session = SparkSession.builder.remote(url).create()
            stack.callback(session.stop)  # which also ends the statement that runs
            session.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES, max_backoff=_BACKOFF)])
            session.conf.set("spark.sql.session.timeZone", "UTC")
            connection = ibis.pyspark.connect(session)
            connection.compiler = _compiler()
            engine = _SparkEngine(session, connection)
            stack.callback(engine.release)
            stack.callback(session.client.set_retry_policies, [])  # a server that is gone is asked but once
            yield engine
        except PySparkException as error:
            raise _told(url, str(error)) from None


def _told(url: str, words: str) -> EngineUnavailable:
    """Return what happened; the words of the transport, which go on for lines, say little to people."""
    if words.startswith("<_") or "RETRIES_EXCEEDED" in words:
        return EngineUnavailable(
            f"Spark at {url} stopped answering. Check that the server is up, and run this again."
        )
    if "S3AFileSystem" in words:
        return EngineUnavailable(
            f"Spark at {url} has no connector to S3. Start it with hadoop-aws in the version of its Hadoop, or "
            "export into a folder that it sees."
        )
    return EngineUnavailable(f"Spark at {url} failed: {words.splitlines()[0][:200]}")


def _compiler() -> Any:
    """Return the compiler of Ibis for Spark with the function that it leaves out, although Spark has it."""
    from ibis.backends.sql.compilers.pyspark import PySparkCompiler

    class Compiler(PySparkCompiler):  # type: ignore[misc]  # Ibis has no types
        SIMPLE_OPS: ClassVar = {ops.BitOr: "bit_or"}

    return Compiler()


class DuckdbEngine:
    """DuckDB in this process."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._tables = 0

    def parquet(self, paths: Sequence[str], schema: pa.Schema) -> Table:
        """Return the rows of these files."""
        if not paths:
            return ibis.memtable(schema.empty_table())
        name = self._named()
        self._connection.con.execute(f"CREATE VIEW {name} AS FROM read_parquet({files_alone(paths)})")
        return self._connection.table(name)

    def taken(self, rows: pa.RecordBatchReader) -> Table:
        """Stream these rows into a table of the engine."""
        name = self._named()
        self._connection.con.register("reader", rows)
        self._connection.con.execute(f"CREATE TABLE {name} AS SELECT * FROM reader")  # noqa: S608
        self._connection.con.unregister("reader")
        return self._connection.table(name)

    def kept(self, query: Table) -> Table:
        """Return the rows of ``query``, computed once."""
        # An attempt that failed may have left its table.
        return self._spilling(lambda: self._connection.create_table(self._named(), query))

    def read(self, query: Table) -> pa.Table:
        """Return the rows of ``query``."""
        return self._spilling(lambda: self._connection.to_pyarrow(query))

    def _named(self) -> str:
        """Return the name of one more table."""
        self._tables += 1
        return f"table_{self._tables}"

    def _spilling(self, work: Callable[[], Any]) -> Any:
        """Do the work; where the memory does not suffice, once more within half of it.

        Joins that just fit one by one run out of the memory that they share; within less, each is spilled.
        """
        from duckdb import OutOfMemoryException

        try:
            return work()
        except OutOfMemoryException:
            [memory] = self._connection.con.execute("SELECT current_setting('memory_limit')").fetchone()
            number, unit = memory.split()
            self._connection.con.execute(f"SET memory_limit = '{float(number) / 2} {unit}'")
            return work()


class _SparkEngine:
    def __init__(self, session: Any, connection: Any) -> None:
        self._session, self._connection = session, connection
        self._views = 0
        self._frames: list[Any] = []

    def parquet(self, paths: Sequence[str], schema: pa.Schema) -> Table:
        from pyspark.sql.pandas.types import from_arrow_schema

        for path in paths:
            if found := _PATTERN.search(path):
                raise InvalidInput(
                    f"Spark takes {found[0]} in a path for a pattern and would read other files, too: {path}. "
                    "Export to a place without it, or judge on DuckDB."
                )
        columns = from_arrow_schema(schema, prefer_timestamp_ntz=False)
        reader = self._session.read.schema(columns)
        return self._view(reader.parquet(*paths) if paths else self._session.createDataFrame([], columns))

    def kept(self, query: Table) -> Table:
        self._frames.append(self._frame(query).persist())
        return self._view(self._frames[-1])

    def read(self, query: Table) -> pa.Table:
        return self._frame(query).toArrow()

    def release(self) -> None:
        """Release what the server keeps, which would outlive the session, where the server is still there."""
        from pyspark.errors import PySparkException

        with suppress(PySparkException):
            for frame in self._frames:
                frame.unpersist()

    def _frame(self, query: Table) -> Any:
        return self._session.sql(self._connection.compile(query))

    def _view(self, frame: Any) -> Table:
        self._views += 1
        name = f"view_{self._views}"
        frame.createOrReplaceTempView(name)
        return self._connection.table(name)


def _check_listens(url: str) -> None:
    """Fail in seconds where no server listens: the client would try again for many minutes."""
    place = urlsplit(url)
    try:
        socket.create_connection((place.hostname or "", place.port or _SPARK_PORT), timeout=_PATIENCE).close()
    except OSError:
        raise EngineUnavailable(
            f"Spark at {url} does not answer. Check TOOLKIT_SPARK_URL and that the server is up."
        ) from None


def bound(query: Table, table_of: Callable[[str], Table]) -> Table:
    """Return the query with the tables of the database, by name, replaced by those of an engine."""
    replaced = {
        node: table_of(node.name).select(*node.schema.names).op() for node in query.op().find(ops.UnboundTable)
    }
    return query.op().replace(replaced).to_expr()
