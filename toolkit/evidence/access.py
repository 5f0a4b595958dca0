"""Whose sale it is, and bearer tokens that were revoked before they expire."""

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlalchemy import Connection, Row

from toolkit.contract.fields import stated
from toolkit.contract.people import NAME_MAX, PartnerAccess, UnassignedSales, is_plain_name
from toolkit.contract.resources import is_possible_sale_id
from toolkit.database.connection import Database
from toolkit.database.service import COLUMNS, PARTNER, Service, service_of
from toolkit.database.tables import token_revocations
from toolkit.errors import DatabaseError, InvalidInput, SaleNotFound


def own_sale(service: Service) -> str:
    """Return a part of a WITH clause: ``own_sale`` holds the sale where whoever asks may act on it, else no row.

    Its parameters are those of ``own_sale_parameters``.
    """
    columns = ", ".join(COLUMNS["sales"]).replace("partner", f"{PARTNER} AS partner")
    return f"""
    own_sale AS (
        SELECT *, CAST(:partner AS text) AS acting_partner
        FROM (SELECT {columns} FROM {service.one("sales", "id", ":sale_id")} AS read) AS sale
        WHERE (:is_operator OR sale.partner = :partner OR (sale.partner IS NULL AND :takes_unassigned))
    )
"""  # made of the operator's own statements


def own_sale_parameters(access: PartnerAccess | None, sale_id: str) -> dict[str, Any]:
    """Return the parameters of ``own_sale``; without ``access`` an operator asks, who may see all."""
    return {
        "is_operator": access is None,
        "partner": None if access is None else access.partner,
        "takes_unassigned": access is not None and access.unassigned is UnassignedSales.ANY,
        "sale_id": sale_id,
    }


def own_sales(connection: Connection, access: PartnerAccess | None, sale_id: str) -> Sequence[Row[Any]]:
    """Return the rows of ``own_sale``: two where several sales have this id."""
    if not is_possible_sale_id(sale_id):
        return ()
    query = sa.text(f"WITH {own_sale(service_of(connection))} SELECT * FROM own_sale")
    try:
        return connection.execute(query, own_sale_parameters(access, sale_id)).fetchmany(2)
    except sa.exc.DataError as error:
        if not isinstance(error.orig, psycopg.errors.UntranslatableCharacter):
            raise
        return ()  # a database that is not in UTF-8 holds no such id


def one_sale(connection: Connection, access: PartnerAccess | None, sale_id: str) -> Row[Any]:
    """Return the row of ``own_sale``.

    Raises:
        SaleNotFound: no sale has this id, or whoever asks may not act on it.
        DatabaseError: several have it, so that nobody knows whose they are; or it is set aside otherwise.
    """
    found = own_sales(connection, access, sale_id)
    if not found:
        raise SaleNotFound(sale_id)
    if len(found) > 1 or found[0].created_at is None:
        raise DatabaseError(
            "The sale is set aside: others have its id, or it has no created_at. See: toolkit db check"
        )
    return found[0]


Revocations = Mapping[tuple[str | None, str | None], float]
"""By token id or by subject: the last moment of a revocation, in seconds since 1970."""


def is_revoked(revocations: Revocations, token_id: str | None, subject: str, issued: float | None) -> bool:
    """Tell whether a token is revoked; of a revoked subject, one that does not claim its age is."""
    until = revocations.get((None, subject))
    return (token_id, None) in revocations or (until is not None and (issued is None or issued <= until))


def revoked_tokens(database: Database) -> Revocations:
    """Return all revocations."""
    columns = token_revocations.c
    query = sa.select(columns.token_id, columns.subject, columns.revoked_at)
    with database.transaction() as connection:
        found = connection.execute(query.order_by(columns.revoked_at, columns.id)).all()
    # The newest of a subject comes last.
    return {(token_id, subject): revoked_at.timestamp() for token_id, subject, revoked_at in found}


def add_revocation(database: Database, token_id: str | None, subject: str | None, *, reason: str) -> None:
    """Refuse one token by its id, or all that a subject was issued until now; later ones are valid.

    Raises:
        InvalidInput: no token can have such an id or subject, or the reason is empty.
    """
    (reason,) = stated(InvalidInput, reason)
    if not is_plain_name(token_id or subject or ""):
        raise InvalidInput("The id or subject must be plain text of 1 to {} characters.", NAME_MAX)
    with database.transaction() as connection:
        row = {"token_id": token_id, "subject": subject, "reason": reason, "revoked_at": database.clock()}
        connection.execute(sa.insert(token_revocations), row | {"revoked_by": database.account})
