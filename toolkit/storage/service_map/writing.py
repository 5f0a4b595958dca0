"""Answer whether the service's relations can be written, before a command reads or writes anything."""

import json
import math
import time
from typing import Final
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.errors import WriteRefused
from toolkit.storage.database import Database
from toolkit.storage.service_map.catalog import read_catalog
from toolkit.storage.service_map.model import NEEDED, own_tables
from toolkit.storage.service_map.obstacles import obstacles
from toolkit.storage.tables import OWN_TABLES, SERVICE

FRESH: Final = 5.0
"""Seconds for which a long-running process relies on what it read of the service's tables."""

_known: WeakKeyDictionary[Database, tuple[float, dict[str, str]]] = WeakKeyDictionary()


def require_writable(database: Database, *works: str) -> None:
    """Make sure that the service's relations can be written; each work is as ``clients.insert``.

    Raises:
        WriteRefused: naming the column that stands in the way.
    """
    found = told_of(database, FRESH)
    for work in works:
        if reason := found.get(work):
            raise WriteRefused(reason)


def can_write(database: Database, work: str) -> bool:
    """Tell whether ``require_writable`` would let this work pass."""
    return work not in told_of(database)


def told_of(database: Database, age: float = math.inf) -> dict[str, str]:
    """Return what is known of writing each relation, obstacles first of all, read at most ``age`` seconds ago."""
    if database.embedded and not database.mapped:
        return {}
    if database not in _known or time.monotonic() - _known[database][0] > age:
        with database.transaction() as connection:
            found = kept(connection) if database.mapped else _found(connection)
        _known[database] = (time.monotonic(), found)
    return _known[database][1]


def kept(connection: Connection) -> dict[str, str]:
    """Return what the comments of the views say."""
    found = {}
    for name in NEEDED:
        comment = connection.scalar(
            sa.text("SELECT obj_description(to_regclass(:view), 'pg_class')"), {"view": f"{SERVICE}.{name}"}
        )
        for work, reason in json.loads(comment or "{}").items():
            found[f"{name}.{work}"] = reason
    return found


def _found(connection: Connection) -> dict[str, str]:
    """Return the obstacles to writing the contract's own tables: views, and columns that it does not know."""
    catalog = read_catalog(connection)
    found = {}
    for name in NEEDED:
        table = catalog.get(f"{OWN_TABLES}.{name}")
        if table is not None and table.kind == "v" and _is_writable_view(connection, name):
            continue
        for work, reason in obstacles(own_tables(), name, catalog.get).items():
            found[f"{name}.{work}"] = reason
    return found


def _is_writable_view(connection: Connection, name: str) -> bool:
    found: bool = connection.execute(
        sa.text("SELECT pg_relation_is_updatable(to_regclass(:name), true) & 12 = 12"),
        {"name": f"{OWN_TABLES}.{name}"},
    ).scalar_one()
    return found
