"""Take over the sales that another system exports as a file, or compare them with those of the service."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import sqlalchemy as sa
from pydantic.alias_generators import to_camel
from sqlalchemy import Connection

from toolkit.contract.deadlines import Clock
from toolkit.contract.resources import SaleRecord
from toolkit.database.connection import Database, Lock, take
from toolkit.database.copying import copy_rows
from toolkit.database.observations import OBSERVED, observe_sales
from toolkit.database.service import NEW, clients, create_new, sales, service_of
from toolkit.errors import InvalidField
from toolkit.intake.headings import Headings
from toolkit.intake.results import Outputs
from toolkit.intake.tables import RejectedRow, Table, read_table, valid_rows
from toolkit.language import ENGLISH, Language

_OTHERS: Final = {
    "saleId": ("ID da venda", "código da venda", "número da venda", "nº da venda", "venda"),
    "clientId": ("ID do cliente", "código do cliente"),
    "utilityGroup": ("grupo tarifário", "grupo da distribuidora", "grupo"),
    "isClientFinancialResponsible": (
        "cliente é o responsável financeiro",
        "cliente responsável financeiro",
        "contratante paga",
    ),
    "createdAt": ("data da venda", "data de criação", "criada em", "criado em"),
    "partner": ("parceiro",),
    "completedAt": ("data de conclusão", "concluída em", "finalizada em"),
}
"""The usual headings beside the contract's, in any case, with or without accents and punctuation."""

_REPEATED: Final = InvalidField("saleId", "Stands in line {} already")

HEADINGS: Final = Headings([*_OTHERS], ("partner", "completedAt"), _OTHERS)


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
    language: Language = ENGLISH,
) -> SalesLoaded:
    """Take over the sales of a CSV or XLSX file, all valid rows in one transaction; or only compare them.

    The sales of a shared database are the service's own: without ``write`` nothing is changed there. Otherwise a
    known sale with other values is updated, and the values it had stay as an observation. Times without an offset
    are in ``timezone``. A sale with an unknown ``clientId``, or whose id stands in the file before, is rejected.

    Raises:
        UnreadableFile: the file is missing, no table, or lacks a column; nothing was changed.
        WriteRefused: the service takes no sales; nothing was read.
    """
    if write:
        database.service.require("add_sales")
    table = read_table(path, HEADINGS)
    valid, rejected = valid_rows(table, SaleRecord, lambda sale: sale.sale_id, _REPEATED)
    inserted, updated = 0, 0
    differing: tuple[DifferingSale, ...] = ()
    with database.transaction() as connection:
        connection.execute(sa.text(_STAGE))
        copy_rows(connection, "staged_sales", _staged(valid, timezone))
        take(connection, Lock.SALES_LOAD)
        unknown = _reject_unknown_clients(connection)
        rejected = sorted(rejected + unknown, key=lambda row: row.line)
        if write:
            inserted, updated = _merge(connection)
            observe_sales(connection, clock)
        else:
            differing = _differing(connection)
    files = hand_back(table, rejected, out or path.parent, path.name, language)
    rows = len(table.rows)
    unchanged = rows - len(rejected) - inserted - updated - len(differing)
    return SalesLoaded(rows, inserted, updated, unchanged, tuple(rejected), differing, files)


_NAMES: Final = {"id" if name == "sale_id" else name: name for name in SaleRecord.model_fields}
"""The names of the fields by those of their columns."""


def _staged(valid: Mapping[int, SaleRecord], timezone: tzinfo) -> pa.Table:
    """Return the sales with their lines, as COPY takes them."""
    columns = {
        column: pa.array([_written(getattr(sale, name), timezone) for sale in valid.values()], pa.string())
        for column, name in _NAMES.items()
    }
    return pa.table({"line": pa.array(list(valid), pa.int64()), **columns})


def _written(value: Any, timezone: tzinfo) -> str | None:
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=timezone)).isoformat()
    return None if value is None else str(value)


_TYPED: Final = ", ".join(map(" ".join, NEW["new_sales"].items()))
_STAGE: Final = f"CREATE TEMPORARY TABLE staged_sales (line bigint, {_TYPED}) ON COMMIT DROP"

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


_VALUES: Final[Mapping[str, sa.ColumnElement[Any]]] = {
    **{name: _staged_sales.c[name] for name in OBSERVED},
    "completed_at": sa.func.coalesce(_staged_sales.c.completed_at, sales.c.completed_at),
}
"""The values of a sale after the file was loaded, which never takes a completion back."""

_DIFFERS: Final = {name: sales.c[name].is_distinct_from(value) for name, value in _VALUES.items()}
_ABSENT: Final = sales.c.id.is_(None)


def _changing(*columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """Select from the rows that writing would insert or update, beside the sales that are there."""
    both = _staged_sales.outerjoin(sales, sales.c.id == _staged_sales.c.id)
    return sa.select(*columns).select_from(both).where(sa.or_(_ABSENT, *_DIFFERS.values()))


def _differing(connection: Connection) -> tuple[DifferingSale, ...]:
    """Return the rows that writing would insert or update, each with the fields that differ."""
    differs = [condition.label(name) for name, condition in _DIFFERS.items()]
    query = _changing(_staged_sales.c.line, _staged_sales.c.id, _ABSENT.label("absent"), *differs)
    return tuple(
        DifferingSale(
            row.line, row.id, () if row.absent else tuple(to_camel(name) for name in _VALUES if getattr(row, name))
        )
        for row in connection.execute(query.order_by(_staged_sales.c.line))
    )


def _merge(connection: Connection) -> tuple[int, int]:
    """Hand the new sales and those that differ to the service; return the numbers of both."""
    create_new(connection, "new_sales")
    new = sa.table("new_sales", *(sa.column(name, column.type) for name, column in sales.columns.items()))
    chosen = _changing(_staged_sales.c.id, *(value.label(name) for name, value in _VALUES.items()))
    connection.execute(sa.insert(new).from_select(["id", *_VALUES], chosen))
    there = sa.exists().where(sales.c.id == new.c.id)
    count = sa.select(sa.func.count(), sa.func.count().filter(there)).select_from(new)
    changed, updated = connection.execute(count).one()
    if changed:
        service_of(connection).run(connection, "add_sales")
    return changed - updated, updated


def hand_back(
    table: Table, rejected: Sequence[RejectedRow], out: Path, name: str, language: Language
) -> tuple[Path, ...]:
    """Write the rejected rows, if there are any, for people to correct, as those of clients."""
    if not rejected:
        return ()
    chunk = table.rows.take(np.searchsorted(table.rows.lines, [each.line for each in rejected]))
    with Outputs(out, name, table.layout.delimiter, table.headings, table.fields, language) as outputs:
        outputs.reject(chunk, [each.invalid for each in rejected])
        outputs.complete()
        return outputs.publish()[0]
