"""Registering a client stores the person and the address, or nothing."""

from collections.abc import Callable
from datetime import datetime

import pytest
import sqlalchemy as sa

from tests.unit.test_fields import body
from toolkit.errors import DatabaseUnavailable, InvalidFields
from toolkit.operations.register.registration import register_client
from toolkit.storage.database import Database
from toolkit.storage.tables import addresses, clients


def test_a_client_is_stored_with_its_address(database: Database, clock: Callable[[], datetime]) -> None:
    registered = register_client(database, body(rg="12.345", zipCode="ignored"), clock)
    with database.transaction() as connection:
        person = connection.execute(sa.select(clients)).one()
        address = connection.execute(sa.select(addresses)).one()
    assert (person.id, person.cpf, person.rg) == (registered.client_id, "52998224725", "12.345")
    assert (address.id, address.client_id, address.zip_code) == (
        registered.address_id,
        registered.client_id,
        "13010000",
    )
    assert person.created_at == clock()


def test_the_same_client_twice_is_two_clients(database: Database, clock: Callable[[], datetime]) -> None:
    first, second = (register_client(database, body(), clock) for _ in range(2))
    assert first.client_id != second.client_id


def test_an_invalid_client_leaves_nothing_behind(database: Database, clock: Callable[[], datetime]) -> None:
    with pytest.raises(InvalidFields):
        register_client(database, body(address_zipCode="1"), clock)
    with database.transaction() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(clients)) == 0


def test_a_database_that_does_not_answer_is_named_without_its_password(clock: Callable[[], datetime]) -> None:
    nowhere = Database("postgresql+psycopg://user:pass-word@127.0.0.1:1/db")
    with pytest.raises(DatabaseUnavailable, match=r"127\.0\.0\.1:1/db does not answer") as caught:
        register_client(nowhere, body(), clock)
    assert "pass-word" not in str(caught.value)
    assert caught.value.__cause__ is None
