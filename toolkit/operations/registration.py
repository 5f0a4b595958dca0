"""Register one client (contract, "1. Register client")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa

from toolkit.domain.clients import Client
from toolkit.domain.requests import parse
from toolkit.operations import Clock
from toolkit.storage.database import Database
from toolkit.storage.identifiers import new_id
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
    """
    client = parse(Client, body)
    client_id, address_id = new_id(), new_id()
    person = client.model_dump(exclude={"address"})
    with database.transaction() as connection:
        connection.execute(sa.insert(clients), {"id": client_id, "created_at": clock(), **person})
        connection.execute(
            sa.insert(addresses), {"id": address_id, "client_id": client_id, **client.address.model_dump()}
        )
    return Registered(MESSAGE, client_id, address_id)
