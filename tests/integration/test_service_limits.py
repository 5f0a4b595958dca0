"""Clients that the service's own columns do not take: rejected one by one, with the column and the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.client_rows import body, client, read_csv, write_csv
from tests.conftest import Run, _fresh
from tests.integration.test_service_maps import MAPS, NOW, load, mapped
from toolkit.errors import InvalidFields
from toolkit.operations.register.registration import register_client
from toolkit.storage import schema
from toolkit.storage.database import Database
from toolkit.storage.service_map import load_map

NARROW = """
    ALTER TABLE "Customer" ALTER "firstName" TYPE varchar(12), ALTER "enrollment" TYPE integer USING 1,
        ALTER "email" SET DEFAULT 'none@example.com', ADD CONSTRAINT surname CHECK ("lastName" !~ '^O'' ');
    UPDATE "Customer" SET "email" = DEFAULT;
    ALTER TABLE "Customer" ALTER "email" SET NOT NULL;
    CREATE DOMAIN city_name AS text CHECK (VALUE <> 'Nowhere');
    ALTER TABLE "InstallationAddress" ALTER "city" TYPE city_name;
"""


@pytest.fixture
def latin_database(server: sa.Engine) -> Iterator[Database]:
    """A database of an older system, which cannot write every character."""
    yield from _fresh(server, "template0", "ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C'")


def loaded(
    run: Run, database: Database, folder: Path, rows: Sequence[Mapping[str, str]]
) -> tuple[tuple[int, int], list[tuple[str, str]]]:
    """Return how many clients the first map's service took and refused, and the errors by their lines."""
    source = write_csv(folder / "clients.csv", rows)
    environ = {
        "DATABASE_URL": database.engine.url.render_as_string(hide_password=False),
        "TOOLKIT_SERVICE_MAP": str(MAPS / "typescript.toml"),
        "TOOLKIT_HOME": str(folder / "home"),
    }
    run("db", "upgrade", within=environ)
    told = run("clients", "load", source, "--out", folder, "--json", ends=3, within=environ).told
    rejected = read_csv(folder / "clients.csv.rejected.csv")
    return (told["accepted"], told["rejected"]), [(row["line"], row["errors"]) for row in rejected]


def test_clients_that_do_not_fit_are_rejected_alone(run: Run, latin_database: Database, tmp_path: Path) -> None:
    load(latin_database, "typescript")
    with latin_database.transaction() as connection:
        connection.exec_driver_sql(NARROW.replace("%", "%%"))
    rows = [
        client(1, firstName="José", enrollment="1"),
        client(2, firstName="Maximilianinho", enrollment="99999999999"),
        client(3, lastName="O' Neill", enrollment="3"),
        client(4, address__city="Nowhere", enrollment="4"),
        client(5, firstName="Zoë \u0141", enrollment="5"),
        client(6, email="", enrollment="6"),
    ]
    counts, errors = loaded(run, latin_database, tmp_path, rows)
    assert counts == (2, 4)
    place = 'public."Customer"'
    assert errors == [
        (
            "3",
            f"enrollment: Is no number that the service takes ({place}.enrollment); "
            f"firstName: Has more than the 12 characters that the service takes ({place}.firstName)",
        ),
        ("4", f"lastName: Breaks a rule of the service ({place}.lastName)"),
        ("5", 'address.city: Breaks a rule of the service (public."InstallationAddress".city)'),
        ("6", "firstName: Holds a character that the database cannot write (LATIN1)"),
    ]
    with latin_database.transaction() as connection:
        query = 'SELECT "firstName", "email" FROM "Customer" WHERE "enrollment" IN (1, 6) ORDER BY "firstName"'
        names = [tuple(row) for row in connection.exec_driver_sql(query)]
    assert ("José", client(1)["email"]) in names
    assert any(email == "none@example.com" for _, email in names)


def test_a_registration_that_does_not_fit_is_refused_by_its_field(empty_database: Database) -> None:
    load(empty_database, "typescript")
    with empty_database.transaction() as connection:
        connection.exec_driver_sql(NARROW.replace("%", "%%"))
    with mapped(empty_database) as database:
        schema.upgrade(database, service_map=load_map(MAPS / "typescript.toml"))
        with pytest.raises(InvalidFields) as refused:
            register_client(database, body(client(1, firstName="Maximilianinho", enrollment="1")), lambda: NOW)
    assert [each.field for each in refused.value.invalid] == ["firstName"]


UNIQUE = """
    ALTER TABLE "Customer" ADD UNIQUE ("enrollment"), ADD CONSTRAINT mails UNIQUE ("email") INITIALLY DEFERRED,
        ADD CONSTRAINT names CHECK ("firstName" <> "lastName");
    UPDATE "Customer" SET "enrollment" = '7';
"""


def test_rows_that_break_rules_over_several_rows_or_columns_are_rejected_and_the_others_load(
    run: Run, empty_database: Database, tmp_path: Path
) -> None:
    load(empty_database, "typescript")
    with empty_database.transaction() as connection:
        connection.exec_driver_sql(UNIQUE)
    rows = [client(number, enrollment=str(100 + number)) for number in range(1, 30)]
    rows[3]["enrollment"] = "7"
    rows[8]["enrollment"] = rows[20]["enrollment"]
    rows[11]["firstName"] = rows[11]["lastName"]
    rows[26]["email"] = rows[2]["email"]
    counts, errors = loaded(run, empty_database, tmp_path, rows)
    assert counts == (25, 4)
    once = "row: Repeats what may stand only once in the service (Customer_enrollment_key)"
    assert errors == [
        ("5", once),
        ("13", "row: Breaks a rule of the service (names)"),
        ("22", once),
        ("28", "row: Repeats what may stand only once in the service (mails)"),
    ]
    with empty_database.transaction() as connection:
        query = """SELECT count(*) FROM "Customer" JOIN "InstallationAddress" ON "customerId" = "Customer".id"""
        assert connection.exec_driver_sql(query).scalar_one() == 26


def test_a_column_that_the_service_altered_is_seen_without_a_restart(
    empty_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(empty_database, "typescript")
    monkeypatch.setattr("toolkit.operations.register.registration.FRESH", 0.0)
    long_name = body(client(1, firstName="Maximilianinho"))
    with mapped(empty_database) as database:
        schema.upgrade(database, service_map=load_map(MAPS / "typescript.toml"))
        register_client(database, long_name, lambda: NOW)
        with empty_database.transaction() as connection:
            connection.exec_driver_sql('ALTER TABLE "Customer" ADD CHECK (length("firstName") < 9) NOT VALID')
        with pytest.raises(InvalidFields, match="Breaks a rule of the service"):
            register_client(database, long_name, lambda: NOW)
