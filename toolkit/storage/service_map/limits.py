"""Find the columns of the service that take less than the contract allows, so that rows may be refused."""

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

import sqlalchemy as sa

from toolkit.storage.database import Database
from toolkit.storage.service_map.catalog import read_catalog
from toolkit.storage.service_map.expressions import quoted
from toolkit.storage.service_map.model import NEEDED
from toolkit.storage.service_map.triggers import GIVEN, WRITTEN
from toolkit.storage.service_map.writing import kept
from toolkit.storage.tables import OWN_TABLES


@dataclass(frozen=True)
class Limit:
    """The limits of the column that one of the contract's is written into; ``place`` names it."""

    column: str
    place: str
    length: int | None
    """Characters that it takes of the contract's value, without those that a mask adds."""
    largest: int | None
    """The largest number that it takes, where it takes numbers alone."""
    values: frozenset[str] | None
    """The contract's values that it takes, where they are listed."""
    required: bool
    rules: tuple[str, ...]
    """SQL over ``this``, false for a value that it does not take."""
    written: str
    """SQL that gives the value as it is written, from the contract's (``GIVEN``)."""


@dataclass(frozen=True)
class Limits:
    """The limits of one of the contract's relations; ``encoding`` is the database's, where it cannot write all."""

    columns: tuple[Limit, ...] = ()
    encoding: str | None = None


_known: WeakKeyDictionary[Database, dict[str, tuple[float, Limits]]] = WeakKeyDictionary()


def limits(database: Database, name: str, *, age: float = math.inf) -> Limits:
    """Return the limits of a relation, read at most ``age`` seconds ago; none in the embedded database."""
    if database.embedded and not database.mapped:
        return Limits()
    found = _known.setdefault(database, {})
    if name not in found or time.monotonic() - found[name][0] > age:
        found[name] = (time.monotonic(), _read(database, name))
    return found[name][1]


def broken(database: Database, limit: Limit, texts: Sequence[str]) -> set[str]:
    """Return the values that a rule of the service's column does not take."""
    rules = " AND ".join(f"({rule})" for rule in limit.rules)
    query = f"""
        SELECT value FROM unnest(%s::text[]) AS given(value),
        LATERAL (SELECT {limit.written} AS {quoted(limit.place.rpartition(".")[2])}) AS this
        WHERE ({rules}) IS FALSE
    """  # noqa: S608  # the service's own rules
    with database.transaction() as connection:
        rows = connection.exec_driver_sql(
            query.replace("%", "%%").replace("%%s::text[]", "%s::text[]"), (list(texts),)
        )
        return set(rows.scalars())


def can_write(encoding: str, text: str) -> bool:
    """Tell whether a database of this encoding can write the text; where only PostgreSQL knows, it decides."""
    try:
        text.encode(_CODECS.get(encoding, encoding))
    except UnicodeEncodeError:
        return False
    except LookupError:
        return True
    return True


_CODECS: Final = {
    f"LATIN{number}": f"iso8859-{part}"
    for number, part in {1: 1, 2: 2, 3: 3, 4: 4, 5: 9, 6: 10, 7: 13, 8: 14, 9: 15, 10: 16}.items()
} | {f"WIN{page}": f"cp{page}" for page in (866, 874, 1250, 1251, 1252, 1253, 1254, 1255, 1256, 1257, 1258)}
_WRITE_ALL: Final = {"UTF8", "SQL_ASCII"}
_LARGEST: Final = {"smallint": 2**15 - 1, "integer": 2**31 - 1, "bigint": 2**63 - 1}


def _read(database: Database, name: str) -> Limits:
    with database.transaction() as connection:
        encoding = connection.execute(sa.text("SELECT current_setting('server_encoding')")).scalar_one()
        if database.mapped:
            targets = json.loads(kept(connection).get(f"{name}.{WRITTEN}", "{}"))
        else:
            names = [column.name for column in NEEDED[name].columns]
            targets = {each: [f"{OWN_TABLES}.{name}", each, GIVEN, "", {}] for each in names}
        catalog = read_catalog(connection) if targets else {}
    columns = []
    for column, (table, name_there, written, mask, codes) in targets.items():
        if table not in catalog or (target := catalog[table].columns.get(name_there)) is None:
            continue
        added, labels = len(mask) - mask.count("#"), set(target.labels)
        length = None if target.length is None else max(target.length - added, 0)
        values = frozenset({*labels, *(str(meaning) for code, meaning in codes.items() if code in labels)}) or None
        largest, required = _LARGEST.get(target.cast), target.required and not target.filled
        if length or largest or values is not None or required or target.rules:
            place = f"{table}.{target.name}"
            columns.append(Limit(column, place, length, largest, values, required, target.rules, written))
    return Limits(tuple(columns), None if encoding in _WRITE_ALL else encoding)
