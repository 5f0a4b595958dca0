"""Bulk loading by the usual means: each reads the file, checks the rows and stores the valid ones."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import orm

from tests.client_rows import FIELDS, body
from toolkit.domain.clients import Client
from toolkit.domain.requests import parse
from toolkit.errors import InvalidFields
from toolkit.operations.register.bulk_load.fields import FIELDS as RULES
from toolkit.storage.database import Database
from toolkit.storage.identifiers import new_id
from toolkit.storage.tables import addresses, clients

_COLUMN = {rule.name: rule.column for rule in RULES}
_IN_ADDRESS = [rule.column for rule in RULES if rule.in_address]


class _Person:
    id: UUID
    created_at: datetime

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


class _Place(_Person):
    client_id: UUID


def row_by_row(source: Path, url: str) -> float:
    """Each row through the pydantic model and the ORM, flushed every thousand rows, one transaction."""
    registry = orm.registry()
    registry.map_imperatively(_Person, clients)
    registry.map_imperatively(_Place, addresses)
    database = Database(url)
    started = time.perf_counter()
    with orm.Session(database.engine) as session, source.open(encoding="utf-8", newline="") as stream:
        for number, row in enumerate(csv.DictReader(stream, delimiter=";"), 1):
            try:
                client = parse(Client, body(row))
            except InvalidFields:
                continue
            person = _Person()
            for name, value in client.model_dump(exclude={"address"}).items():
                setattr(person, name, value)
            person.id, person.created_at = new_id(), datetime.now(UTC)
            place = _Place()
            for name, value in client.address.model_dump().items():
                setattr(place, name, value)
            place.id, place.client_id = new_id(), person.id
            session.add(person)
            session.add(place)
            if number % 1000 == 0:
                session.flush()
        session.commit()
    seconds = time.perf_counter() - started
    registry.dispose()
    database.dispose()
    return seconds


def pandera_and_to_sql(source: Path, url: str) -> float:
    """The columns checked by a pandera schema, the valid rows stored by ``DataFrame.to_sql``."""
    import pandas as pd
    import pandera.pandas as pandera

    patterns = {
        "cpf": r"^\d{11}$",
        "birthdate": r"^\d{4}-\d{2}-\d{2}$",
        "phoneNumber": r"^\d{11}$",
        "email": r"^[^@\s]+@[^@\s]+\.[a-z]+$",
        "address.neighborhood": r"^.{3,}$",
        "address.installationNumber": r"^.{7,11}$",
        "address.zipCode": r"^\d{8}$",
    }
    schema = pandera.DataFrameSchema(
        {
            name: pandera.Column(str, pandera.Check.str_matches(patterns[name]) if name in patterns else None)
            for name in FIELDS
        }
    )
    engine = sa.create_engine(url)
    started = time.perf_counter()
    frame = pd.read_csv(source, sep=";", dtype=str, keep_default_na=False)
    try:
        schema.validate(frame, lazy=True)
    except pandera.errors.SchemaErrors as errors:
        frame = frame.drop(index=errors.failure_cases["index"].dropna().unique())
    frame = frame.rename(columns=_COLUMN)
    frame["birthdate"] = pd.to_datetime(frame["birthdate"], format="%Y-%m-%d").dt.date
    frame["id"] = pd.Series([new_id() for _ in frame.index], frame.index)
    frame["created_at"] = datetime.now(UTC)
    places = frame[[*_IN_ADDRESS, "id"]].rename(columns={"id": "client_id"})
    places["id"] = pd.Series([new_id() for _ in frame.index], frame.index)
    with engine.begin() as connection:
        frame.drop(columns=_IN_ADDRESS).to_sql(
            "clients", connection, if_exists="append", index=False, dtype={"id": sa.Uuid()}
        )
        places.to_sql(
            "addresses",
            connection,
            if_exists="append",
            index=False,
            dtype={"id": sa.Uuid(), "client_id": sa.Uuid()},
        )
    seconds = time.perf_counter() - started
    engine.dispose()
    return seconds


def frictionless_alone(source: Path, url: str) -> float:  # it only validates
    """The file validated by a frictionless schema; nothing is stored."""
    from frictionless import Dialect, Resource, Schema
    from frictionless.formats import CsvControl

    constraints: Mapping[str, Mapping[str, Any]] = {
        "cpf": {"pattern": r"\d{11}"},
        "phoneNumber": {"pattern": r"\d{11}"},
        "address.neighborhood": {"minLength": 3},
        "address.installationNumber": {"minLength": 7, "maxLength": 11},
        "address.zipCode": {"pattern": r"\d{8}"},
    }
    fields = [
        {
            "name": name,
            "type": "date" if name == "birthdate" else "string",
            "constraints": {"required": True} | dict(constraints.get(name, {})),
        }
        for name in FIELDS
    ]
    started = time.perf_counter()
    Resource(
        path=source.name,
        basepath=str(source.parent),
        schema=Schema.from_descriptor({"fields": fields}),
        dialect=Dialect(controls=[CsvControl(delimiter=";")]),
    ).validate()
    return time.perf_counter() - started


PEERS: Mapping[str, Callable[[Path, str], float]] = {
    "row by row: pydantic and the ORM": row_by_row,
    "pandera and to_sql": pandera_and_to_sql,
    "frictionless, validation alone": frictionless_alone,
}


def write_workbook(source: Path, path: Path) -> None:
    """The same rows as a workbook, all cells text."""
    import xlsxwriter

    with source.open(encoding="utf-8", newline="") as stream:
        book = xlsxwriter.Workbook(str(path), {"constant_memory": True, "strings_to_formulas": False})
        sheet = book.add_worksheet("clientes")
        for number, row in enumerate(csv.reader(stream, delimiter=";")):
            sheet.write_row(number, 0, row)
        book.close()
