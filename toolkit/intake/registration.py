"""Register one client (contract, "1. Register client"), and look for doubtful ones among all that are registered.

Nothing of a person but the masked CPF leaves the database where clients are looked through. The contract allows
what is found so: it is for people to look at, and no row is rejected for it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import Any, Final
from uuid import UUID

import psycopg
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.exc import DBAPIError

from toolkit.contract.fields import INSTALLATION_MAX, INSTALLATION_MIN, parse
from toolkit.contract.resources import (
    AREA_CODES,
    UNASSIGNED_CEP,
    Client,
    QualityWarning,
    RegisteredClient,
    oldest_birthdate,
)
from toolkit.database.connection import Database
from toolkit.database.service import clients, one_row, sales
from toolkit.database.tables import new_id
from toolkit.errors import AlreadyThere, InvalidField, InvalidFields, InvalidInput
from toolkit.message import LabelledEnum, Message

MESSAGE: Final = "Client created"

_REFUSALS: Final = (psycopg.IntegrityError, psycopg.DataError, psycopg.errors.RaiseException)
"""Errors by which the service's own rules refuse a row."""

_WITHOUT_VALUES: Final = {"varchar", "varchar_input", "bpchar", "bpchar_input", "ExecFindPartition"}
"""Functions of PostgreSQL that refuse a long text, or a row without a partition, and quote no value."""


def register_client(database: Database, body: Mapping[str, Any]) -> RegisteredClient:
    """Validate ``body`` (contract names) and store the client with its address, every time anew.

    Raises:
        InvalidFields: every invalid field at once; nothing was stored.
        AlreadyThere: the service keeps something of it only once.
    """
    client = parse(Client, body)
    add = database.service.over("add_clients", one_row("new_clients"))
    client_id, address_id = new_id(), new_id()
    stored = {"id": client_id, "address_id": address_id, "created_at": database.clock()}
    stored |= client.model_dump(exclude={"address"}) | client.address.model_dump()
    own = database.service.is_own  # what another service stores is read back, under the id that is answered
    with database.statement() if own else database.transaction() as connection, refusals():
        if not own:
            connection.execute(sa.text("SET CONSTRAINTS ALL IMMEDIATE"))
        if not connection.execute(add, stored).rowcount or not own:
            database.service.check_stored(connection, "add_clients", stored)
    return RegisteredClient(message=MESSAGE, client_id=client_id, address_id=address_id)


@contextmanager
def refusals() -> Iterator[None]:
    """Raise ``AlreadyThere`` or ``InvalidFields`` where the service's own rules refuse the row of a request."""
    try:
        yield
    except DBAPIError as error:
        if not isinstance(error.orig, _REFUSALS):
            raise
        about = error.orig.diag  # a value that it names in its details is not shown
        said = about.message_primary if about.source_function in _WITHOUT_VALUES else about.sqlstate
        named = about.constraint_name or about.column_name or said
        if isinstance(error.orig, psycopg.errors.UniqueViolation):
            raise AlreadyThere("Repeats what may stand only once in the service ({})", named) from None
        reason = Message("Breaks a rule of the service ({})", named)
        raise InvalidFields([InvalidField("body", reason)]) from None


def client_ids(database: Database, external_ids: Sequence[str]) -> dict[str, UUID]:
    """Return the ids of registered clients by ``externalId``; the oldest where one was registered twice."""
    query = (
        sa.select(clients.c.external_id, clients.c.id)
        .where(clients.c.external_id.in_(external_ids))
        .order_by(clients.c.created_at.desc(), clients.c.id.desc())
    )
    with database.transaction() as connection:
        return {row.external_id: row.id for row in connection.execute(query)}


_IDS: Final = 10
_INSTALLATION: Final = clients.c.installation_number


class Likeness(LabelledEnum):
    """The values that alike clients have in common."""

    SAME_CONTRACT = (
        "SAME_CONTRACT",
        "same CPF, installation and number at the distributor: registered more than once",
    )
    SAME_INSTALLATION = "SAME_INSTALLATION", "one installation with several CPFs"
    SAME_CPF = "SAME_CPF", "one CPF with several installations"
    SAME_EMAIL = "SAME_EMAIL", "one e-mail address with several CPFs"
    SAME_PHONE = "SAME_PHONE", "one phone number with several CPFs"


@dataclass(frozen=True, slots=True)
class ClientQuality:
    """The doubtful values and the alike clients that were found.

    Each of ``alike`` tells the ``likeness``, the ``number`` of clients, their masked ``cpf`` (``None`` where they
    have several) and the ``client_ids`` of the first of them.
    """

    clients: int
    counts: Mapping[str, int]  # clients by each ``QualityWarning`` that some have
    groups: Mapping[Likeness, int]  # the groups of clients that are alike, without those likenesses that have none
    alike: Sequence[sa.Row[Any]]  # the groups that are named, the largest of each likeness first


MOST_GROUPS: Final = 1_000_000


def client_quality(database: Database, today: date, most: int = 500) -> ClientQuality:
    """Look through all clients, in one snapshot of the database; name ``most`` groups of each likeness.

    Raises:
        InvalidInput: ``most`` is no such number.
    """
    if most not in range(1, MOST_GROUPS + 1):
        raise InvalidInput("{} must be a whole number from {} to {}", "most", 1, MOST_GROUPS)
    with database.snapshot() as connection:
        counts = connection.execute(_warnings(today)).mappings().one()
        found = {
            each: connection.execute(query.add_columns(sa.literal(str(each)).label("likeness")).limit(most)).all()
            for each, query in _ALIKE.items()
        }
    return ClientQuality(
        clients=counts["clients"],
        counts={code: counts[code] for code in QualityWarning if counts.get(code)},
        groups={likeness: rows[0].groups for likeness, rows in found.items() if rows},
        alike=[row for rows in found.values() for row in rows],
    )


def _warnings(today: date) -> sa.Select[Any]:
    """Count the clients with each doubtful value."""
    warnings = {
        QualityWarning.AREA_CODE_UNKNOWN: sa.func.left(clients.c.phone_number, 2).not_in(sorted(AREA_CODES)),
        QualityWarning.CEP_UNASSIGNED: sa.func.replace(clients.c.zip_code, "-", "").between(*UNASSIGNED_CEP),
        QualityWarning.BIRTHDATE_IN_FUTURE: clients.c.birthdate > today,
        QualityWarning.BIRTHDATE_TOO_OLD: clients.c.birthdate < oldest_birthdate(today),
        QualityWarning.CPF_SHAPE: ~clients.c.cpf.regexp_match("^[0-9]{11}$"),
        QualityWarning.INSTALLATION_LENGTH: ~sa.func.length(_INSTALLATION).between(
            INSTALLATION_MIN, INSTALLATION_MAX
        ),
        QualityWarning.NO_EMAIL: clients.c.email.is_(None),
        QualityWarning.NO_PHONE: clients.c.phone_number.is_(None),
        QualityWarning.NO_SALE: ~sa.exists().where(sales.c.client_id == clients.c.id),
    }
    number = sa.func.count(sa.distinct(clients.c.id))
    counted: list[Any] = [number.filter(condition).label(str(code)) for code, condition in warnings.items()]
    return sa.select(*counted, number.label("clients")).select_from(clients)


def _alike(same: Sequence[sa.ColumnElement[Any]], several: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """Select the clients that have these values in common and ``several`` not, by group, the largest first."""
    number = sa.func.count(sa.distinct(clients.c.id))
    cpf = sa.case((sa.func.min(clients.c.cpf) == sa.func.max(clients.c.cpf), sa.func.min(clients.c.cpf)))
    shown = sa.func.regexp_replace(cpf, "^[0-9]{3}([0-9]{3})([0-9]{3})[0-9]{2}$", r"***.\1.\2-**")
    masked = sa.case((shown != cpf, shown), (cpf.is_not(None), "***"))  # as mask_cpf does
    client_id = sa.cast(clients.c.id, sa.Text)
    ids = sa.func.array_agg(sa.distinct(client_id), type_=ARRAY(sa.Text))
    return (
        sa.select(
            number.label("number"),
            masked.label("cpf"),
            ids[1:_IDS].label("client_ids"),
            sa.func.count().over().label("groups"),
        )
        .select_from(clients)
        .where(*(each.is_not(None) for each in same))
        .group_by(*same)
        .having(sa.func.count(sa.distinct(several)) > 1)
        .order_by(number.desc(), sa.func.min(client_id))
    )


_ALIKE: Final = {
    Likeness.SAME_CONTRACT: _alike([clients.c.cpf, _INSTALLATION, clients.c.number_on_dealership], clients.c.id),
    Likeness.SAME_INSTALLATION: _alike([_INSTALLATION], clients.c.cpf),
    Likeness.SAME_CPF: _alike([clients.c.cpf], _INSTALLATION),
    Likeness.SAME_EMAIL: _alike([sa.func.lower(clients.c.email)], clients.c.cpf),
    Likeness.SAME_PHONE: _alike([clients.c.phone_number], clients.c.cpf),
}
