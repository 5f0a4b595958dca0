"""Prove a mapping on the data: what deviates, what is left out, and a picture of what is read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import psycopg
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from toolkit.storage.database import Database
from toolkit.storage.service_map.catalog import CatalogTable, read_catalog, resolver
from toolkit.storage.service_map.deviations import Deviation, deviations_of, unreadable_values
from toolkit.storage.service_map.expressions import THIS
from toolkit.storage.service_map.model import ServiceMap, own_tables
from toolkit.storage.service_map.obstacles import every_obstacle
from toolkit.storage.service_map.tables_behind import behind_policies, kept_elsewhere
from toolkit.storage.tables import SERVICE


@dataclass(frozen=True)
class Proof:
    """The outcome: how many rows each relation has, what deviates, and what else an operator should know.

    ``picture`` says what was read, for somebody who knows the service: the rows of each code, the oldest and the
    newest time.
    """

    rows: dict[str, int]
    picture: dict[str, str]
    deviations: tuple[Deviation, ...]
    notes: tuple[str, ...]


def prove(database: Database, mapping: ServiceMap | None, holds: Callable[[str], bool] | None = None) -> Proof:
    """Look at all the data once, as of one moment.

    Args:
        database: with the views made from ``mapping``.
        mapping: ``None`` stands for the contract's own tables.
        holds: tells whether an object lies in the bucket under a key; ``None`` where there is no bucket to ask.
    """
    described = mapping or own_tables()
    picture: dict[str, str] = {}
    with database.snapshot() as connection:
        readable, deviations = unreadable_values(connection, described)
        if not deviations:
            deviations += deviations_of(connection, described, holds)
            picture = dict(_picture(connection, described))
        left_out, notes = _left_out(connection, described)
        deviations += [*_hidden(connection, mapping is not None), *left_out]
        notes += _elsewhere(connection, mapping is not None)
        notes += _notes(connection, described)
    return Proof(readable, picture, tuple(deviations), tuple(notes))


def _hidden(connection: Connection, is_mapped: bool) -> Iterator[Deviation]:
    """Yield the tables whose policies hide rows from the role that reads them."""
    for row in behind_policies(connection, is_mapped):
        yield Deviation(
            row.relation,
            "from",
            f"{row.place} has row level security, which holds for role {row.role}: nobody can count the rows "
            "that its policies hide, and no audit or report has them. The administrator can lift it: "
            f"ALTER ROLE {row.role} BYPASSRLS",
            None,
        )


def _elsewhere(connection: Connection, is_mapped: bool) -> Iterator[str]:
    """Yield the tables whose rows are kept elsewhere, or are a copy of what there was."""
    for row in kept_elsewhere(connection, is_mapped):
        if row.server is None:
            yield (
                f"{row.relation}: {row.place} is a materialised view: it holds what there was when it was "
                "refreshed last, and PostgreSQL does not keep when that was."
            )
        else:
            yield f"{row.relation}: {row.place} stands in another database, of server {row.server}."


def _left_out(connection: Connection, mapping: ServiceMap) -> tuple[list[Deviation], list[str]]:
    """Count the rows that ``where`` leaves out: on purpose, or because it says neither yes nor no."""
    deviations, notes = [], []
    for name, relation in mapping.relations.items():
        if not relation.where:
            continue
        query = f"""
            SELECT count(*), count(*) FILTER (WHERE ({relation.where}) IS FALSE),
                   count(*) FILTER (WHERE ({relation.where}) IS NULL)
            FROM {relation.from_} AS {THIS}
        """  # noqa: S608  # the mapping is the operator's own
        try:
            with connection.begin_nested():
                rows, ended, unknown = connection.exec_driver_sql(query.replace("%", "%%")).one()
        except DBAPIError as error:
            if not isinstance(error.orig, psycopg.errors.InsufficientPrivilege):
                raise
            notes.append(f"{name}: this role cannot count the rows that where leaves out.")
            continue
        if unknown:
            problem = "left out, because where is neither true nor false for them; is a value missing?"
            deviations.append(Deviation(name, "where", problem, unknown))
        if rows and rows == ended + unknown:
            deviations.append(Deviation(name, "where", "left out, which is every row", rows))
        elif ended:
            notes.append(f"{name}: {ended} of {rows} rows are left out by where.")
    return deviations, notes


def _picture(connection: Connection, mapping: ServiceMap) -> Iterator[tuple[str, str]]:
    """Yield what was read: the rows of each code, the partners, and the oldest and newest times."""
    for name, column in _TOLD:
        if not mapping.reads(name, column):
            continue
        query = f"SELECT coalesce({column}::text, 'unknown'), count(*) FROM {SERVICE}.{name} GROUP BY 1 ORDER BY 2 DESC, 1"  # noqa: S608, E501
        found = connection.execute(sa.text(query)).all()
        shown = ", ".join(f"{value} {count}" for value, count in found[:_FEW])
        yield f"{name}.{column}", shown + (", ..." if len(found) > _FEW else "")
    for name, column in (("sales", "created_at"), ("sales", "completed_at"), ("evidences", "requested_at")):
        if not mapping.reads(name, column):
            continue
        query = f"SELECT count({column}), min({column})::text, max({column})::text FROM {SERVICE}.{name}"  # noqa: S608
        count, oldest, newest = connection.execute(sa.text(query)).one()
        yield f"{name}.{column}", f"{count} from {oldest} to {newest}" if count else "0"


_TOLD: Final = (
    ("sales", "utility_group"),
    ("sales", "is_client_financial_responsible"),
    ("evidences", "evidence_type"),
)
_FEW: Final = 12


def _notes(connection: Connection, mapping: ServiceMap) -> Iterator[str]:
    encoding = connection.execute(sa.text("SELECT current_setting('server_encoding')")).scalar_one()
    if encoding == "SQL_ASCII":
        yield "The database states no encoding (SQL_ASCII): texts that are not UTF-8 cannot be read."
    elif encoding != "UTF8":
        yield f"The database is encoded in {encoding}: clients with other characters are rejected one by one."
    catalog = read_catalog(connection)
    resolve = resolver(connection, catalog)
    refused = every_obstacle(mapping, resolve)
    yield from dict.fromkeys(refused.values())
    for name, relation in mapping.relations.items():
        table = None if relation.absent or relation.is_query else resolve(relation.from_)
        if table is not None and f"{name}.insert" not in refused:
            yield from _limits(name, table, mapping)


def _limits(name: str, table: CatalogTable, mapping: ServiceMap) -> Iterator[str]:
    """Yield the columns of the table that take less than the contract allows."""
    sources = mapping.relations[name].columns.items()
    kept = {column: table.columns[source.column] for column, source in sources if source.column in table.columns}
    lengths = [
        f"{column} ({found.length})"
        for column, found in kept.items()
        if found.length is not None and found.length < _LONGEST.get(column, _USUAL)
    ]
    if lengths:
        yield f"{name}: a value that is longer than its column is refused: {', '.join(lengths)} characters."
    if unique := [column for column in kept if column not in {"id", "object_key"} and kept[column].unique]:
        yield f"{name}: a second row with the same {', '.join(unique)} is refused."


_LONGEST: Final = {"cpf": 11, "phone_number": 11, "installation_number": 11, "zip_code": 9, "evidence_type": 40}
_USUAL: Final = 100
"""Characters that a text may well have where the contract states no limit."""
