"""Judge all sales on PostgreSQL, in the transaction of a connection.

Ibis only compiles. The judged sales go into a temporary table, and what is asked of them comes out as columns. A
session that can write nothing (a replica, a read-only role) has no temporary tables: there the judged sales are
streamed into DuckDB, in the memory of this process, and asked there.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Final

import ibis
import pandas as pd
import sqlalchemy as sa
from ibis import Table
from ibis.expr import operations as ops
from sqlalchemy import Connection

from toolkit.domain.integrity import IntegrityFinding
from toolkit.domain.versions import rules_fingerprint
from toolkit.operations.judge.audit.census import census
from toolkit.operations.judge.audit.engines import duckdb_engine
from toolkit.operations.judge.audit.expression import missing_evidence
from toolkit.operations.judge.audit.observed import evidences_at, objects_at, sales_at, unbound
from toolkit.storage import tables
from toolkit.storage.database import raw, writes_nothing
from toolkit.storage.frames import read_arrow, stream_arrow, streamed

AUDITED: Final = "audited_sales"
"""The temporary table of the sales that were judged."""

_LITTLE_MEMORY: Final = """
    SELECT set_config('work_mem', CAST(least(CAST(setting AS bigint), 32768) AS text), true)
    FROM pg_settings WHERE name = 'work_mem'
"""
"""At most 32 MB: with more, the planner has each parallel worker read all records, for a part of the sales."""

_ANY_MOMENT: Final = datetime(1999, 12, 31, tzinfo=UTC)
"""Stands in the compiled statement for the moment that is asked for."""

_BROUGHT: Final = ("sale_id", "client_id", "utility_group", "partner", "missing", "problems")


@dataclass(frozen=True)
class Judged:
    """The judged sales and the clients (``id``, ``cpf``) as tables, and how queries over them are answered."""

    sales: Table
    clients: Table
    read: Callable[[Table], pd.DataFrame]

    def census(self) -> pd.DataFrame:
        """Return the census of all sales, see ``toolkit.operations.judge.audit.census``."""
        return self.read(census(self.sales))


def judging(moment: datetime) -> Table:
    """Return the judgement of all sales as of a moment, over the tables of the database."""
    return missing_evidence(sales_at(moment), evidences_at(moment), objects_at(moment), moment)


def judging_sql(moment: datetime) -> str:
    """Return the same as a statement; the rules are compiled once, which takes longer than to judge few sales."""
    compiled = in_sql(_judging(rules_fingerprint()))
    return compiled.replace(_ANY_MOMENT.isoformat(), moment.astimezone(UTC).isoformat())


def audited() -> Table:
    """Return the table ``AUDITED`` of sales that were judged here."""
    return ibis.table(_judging(rules_fingerprint()).schema(), name=AUDITED)


@lru_cache(maxsize=1)
def _judging(_rules: str) -> Table:
    return judging(_ANY_MOMENT)


def clients() -> Table:
    """Return the ids and CPFs of the clients, whatever else their table has."""
    return unbound(tables.clients, "id", "cpf")


@contextmanager
def judged_at(connection: Connection, moment: datetime) -> Iterator[Judged]:
    """Judge the sales as of a moment."""
    if not writes_nothing(connection):
        put_audited(connection, judging_sql(moment))
        yield Judged(audited(), clients(), partial(in_postgres, connection))
        return
    connection.execute(sa.text(_LITTLE_MEMORY))
    with duckdb_engine() as engine:

        def taken(table: Table, statement: str) -> Table:
            query = _listed(table.columns, statement)
            schema = table.schema().to_pyarrow()
            with streamed(stream_arrow(connection, query, schema), schema) as rows:
                return engine.taken(rows)

        sales, people = taken(audited(), judging_sql(moment)), taken(clients(), in_sql(clients()))
        yield Judged(sales, people, lambda query: engine.read(query).to_pandas())


def put_audited(connection: Connection, statement: str) -> None:
    """Put the rows of a statement that judges into the table ``AUDITED``."""
    connection.execute(sa.text(_LITTLE_MEMORY))
    raw(connection).execute(f"CREATE TEMPORARY TABLE {AUDITED} ON COMMIT DROP AS {statement}")


def sales_of(judged: Judged, findings: Iterable[IntegrityFinding]) -> pd.DataFrame:
    """Return partner and utility group of the sales that these findings about files concern."""
    wanted = sorted({sale_id for finding in findings for sale_id in finding.sale_ids})
    if not wanted:
        return pd.DataFrame(columns=["sale_id", "partner", "utility_group"], dtype=object)
    concerned = judged.sales.filter(judged.sales.sale_id.isin(wanted))
    return judged.read(concerned.select("sale_id", "partner", "utility_group")).astype(object)


def bring(connection: Connection, sales: pd.DataFrame) -> None:
    """Put sales that were judged elsewhere into the table ``AUDITED``, as far as they have findings."""
    columns = ", ".join(f"{name} text" for name in _BROUGHT)
    driver = raw(connection)
    driver.execute(f"CREATE TEMPORARY TABLE {AUDITED} ({columns}) ON COMMIT DROP")
    found = sales[list(_BROUGHT)].astype(object)
    with driver.cursor() as cursor, cursor.copy(f"COPY {AUDITED} FROM STDIN") as copy:
        for row in found.where(found.notna(), None).itertuples(index=False, name=None):
            copy.write_row(row)


def in_postgres(connection: Connection, query: Table) -> pd.DataFrame:
    """Return the rows of a query over tables that the connection sees."""
    found: pd.DataFrame = read_arrow(connection, in_sql(query), query.schema().to_pyarrow()).to_pandas()
    return found


def in_sql(query: Table) -> str:
    """Return the query as PostgreSQL reads it; one that was asked for lately is not compiled again."""
    return _compiled(query.op())


@lru_cache(maxsize=32)
def _compiled(query: ops.Node) -> str:
    return str(ibis.to_sql(query.to_expr(), dialect="postgres"))


def _listed(columns: Iterable[str], statement: str) -> str:
    """Return the statement with these columns alone; Ibis asks a table of more columns for all of them."""
    return f"SELECT {', '.join(columns)} FROM ({statement}) AS found"  # noqa: S608  # our own columns
