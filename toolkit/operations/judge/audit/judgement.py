"""Judge all sales on PostgreSQL, in the transaction of a connection.

Ibis only compiles. The judged sales go into a temporary table, and what is asked of them comes out as columns. A
session that can write nothing (a replica, a read-only role) has no temporary tables: there the judged sales are
streamed into DuckDB, in the memory of this process, and asked there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

import ibis
import pandas as pd
from ibis import Table
from sqlalchemy import Connection

from toolkit.operations.judge.audit.engines import duckdb_engine
from toolkit.operations.judge.audit.expression import missing_evidence
from toolkit.operations.judge.audit.observed import evidences_at, objects_at, sales_at, unbound
from toolkit.storage import tables
from toolkit.storage.database import raw, writes_nothing
from toolkit.storage.frames import read_arrow, stream_arrow

_AUDITED: Final = "audited_sales"


@dataclass(frozen=True)
class Judged:
    """The judged sales and the clients (``id``, ``cpf``) as tables, and how queries over them are answered."""

    sales: Table
    clients: Table
    read: Callable[[Table], pd.DataFrame]


@contextmanager
def judged_at(connection: Connection, moment: datetime) -> Iterator[Judged]:
    """Judge the sales as of a moment."""
    judged = missing_evidence(sales_at(moment), evidences_at(moment), objects_at(moment), moment)
    clients = unbound(tables.clients, "id", "cpf")
    if not writes_nothing(connection):
        raw(connection).execute(f"CREATE TEMPORARY TABLE {_AUDITED} ON COMMIT DROP AS {_sql(judged)}")
        yield Judged(ibis.table(judged.schema(), name=_AUDITED), clients, partial(_read, connection))
        return
    with duckdb_engine() as engine:
        sales, people = (
            engine.taken(stream_arrow(connection, _sql(query), query.schema().to_pyarrow()), query.schema())
            for query in (judged, clients)
        )
        yield Judged(sales, people, lambda query: engine.read(query).to_pandas())


def _read(connection: Connection, query: Table) -> pd.DataFrame:
    found: pd.DataFrame = read_arrow(connection, _sql(query), query.schema().to_pyarrow()).to_pandas()
    return found


def _sql(query: Table) -> str:
    return str(ibis.to_sql(query, dialect="postgres"))
