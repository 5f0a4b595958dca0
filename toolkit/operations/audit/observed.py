"""What was there at a moment, read from the observations: the audit's three input tables.

Each function gives an Ibis table over the tables of ``toolkit.storage.tables``, bound to no connection. A
moment is compared with the times that the toolkit itself wrote, so an answer about the past stays the same.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import ibis
import sqlalchemy as sa
from ibis import Table
from ibis.expr import datatypes as dt

from toolkit.operations.audit.expression import EVIDENCES, OBJECTS, SALES
from toolkit.storage import tables

_TYPES: Final[dict[type[Any], dt.DataType]] = {
    sa.Text: dt.string,
    sa.Uuid: dt.uuid,
    sa.Boolean: dt.boolean,
    sa.BigInteger: dt.int64,
    sa.DateTime: dt.Timestamp("UTC"),
    sa.Date: dt.date,
}


def unbound(table: sa.Table) -> Table:
    """A table of the database as Ibis sees it."""
    columns = {column.name: _data_type(column) for column in table.columns}
    return ibis.table(columns, name=table.name, database=table.schema)


def sales_at(as_of: datetime) -> Table:
    """The sales as they were seen last by then."""
    seen = _seen(tables.sale_observations, as_of)
    return seen.rename(id="sale_id").select(*SALES.names)


def evidences_at(as_of: datetime) -> Table:
    """The evidence records that had been requested by then and not been withdrawn."""
    evidences, withdrawals = unbound(tables.evidences), unbound(tables.withdrawals)
    withdrawn = withdrawals.filter(withdrawals.withdrawn_at <= ibis.literal(as_of))
    requested = evidences.filter(evidences.requested_at <= ibis.literal(as_of))
    return requested.anti_join(withdrawn, requested.id == withdrawn.evidence_id).select(*EVIDENCES.names)


def objects_at(as_of: datetime) -> Table:
    """The objects that lay in the bucket, with what was known of their contents by then.

    The latest look says of what kind they are; a fault that any look found stays with that version.
    """
    checks = unbound(tables.content_checks)
    known = checks.filter(checks.checked_at <= ibis.literal(as_of))
    contents = known.group_by("observation_id").aggregate(
        kind=known.kind.argmax(known.id), damaged=known.problem.notnull().any()
    )
    seen = _seen(tables.object_observations, as_of)
    found = seen.left_join(contents, seen.id == contents.observation_id)
    return found.mutate(damaged=found.damaged.fill_null(False)).select(*OBJECTS.names)


def _seen(observations: sa.Table, as_of: datetime) -> Table:
    """The observations that held at the moment."""
    table = unbound(observations)
    moment = ibis.literal(as_of)
    return table.filter(table.seen_at <= moment, table.gone_at.isnull() | (table.gone_at > moment))


def _data_type(column: sa.Column[object]) -> dt.DataType:
    kind = next(_TYPES[base] for base in type(column.type).__mro__ if base in _TYPES)
    return kind.copy(nullable=bool(column.nullable))
