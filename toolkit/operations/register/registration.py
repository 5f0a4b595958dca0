"""Register one client (contract, "1. Register client")."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import psycopg
import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from toolkit.domain.clients import Client
from toolkit.domain.requests import parse
from toolkit.errors import AlreadyThere, InvalidField, InvalidFields
from toolkit.operations import Clock
from toolkit.operations.register.bulk_load.fields import FIELD_OF
from toolkit.operations.register.limits import REFUSALS, misfits, read_limits, refusal
from toolkit.storage.database import Database
from toolkit.storage.service_map.keys import next_client_ids
from toolkit.storage.service_map.writing import FRESH, require_writable
from toolkit.storage.tables import addresses, clients

MESSAGE: Final = "Client created"


@dataclass(frozen=True, slots=True)
class Registered:
    """The contract's answer to a registration."""

    message: str
    client_id: UUID
    address_id: UUID


def register_client(database: Database, body: Mapping[str, Any], clock: Clock) -> Registered:
    """Validate ``body`` (contract names) and store the client with its address, every time anew.

    Raises:
        InvalidFields: every invalid field at once; nothing was stored.
        AlreadyThere: the service keeps something of it only once.
    """
    client = parse(Client, body)
    require_writable(database, "clients.insert", "addresses.insert")
    read_limits(database, age=FRESH)
    _require_room(database, client)
    client_id, address_id = (UUID(bytes=ids.tobytes()) for ids in next_client_ids(database, 1))
    stored = {"id": client_id, "created_at": clock(), **client.model_dump(exclude={"address"})}
    address = {"address_id": address_id, "client_id": client_id, **client.address.model_dump()}
    with database.statement() as connection:
        try:
            connection.execute(_INSERT, stored | address)
        except DBAPIError as error:
            if isinstance(error.orig, psycopg.errors.UniqueViolation):
                raise AlreadyThere(refusal(error.orig)) from None
            if isinstance(error.orig, REFUSALS):
                raise InvalidFields([InvalidField("body", refusal(error.orig))]) from None
            raise
    return Registered(MESSAGE, client_id, address_id)


def _require_room(database: Database, client: Client) -> None:
    """Refuse values that the service's own columns do not take, before anything is written."""
    given = client.model_dump(exclude={"address"}) | client.address.model_dump()
    columns = {
        name: pa.array([None if value is None else str(value)], pa.string()) for name, value in given.items()
    }
    refused = {FIELD_OF[name].name: reason for name, mask, reason in misfits(database, columns) if mask.all()}
    if refused:
        raise InvalidFields([InvalidField(name, reason) for name, reason in refused.items()])


def client_ids(database: Database, external_ids: Sequence[str]) -> dict[str, UUID]:
    """Return the ids of registered clients by ``externalId``; the oldest where one was registered twice."""
    query = (
        sa.select(clients.c.external_id, clients.c.id)
        .where(clients.c.external_id.in_(external_ids))
        .order_by(clients.c.created_at.desc(), clients.c.id.desc())
    )
    with database.transaction() as connection:
        return {row.external_id: row.id for row in connection.execute(query)}


def _values(table: sa.Table, **renamed: str) -> dict[str, sa.BindParameter[Any]]:
    return {
        column.name: sa.bindparam(renamed.get(column.name, column.name), type_=column.type)
        for column in table.columns
    }


_INSERT: Final = (
    sa.insert(clients)
    .values(_values(clients))
    .add_cte(sa.insert(addresses).values(_values(addresses, id="address_id")).cte("address"))
)
"""Inserts client and address in one statement, so in one round trip: both or neither.

What stands in front runs last: the address finds its client there.
"""
