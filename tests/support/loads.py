"""What a load of clients registered, and how many rows it took."""

import sqlalchemy as sa

from toolkit.database.tables import addresses, clients


def registered(database):
    query = sa.select(clients, addresses).join(addresses, addresses.c.client_id == clients.c.id)
    with database.transaction() as connection:
        return [dict(row) for row in connection.execute(query.order_by(clients.c.cpf)).mappings()]


def counts(result):
    return result.accepted, result.rejected, result.skipped
