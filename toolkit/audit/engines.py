"""The engines that judge an audit's inputs: DuckDB in this process, or a Spark server through Spark Connect.

An engine reads Parquet files as named tables, runs Ibis expressions over them and writes what they yield as
Parquet itself; what is told of the outputs it is asked in SQL. Both are the same on the two engines.
"""

from __future__ import annotations

import re
import socket
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import lru_cache
from logging import getLogger
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

import ibis
import pyarrow as pa
from duckdb import DuckDBPyConnection, OutOfMemoryException
from ibis import Table
from ibis.expr import operations as ops

from toolkit.audit.duckdb_session import PIECE, copy_to, files_alone, write_in_turn
from toolkit.audit.judge import AS_OF, SCHEMAS
from toolkit.errors import EngineUnavailable, InvalidInput

_PATTERN: Final = re.compile(r"[*?\[\]{}\\]")  # the signs that make a path a pattern, by Hadoop's rules

_SPARK_PORT: Final = 15002
_PATIENCE: Final = 10.0

RECORDS: Final = 1 << 19  # numbers of records whose files are found at once: all keys of sales are read each time

_RETRIES: Final = 5  # attempts to reach a server that died; the client's own fifteen take ten minutes
_BACKOFF: Final = 2000  # milliseconds between two attempts, at most


@lru_cache
def _compiled(query: Any, as_of: datetime | None) -> str:
    """Return a query as DuckDB's SQL, made once where no moment is in it: that takes longer than a small audit."""
    return str(ibis.to_sql(query.to_expr(), dialect="duckdb", params={AS_OF: as_of}))


class DuckdbEngine:
    """DuckDB in this process."""

    def __init__(self, session: DuckDBPyConnection) -> None:
        self.session = session
        self._files = dict[str, str]()

    def show(self, name: str, paths: Sequence[str]) -> None:
        """Make the rows of these files a table."""
        self._files[name] = files_alone(paths)
        self._show_some(name, "true")

    def write(self, query: Table, place: str, as_of: datetime) -> None:
        """Write one file; a query of records, in whose order its rows are, is asked about some after others.

        Where the memory does not suffice another one is done once more within half of it: joins that just fit one
        by one run out of the memory that they share; within less, each is spilled.
        """
        node = query.op()
        sql = _compiled(node, as_of if node.find(ops.ScalarParameter) else None)
        if any(each.name == "records" for each in node.find(ops.UnboundTable)):
            write_in_turn(self._by_records(sql), query.schema().to_pyarrow(), place)
            return
        try:
            self.session.execute(copy_to(sql, place))
        except OutOfMemoryException:
            [(limit,)] = self.session.execute("SELECT current_setting('memory_limit')").fetchall()
            number, unit = limit.split()
            self.session.execute(f"SET memory_limit = '{float(number) / 2} {unit}'")
            self.session.execute(copy_to(sql, place))

    def read(self, sql: str) -> pa.Table:
        """Return the rows of a query."""
        return self.session.sql(sql).to_arrow_table()

    def hand_over(self, name: str, sql: str, session: DuckDBPyConnection) -> None:
        """Make the rows of a query a table of the same session."""
        assert session is self.session
        session.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {sql}")

    def _by_records(self, sql: str) -> Iterator[pa.Table]:
        """Yield the rows of a query of records, some after others with what they name, as it fits into memory."""
        numbers = self.session.execute("SELECT coalesce(min(record), 0), coalesce(max(record), 0) FROM records")
        [(first, last)] = numbers.fetchall()
        for start in range(first // RECORDS * RECORDS, last + 1, RECORDS):
            self._show_some("records", f"record BETWEEN {start} AND {start + RECORDS - 1}")
            for name, key in (("objects", "object"), ("sales", "sale_id")):
                self._show_some(name, f"{key} IN (SELECT {key} FROM records)")
            for rows in self.session.sql(sql).to_arrow_reader(PIECE):
                yield pa.Table.from_batches([rows])
            for name in ("sales", "objects", "records"):
                self._show_some(name, "true")

    def _show_some(self, name: str, rows: str) -> None:
        files = self._files[name]
        self.session.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS FROM read_parquet({files}) WHERE {rows}")


@contextmanager
def spark_engine(url: str) -> Iterator[SparkEngine]:
    """Connect to Spark at ``url`` (``sc://host:port``), which must be able to read and write the audit's files.

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
            session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
            connection = ibis.pyspark.connect(session)
            connection.compiler = _compiler()
            stack.callback(session.client.set_retry_policies, [])  # a server that is gone is asked but once
            yield SparkEngine(session, connection)
        except PySparkException as error:
            raise _failed(url, str(error)) from None


class SparkEngine:
    """A Spark server, or a cluster."""

    def __init__(self, session: Any, connection: Any) -> None:
        self._session, self._connection = session, connection

    def show(self, name: str, paths: Sequence[str]) -> None:
        """Make the rows of these files a table."""
        from pyspark.sql.pandas.types import from_arrow_schema

        for path in paths:
            if found := _PATTERN.search(path):
                raise InvalidInput(
                    "Spark takes {} in a path for a pattern and would read other files, too: {}. Set "
                    "TOOLKIT_AUDITS to a place without it, or judge on DuckDB.",
                    found[0],
                    path,
                )
        columns = from_arrow_schema(SCHEMAS[name].to_pyarrow(), prefer_timestamp_ntz=False)
        reader = self._session.read.schema(columns)
        rows = reader.parquet(*paths) if paths else self._session.createDataFrame([], columns)
        rows.createOrReplaceTempView(name)

    def write(self, query: Table, place: str, as_of: datetime) -> None:
        """Write a folder of parts, on the server's side; some servers write none where there are no rows."""
        rows = self._session.sql(self._connection.compile(query, params={AS_OF: as_of}))
        rows.write.mode("overwrite").option("compression", "zstd").parquet(place)

    def read(self, sql: str) -> pa.Table:
        """Return the rows of a query."""
        return self._session.sql(sql).toArrow()

    def hand_over(self, name: str, sql: str, session: DuckDBPyConnection) -> None:
        """Bring the rows of a query into a session of DuckDB."""
        session.register(name, self.read(sql))


Engine = DuckdbEngine | SparkEngine


def _failed(url: str, words: str) -> EngineUnavailable:
    """Return what happened; the words of the transport, which go on for lines, say little to people."""
    if words.startswith("<_") or "RETRIES_EXCEEDED" in words:
        return EngineUnavailable(
            "Spark at {} stopped answering. Check that the server is up, and run this again.", url
        )
    if "S3AFileSystem" in words:
        return EngineUnavailable(
            "Spark at {} has no connector to S3. Start it with hadoop-aws in the version of its "
            "Hadoop, or set TOOLKIT_AUDITS to a folder that it sees.",
            url,
        )
    return EngineUnavailable("Spark at {} failed: {}", url, words.splitlines()[0][:200])


def _compiler() -> Any:
    """Return the compiler of Ibis for Spark with the function that it leaves out, although Spark has it."""
    from ibis.backends.sql.compilers.pyspark import PySparkCompiler

    class Compiler(PySparkCompiler):  # type: ignore[misc]  # Ibis has no types
        SIMPLE_OPS: ClassVar = {ops.BitOr: "bit_or"}

    return Compiler()


def _check_listens(url: str) -> None:
    """Fail in seconds where no server listens: the client would try again for many minutes."""
    place = urlsplit(url)
    try:
        socket.create_connection((place.hostname or "", place.port or _SPARK_PORT), timeout=_PATIENCE).close()
    except OSError:
        raise EngineUnavailable(
            "Spark at {} does not answer. Check TOOLKIT_SPARK_URL and that the server is up.", url
        ) from None
