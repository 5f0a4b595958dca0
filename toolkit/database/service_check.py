"""Prove a ``service.sql`` on the data: what is counted at every reading, and what only a person can judge."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from toolkit.contract.service_rows import FLAWS, LEFT_OUT
from toolkit.database.connection import Database
from toolkit.database.observations import counts_of
from toolkit.database.service import NEW, REQUIRED, WRITES, is_null, mentions, service_of
from toolkit.database.service_tables import Resolved, hidden_and_copied, resolve
from toolkit.message import Message

_TRIED_KEYS: Final = 20
_FEW: Final = 12


@dataclass(frozen=True)
class Proof:
    """``counts`` are those of a reading; ``values`` the rows of each code, for somebody who knows the service.

    ``flaws`` need attention; ``notes`` say what cannot be written, or is not stored, and why.
    """

    counts: Mapping[str, int]
    values: Mapping[str, str]
    flaws: tuple[str, ...]
    notes: tuple[str, ...]


def prove(database: Database, holds: Callable[[str], bool] | None) -> Proof:
    """Look at all rows; ``holds`` tells whether the bucket has an object, where there is a bucket to ask.

    Raises:
        SchemaMismatch: a statement does not fit the database.
    """
    with database.snapshot() as connection:
        resolved, counts = resolve(connection), counts_of(connection)
        flaws = [Message(text, counts[name]) for name, text in FLAWS.items() if counts[name]]
        flaws += [*_times(connection), *(_keys(connection, holds) if holds is not None else ())]
        values = dict(_values(connection))
        values |= {name: Message(text, counts[name]) for name, text in LEFT_OUT.items() if counts[name]}
        notes = [*_notes(connection, resolved)]
    with database.transaction() as connection:
        return Proof(counts, values, tuple(flaws), (*notes, *_writing(connection)))


def _times(connection: Connection) -> Iterator[Message]:
    """Yield times that let a wrong zone be suspected."""
    service = service_of(connection)
    query = f"""
        SELECT count(*), count(*) FILTER (WHERE requested_at < sale.created_at),
               (SELECT count(*) FROM {service.text("sales")} AS read WHERE completed_at < created_at)
        FROM {service.text("records")} AS record JOIN {service.text("sales")} AS sale ON sale.id = sale_id
    """  # the operator's own statements, as below
    rows, early, ended = connection.execute(sa.text(query)).one()
    if early > rows / 2:
        yield Message(
            "Evidence records that were requested before their sale was created (check the zones): {:,}.", early
        )
    if ended:
        yield Message("Sales that were completed before they were created (check the zones): {:,}.", ended)


def _keys(connection: Connection, holds: Callable[[str], bool]) -> Iterator[Message]:
    """Yield it where none of the newest keys lies in the bucket."""
    query = f"""
        SELECT object_key FROM {service_of(connection).text("records")} AS read WHERE object_key IS NOT NULL
        ORDER BY requested_at DESC, id LIMIT {_TRIED_KEYS}
    """
    keys = list(connection.scalars(sa.text(query)))
    if keys and not any(map(holds, keys)):
        stripped = any(holds(key.lstrip("/")) for key in keys)
        yield Message(
            "None of the {} newest object_key lies in the bucket. Without the slash in front they do."
            if stripped
            else "None of the {} newest object_key lies in the bucket.",
            len(keys),
        )


def _values(connection: Connection) -> Iterator[tuple[str, str]]:
    service = service_of(connection)
    for shown in ("sales.utility_group", "sales.is_client_financial_responsible", "records.evidence_type"):
        relation, column = shown.split(".")
        query = f"""
            SELECT coalesce(CAST({column} AS text), 'unknown'), count(*) FROM {service.text(relation)} AS read
            GROUP BY 1 ORDER BY 2 DESC, 1
        """
        found = [f"{value} {count}" for value, count in connection.execute(sa.text(query))]
        yield shown, ", ".join(found if len(found) <= _FEW else [*found[:_FEW], "..."])
    for shown in ("sales.created_at", "sales.completed_at", "records.requested_at"):
        relation, column = shown.split(".")
        query = f"""
            SELECT count({column}), CAST(min({column}) AS text), CAST(max({column}) AS text)
            FROM {service.text(relation)} AS read
        """
        count, oldest, newest = connection.execute(sa.text(query)).one()
        yield shown, Message("{:,} from {} to {}", count, oldest, newest) if count else "0"


def _notes(connection: Connection, resolved: Resolved) -> Iterator[Message]:
    service = service_of(connection)
    for name, table in resolved["tables"].items():
        if table["kind"] == "function":
            yield Message(
                "The tables behind the function {} are not known: nobody tells when they change or hide rows.",
                name,
            )
    for relation, columns in REQUIRED.items():
        if absent := [name for name in columns if is_null(service.statements[relation], name)]:
            names = ", ".join(absent)
            yield Message("{}: the contract requires {}, and the tables have no place for it.", relation, names)
    hidden, copied = hidden_and_copied(connection)
    for table in hidden:
        yield Message("Row level security may hide rows of {} from this role.", table)
    for table in copied:
        yield Message("{} is a materialised view: it is as old as its last refresh.", table)
    encoding = connection.execute(sa.text("SELECT current_setting('server_encoding')")).scalar_one()
    if encoding == "SQL_ASCII":
        yield Message("The database states no encoding (SQL_ASCII): texts that are not UTF-8 cannot be read.")
    elif encoding != "UTF8":
        yield Message(
            "The database is encoded in {}: clients with other characters are rejected one by one.", encoding
        )


def _writing(connection: Connection) -> Iterator[Message]:
    """Yield what cannot be written: each statement is planned, on no rows."""
    service = service_of(connection)
    for name, (relation, impossible) in WRITES.items():
        if name not in service.statements:
            yield Message("{}: there is no statement {}.", Message(impossible), name)
            continue
        if dropped := [each for each in NEW[relation] if not mentions(service.statements[name], each)]:
            yield Message("{} does not store {}.", name, ", ".join(dropped))
        nulls = ", ".join(f"CAST(NULL AS {kind}) AS {column}" for column, kind in NEW[relation].items())
        statement: Any = service.over(name, f"{relation} AS (SELECT {nulls} WHERE false)")
        try:
            with connection.begin_nested():
                connection.execute(sa.text(f"EXPLAIN {statement.text}"))
        except DBAPIError as error:
            yield Message("{}: {}.", Message(impossible), str(error.orig).splitlines()[0])
