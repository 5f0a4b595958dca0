"""Load the sales that another system exports as a file."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import sqlalchemy as sa
from psycopg import sql
from pydantic.alias_generators import to_camel
from sqlalchemy import Connection

from toolkit.domain.evidence import UtilityGroup
from toolkit.domain.sales import SaleRecord
from toolkit.errors import InvalidField
from toolkit.language import ENGLISH, Language
from toolkit.operations import Clock
from toolkit.operations.observe.service_history import OBSERVED, observe_sales
from toolkit.operations.progress import Progress, Quiet
from toolkit.operations.register.sales_file import COLUMNS, hand_back
from toolkit.operations.register.sales_verdicts import judge_sales
from toolkit.operations.spreadsheets import Table, read_table
from toolkit.operations.spreadsheets.named_columns import RejectedRow
from toolkit.storage.binary_copy import binary_rows, copy_binary
from toolkit.storage.database import Database, raw
from toolkit.storage.locks import Lock, take
from toolkit.storage.service_map.writing import require_writable
from toolkit.storage.tables import clients, sales


@dataclass(frozen=True, slots=True)
class DifferingSale:
    """A row that differs from the sale of the service in ``fields``; in none where the service lacks the sale."""

    line: int
    sale_id: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SalesLoaded:
    """The result for each row of a sales file; ``differing`` are those that were compared and not written."""

    rows: int
    inserted: int
    updated: int
    unchanged: int
    rejected: tuple[RejectedRow, ...]
    unknown_groups: Mapping[str, int] = field(default_factory=dict)
    """The accepted sales by a utility group that the contract does not know, as it is written."""
    differing: tuple[DifferingSale, ...] = ()
    rejected_files: tuple[Path, ...] = ()
    """The rejected rows as they are in the file, with line and errors, to be corrected and loaded."""


def load_sales(
    database: Database,
    path: Path,
    *,
    timezone: tzinfo,
    clock: Clock,
    write: bool = True,
    out: Path | None = None,
    progress: Progress | None = None,
    language: Language = ENGLISH,
) -> SalesLoaded:
    """Take over the sales of a CSV or XLSX file, all valid rows in one transaction; or only compare them.

    The sales of a shared database are the service's own: without ``write`` nothing is changed there. Otherwise a
    known sale with other values is updated, and the values it had stay as an observation. Columns are
    those of ``sales_file``; times without an offset are in
    ``timezone``. A sale with an unknown ``clientId``, or whose id stands in the file before, is rejected.

    Raises:
        UnreadableFile: the file is missing, no table, or lacks a column; nothing was changed.
        WriteRefused: the service's sales cannot be written as they are mapped; nothing was read.
    """
    if write:
        require_writable(database, "sales.insert", "sales.update")
    progress = progress or Quiet()
    table = read_table(path)
    columns = COLUMNS.headings(table, path)
    with database.transaction() as connection:
        connection.execute(sa.text(_STAGE))
        progress.begin("sales", len(table.rows), "rows")
        rejected, unknown_groups = _stage(connection, table, columns, timezone, progress)
        progress.end()
        take(connection, Lock.SALES_LOAD)
        rejected += _reject_unknown_clients(connection)
        inserted, updated = 0, 0
        differing: tuple[DifferingSale, ...] = ()
        if write:
            inserted, updated = _merge(connection)
            observe_sales(connection, clock)
        else:
            differing = _differing(connection)
    rejected.sort(key=lambda row: row.line)
    files = hand_back(table, columns, rejected, out or path.parent, path.name, language) if rejected else ()
    rows = len(table.rows)
    unchanged = rows - len(rejected) - inserted - updated - len(differing)
    return SalesLoaded(rows, inserted, updated, unchanged, tuple(rejected), unknown_groups, differing, files)


def _stage(
    connection: Connection, table: Table, columns: Mapping[str, str], timezone: tzinfo, progress: Progress
) -> tuple[list[RejectedRow], Counter[str]]:
    """Copy the valid rows, return the others, and count the rows of each group that the contract does not know."""
    rejected, unknown_groups, first_line = [], Counter[str](), dict[str, int]()
    for begin in range(0, len(table.rows), _PIECE):
        piece = table.rows.slice(begin, _PIECE)
        lines = table.lines[begin : begin + _PIECE]
        cells = {name: piece[heading].combine_chunks() for name, heading in columns.items()}
        values, accepted, invalid = judge_sales(cells, timezone)
        ids = values["sale_id"].to_pylist()
        for row, line in zip(np.flatnonzero(accepted).tolist(), lines[accepted].tolist(), strict=True):
            if (first := first_line.setdefault(ids[row], line)) != line:
                invalid[row] = (InvalidField("saleId", f"Stands in line {first} already"),)
                accepted[row] = False
        rejected += [RejectedRow(int(lines[row]), reasons) for row, reasons in invalid.items()]
        staged = pa.table({"line": pa.array(lines), **values}).filter(pa.array(accepted))
        for group in staged["utility_group"].value_counts().to_pylist():
            if group["values"] not in set(UtilityGroup):
                unknown_groups[group["values"]] += group["counts"]
        copy_binary(raw(connection), _STAGED, binary_rows([column.combine_chunks() for column in staged.columns]))
        progress.advance(len(piece))
    return rejected, unknown_groups


def created_at(database: Database, sale_id: str) -> datetime | None:
    """Return when a sale was created, ``None`` where there is no such sale."""
    with database.transaction() as connection:
        found: datetime | None = connection.scalar(sa.select(sales.c.created_at).where(sales.c.id == sale_id))
    return found


_STAGE: Final = "CREATE TEMP TABLE staged_sales (line bigint, LIKE audit_service.sales) ON COMMIT DROP"
_STAGED: Final = sql.SQL("staged_sales ({})").format(
    sql.SQL(", ").join(
        sql.Identifier("id" if name == "sale_id" else name) for name in ("line", *SaleRecord.model_fields)
    )
)
_PIECE: Final = 100_000
"""Rows that are judged at once."""


_staged_sales: Final = sa.table(
    "staged_sales",
    sa.column("line", sa.BigInteger),
    *(sa.column(column.name, column.type) for column in sales.columns),
)


def _reject_unknown_clients(connection: Connection) -> list[RejectedRow]:
    known = sa.select(clients.c.id).where(clients.c.id == _staged_sales.c.client_id).exists()
    removed = connection.execute(
        sa.delete(_staged_sales)
        .where(_staged_sales.c.client_id.is_not(None), ~known)
        .returning(_staged_sales.c.line)
    )
    reason = InvalidField("clientId", "No client is registered under this id")
    return [RejectedRow(line, (reason,)) for (line,) in removed]


def _differing(connection: Connection) -> tuple[DifferingSale, ...]:
    """Return the rows that writing would insert or update, each with the fields that differ."""
    values = _merged_values()
    differs = [sales.c[name].is_distinct_from(value).label(name) for name, value in values.items()]
    query = (
        sa.select(_staged_sales.c.line, _staged_sales.c.id, sales.c.id.is_(None).label("absent"), *differs)
        .select_from(_staged_sales.outerjoin(sales, sales.c.id == _staged_sales.c.id))
        .where(sa.or_(sales.c.id.is_(None), *differs))
        .order_by(_staged_sales.c.line)
    )
    return tuple(
        DifferingSale(
            row.line, row.id, () if row.absent else tuple(to_camel(name) for name in values if getattr(row, name))
        )
        for row in connection.execute(query)
    )


def _merged_values() -> dict[str, sa.ColumnElement[Any]]:
    """Return the values of a known sale after the file was loaded, which never takes a completion back."""
    values: dict[str, sa.ColumnElement[Any]] = {name: _staged_sales.c[name] for name in OBSERVED}
    values["completed_at"] = sa.func.coalesce(_staged_sales.c.completed_at, sales.c.completed_at)
    return values


def _merge(connection: Connection) -> tuple[int, int]:
    """Update the changed sales, and insert the new ones: so none of these is compared with itself."""
    values = _merged_values()
    updated = connection.execute(
        sa.update(sales)
        .values(values)
        .where(
            sales.c.id == _staged_sales.c.id,
            sa.or_(*(sales.c[name].is_distinct_from(value) for name, value in values.items())),
        )
    )
    known = sa.select(sales.c.id).where(sales.c.id == _staged_sales.c.id).exists()
    names = [column.name for column in sales.columns]
    inserted = connection.execute(
        sa.insert(sales)
        .from_select(names, sa.select(*(_staged_sales.c[name] for name in names)).where(~known))
        .execution_options(preserve_rowcount=True)
    )
    return inserted.rowcount, updated.rowcount
