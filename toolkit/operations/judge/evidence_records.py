"""Read the evidence records of one sale, each with its file and its withdrawal."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Row

from toolkit.domain.masking import Unmasking
from toolkit.domain.sales import is_possible_sale_id
from toolkit.errors import SaleNotFound
from toolkit.operations import Clock
from toolkit.operations.judge.audit.records import EvidenceRecord, records_now
from toolkit.operations.prove.custody_log.events import record_unmasking
from toolkit.storage.database import Database
from toolkit.storage.tables import sales


def records_of(
    database: Database, sale_id: str, clock: Clock, *, unmasking: Unmasking | None = None
) -> list[EvidenceRecord]:
    """Return all records of the sale, oldest first; the bucket itself is not asked.

    With ``unmasking``, which the custody log is told of, they have the names of their files.

    Raises:
        SaleNotFound: no sale has this id.
    """
    now = clock()
    with database.transaction() as connection:
        return records_seen(connection, sale_row(connection, sale_id).id, now, unmasking)


def sale_row(connection: Connection, sale_id: str) -> Row[Any]:
    """Return the row of a sale.

    Raises:
        SaleNotFound: no sale has this id.
    """
    sale = None
    if is_possible_sale_id(sale_id):
        sale = connection.execute(sa.select(sales).where(sales.c.id == sale_id)).one_or_none()
    if sale is None:
        raise SaleNotFound(sale_id)
    return sale


def records_seen(
    connection: Connection, sale_id: str, now: datetime, unmasking: Unmasking | None
) -> list[EvidenceRecord]:
    """Return the same, as this connection sees the database, of a sale that is there."""
    if unmasking is not None:
        record_unmasking(connection, unmasking, "file names of a sale", now)
    return records_now(connection, sale_id, now, named=unmasking is not None)
