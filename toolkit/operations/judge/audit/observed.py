"""The audit's three input tables as of a moment, read from the observations.

Each function gives an Ibis table over the tables of ``toolkit.storage.tables``, bound to no connection. A
moment is compared with the times that the toolkit itself wrote, so an answer about the past stays the same.
"""

from datetime import datetime
from typing import Any, Final

import ibis
import sqlalchemy as sa
from ibis import Table
from ibis.expr import datatypes as dt

from toolkit.domain.contents import Coverage
from toolkit.domain.evidence import FileKind
from toolkit.operations.judge.audit.expression import EVIDENCES, SALES
from toolkit.storage import tables

_HELD: Final = ("seen_at", "gone_at")
"""The columns that say from when until when an observation held."""

_TYPES: Final[dict[type[Any], dt.DataType]] = {
    sa.Text: dt.string,
    sa.Uuid: dt.uuid,
    sa.Boolean: dt.boolean,
    sa.BigInteger: dt.int64,
    sa.DateTime: dt.Timestamp("UTC"),
}


def unbound(table: sa.Table, *names: str) -> Table:
    """Return these columns of a database table as an Ibis table that is bound to no connection."""
    columns = {name: _data_type(table.c[name]) for name in names}
    return ibis.table(columns, name=table.name, database=table.schema)


def sales_at(as_of: datetime) -> Table:
    """Return the sales as they were seen last by then."""
    others = [name for name in SALES.names if name != "id"]
    seen = _seen(unbound(tables.sale_observations, "sale_id", *others, *_HELD), as_of)
    return seen.rename(id="sale_id").select(*SALES.names)


def evidences_at(as_of: datetime) -> Table:
    """Return the evidence records as they were seen last by then, without those that had been withdrawn."""
    names = [name for name in EVIDENCES.names if name != "gone"]
    seen = _seen(unbound(tables.evidence_observations, "evidence_id", *names, *_HELD), as_of)
    withdrawals = unbound(tables.withdrawals, "evidence_id", "withdrawn_at")
    withdrawn = withdrawals.filter(withdrawals.withdrawn_at <= ibis.literal(as_of))
    standing = seen.anti_join(withdrawn, "evidence_id")
    observed = unbound(tables.object_observations, "key", "gone_at")
    vanished = observed.filter(observed.gone_at <= ibis.literal(as_of)).select(gone_key="key").distinct()
    found = standing.left_join(vanished, standing.object_key == vanished.gone_key)
    return found.select(*names, gone=found.gone_key.notnull())


def objects_at(as_of: datetime) -> Table:
    """Return the objects in the bucket at the moment, with what was known of their contents.

    The latest look says of what kind they are; a fault that any look found stays with that version.
    """
    checks = unbound(tables.content_checks, "id", "observation_id", "kind", "problem", "sha256", "checked_at")
    known = checks.filter(checks.checked_at <= ibis.literal(as_of))
    # The latest look as one number, its id with its kind: that needs no sorting.
    latest = known.id * len(FileKind) + known.kind.cases(*((kind, n) for n, kind in enumerate(FileKind)))
    contents = known.group_by("observation_id").aggregate(
        latest=latest.max(),
        damaged=known.problem.notnull().any(),
        verified=known.sha256.notnull().any(),
    )
    failures = unbound(tables.verification_failures, "observation_id", "failed_at")
    failed = failures.filter(failures.failed_at <= ibis.literal(as_of)).select(failed_id="observation_id")
    seen = _seen(unbound(tables.object_observations, "id", "key", "size", *_HELD), as_of)
    found = seen.left_join(contents, seen.id == contents.observation_id)
    found = found.left_join(failed, found.id == failed.failed_id)
    coverage = ibis.cases(
        (found.verified, Coverage.VERIFIED),
        (found.failed_id.notnull(), Coverage.UNREADABLE),
        (found.latest.notnull(), Coverage.FIRST_BYTES),
        else_=Coverage.NEVER,
    )
    kind = (found.latest % len(FileKind)).cases(*enumerate(FileKind))
    return found.select("key", "size", kind=kind, damaged=found.damaged.fill_null(False), coverage=coverage)


def _seen(observations: Table, as_of: datetime) -> Table:
    """Return the observations that held at the moment."""
    moment = ibis.literal(as_of)
    return observations.filter(
        observations.seen_at <= moment, observations.gone_at.isnull() | (observations.gone_at > moment)
    )


def _data_type(column: sa.Column[object]) -> dt.DataType:
    kind = next(_TYPES[base] for base in type(column.type).__mro__ if base in _TYPES)
    return kind.copy(nullable=bool(column.nullable))
