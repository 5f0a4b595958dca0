"""Take over the sales that another system exports as a file, or compare them with those of the service."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import sqlalchemy as sa
from pydantic.alias_generators import to_camel
from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql import array

from toolkit.contract.resources import SaleRecord
from toolkit.database.connection import Database, Lock, copy_rows, take
from toolkit.database.observations import OBSERVED, observe
from toolkit.database.service import clients, create_new, mentions, sales, service_of
from toolkit.errors import InvalidField, WriteRefused
from toolkit.intake.headings import Headings
from toolkit.intake.sources import source_of
from toolkit.intake.tables import Rejected, Table, valid_rows
from toolkit.language import ENGLISH, Language

_FIELDS: Final = {
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
"""The columns, and the usual headings of each beside the contract's."""

_REPEATED: Final = InvalidField("saleId", "Stands in line {} already")

HEADINGS: Final = Headings(_FIELDS, ("partner", "completedAt"))


@dataclass(frozen=True, slots=True)
class SalesLoaded:
    """The result for each row of a sales file; ``differing`` are those that were compared and not written.

    They have a ``line``, a ``sale_id`` and the ``fields`` that differ, none where the service lacks the sale.
    """

    rows: int
    inserted: int
    updated: int
    unchanged: int
    rejected: Rejected
    differing: Sequence[sa.Row[Any]] = ()
    rejected_files: tuple[Path, ...] = ()
    """The rejected rows as they are in the file, with line and errors, to be corrected and loaded."""


def load_sales(
    database: Database,
    path: Path,
    *,
    timezone: tzinfo,
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
    table = Table(source_of(path), HEADINGS)
    valid, rejected = valid_rows(table.bodies(), SaleRecord, lambda sale: sale.sale_id, _REPEATED)
    rows = len(valid) + len(rejected)
    with database.transaction() as connection:
        create_new(connection, "new_sales")
        connection.execute(sa.text("ALTER TABLE new_sales ADD COLUMN line bigint"))
        copy_rows(connection, "new_sales", _copied(valid, timezone))
        take(connection, Lock.SALES_LOAD)
        rejected = dict(sorted((rejected | _reject_unknown_clients(connection)).items()))
        connection.execute(_KEEP_COMPLETIONS)
        differing, changed = _differing(connection), 0
        if write and differing:
            connection.execute(_TAKE_OUT_SAME)
            connection.execute(sa.text("ALTER TABLE new_sales DROP COLUMN line"))
            changed = database.service.run(connection, "add_sales")
            if changed < len(differing) or not database.service.is_own:
                _check_written(connection)
        if write and min(observe(connection, "sales"), changed) > len(differing):
            raise WriteRefused("add_sales changed other sales, too. Nothing was changed.")
    files = table.hand_back(rejected, out, language)
    new = sum(not each.fields for each in differing)
    unchanged = rows - len(rejected) - len(differing)
    if write:
        return SalesLoaded(rows, new, len(differing) - new, unchanged, rejected, (), files)
    return SalesLoaded(rows, 0, 0, unchanged, rejected, differing, files)


_NAMES: Final = {"id" if name == "sale_id" else name: name for name in SaleRecord.model_fields}
"""The names of the fields by those of their columns."""


def _copied(valid: Mapping[int, SaleRecord], timezone: tzinfo) -> pa.Table:
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


_new_sales: Final = sa.table(
    "new_sales", sa.column("line", sa.BigInteger), *(sa.column(each.name, each.type) for each in sales.columns)
)


def _reject_unknown_clients(connection: Connection) -> dict[int, Sequence[InvalidField]]:
    named = _new_sales.c.client_id
    known = sa.select(clients.c.id).where(clients.c.id == named).exists()
    unknown = sa.delete(_new_sales).where(named.is_not(None), ~known).returning(_new_sales.c.line)
    reason = InvalidField("clientId", "No client is registered under this id")
    return dict.fromkeys(connection.scalars(unknown), (reason,))


_KEEP_COMPLETIONS: Final = (
    sa.update(_new_sales)
    .values(completed_at=sales.c.completed_at)
    .where(sales.c.id == _new_sales.c.id, _new_sales.c.completed_at.is_(None), sales.c.completed_at.is_not(None))
)
"""Loading a file never takes a completion back."""

_KNOWN: Final = {**sales.c, "partner": sa.func.nullif(sa.func.btrim(sales.c.partner), "")}  # as it is observed
_DIFFERS: Final = {name: _KNOWN[name].is_distinct_from(_new_sales.c[name]) for name in OBSERVED}
_DIFFERS_AT_ALL: Final = sa.or_(*_DIFFERS.values())
_TAKE_OUT_SAME: Final = sa.delete(_new_sales).where(sales.c.id == _new_sales.c.id, ~_DIFFERS_AT_ALL)


def _check_written(connection: Connection) -> None:
    """Make sure that no sale has another value than was given in a column that the statement stores."""
    statement = service_of(connection).statements["add_sales"]
    stored = {to_camel(name) for name in OBSERVED if mentions(statement, name)}
    for sale in _differing(connection, sa.null()):
        if others := sorted(stored.intersection(sale.fields)):
            raise WriteRefused(
                "add_sales left sales as they were, or stored other values: {!r} ({}). Nothing was changed.",
                sale.sale_id,
                ", ".join(others),
            )


def _differing(connection: Connection, line: Any = _new_sales.c.line) -> Sequence[sa.Row[Any]]:
    """Return the rows that writing would insert or update, each with the fields that differ."""
    absent = sales.c.id.is_(None)
    fields = [sa.case((~absent & condition, to_camel(name))) for name, condition in _DIFFERS.items()]
    differing = sa.func.array_remove(array(fields), None).label("fields")
    query: sa.Select[Any] = sa.select(line.label("line"), _new_sales.c.id.label("sale_id"), differing)
    query = query.select_from(_new_sales.outerjoin(sales, sales.c.id == _new_sales.c.id))
    return connection.execute(query.where(absent | _DIFFERS_AT_ALL).order_by("line")).all()
