"""Register one client (contract, "1. Register client")."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import psycopg
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from toolkit.contract.clients import Client
from toolkit.contract.deadlines import Clock
from toolkit.contract.fields import parse
from toolkit.database.connection import Database
from toolkit.database.service import clients, one_row
from toolkit.database.tables import new_id
from toolkit.errors import AlreadyThere, InvalidField, InvalidFields
from toolkit.message import Message

MESSAGE: Final = "Client created"

REFUSALS: Final = (psycopg.IntegrityError, psycopg.DataError, psycopg.errors.RaiseException)
"""Errors by which the service's own rules refuse a row."""


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
    add = database.service.over("add_clients", one_row("new_clients"))
    client_id, address_id = new_id(), new_id()
    stored = {"id": client_id, "address_id": address_id, "created_at": clock()}
    stored |= client.model_dump(exclude={"address"}) | client.address.model_dump()
    with database.statement() as connection:
        try:
            connection.execute(add, stored)
        except DBAPIError as error:
            if isinstance(error.orig, psycopg.errors.UniqueViolation):
                raise AlreadyThere(refusal(error.orig)) from None
            if isinstance(error.orig, REFUSALS):
                raise InvalidFields([InvalidField("body", refusal(error.orig))]) from None
            raise
    return Registered(MESSAGE, client_id, address_id)


def refusal(error: psycopg.Error) -> Message:
    """Return why the service refused a row; a value that it names in its details is not shown."""
    named = error.diag.constraint_name or error.sqlstate
    if isinstance(error, psycopg.errors.UniqueViolation):
        return Message("Repeats what may stand only once in the service ({})", named)
    return Message("Breaks a rule of the service ({})", named)


def client_ids(database: Database, external_ids: Sequence[str]) -> dict[str, UUID]:
    """Return the ids of registered clients by ``externalId``; the oldest where one was registered twice."""
    query = (
        sa.select(clients.c.external_id, clients.c.id)
        .where(clients.c.external_id.in_(external_ids))
        .order_by(clients.c.created_at.desc(), clients.c.id.desc())
    )
    with database.transaction() as connection:
        return {row.external_id: row.id for row in connection.execute(query)}
