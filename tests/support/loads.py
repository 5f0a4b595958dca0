"""What a load of clients registered, and how many rows it took."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from toolkit.database.connection import Database
from toolkit.database.tables import addresses, clients
from toolkit.intake.results import LoadResult


def registered(database: Database) -> list[dict[str, Any]]:
    query = sa.select(clients, addresses).join(addresses, addresses.c.client_id == clients.c.id)
    with database.transaction() as connection:
        return [dict(row) for row in connection.execute(query.order_by(clients.c.cpf)).mappings()]


def counts(result: LoadResult) -> tuple[int, int, int]:
    return result.accepted, result.rejected, result.skipped
