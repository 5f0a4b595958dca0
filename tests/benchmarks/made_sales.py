"""Made-up sales with their evidence, in a database."""

from datetime import UTC, datetime
from pathlib import Path

from toolkit.database.connection import raw

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def statements(name):
    """The statements of a file of SQL beside this module, by their names."""
    _, *parts = Path(__file__).with_name(name).read_text("utf-8").split("-- name: ")
    return dict(part.split("\n", 1) for part in parts)


_SQL = statements("made_sales.sql")


def fill(database, sales, partners=20):
    """Made-up sales: all groups and types, files of the right kind and some that are not, some unexamined.

    The events of the custody log come with them, without triggers; tables get their indexes when they are full.
    """
    with database.transaction() as begun:
        made = raw(begun)
        made.execute("SET LOCAL session_replication_role = replica; SET LOCAL maintenance_work_mem = '512MB'")
        made.execute(_SQL["emptied"].encode())  # no log is written for what a new file of a table gets
        indexes = made.execute(_SQL["indexes"].encode()).fetchall()
        made.execute("; ".join(f"DROP INDEX {name}" for name, _ in indexes).encode())
        made.execute(_SQL["sales"].replace(":sales", str(sales)).replace(":partners", str(partners)).encode())
        made.execute("; ".join(f"{definition}" for _, definition in indexes).encode())
    settle(database)


def settle(database):
    """Vacuum all tables and write them out, so that the server does neither while something is measured."""
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM ANALYZE")
        connection.exec_driver_sql("CHECKPOINT")


def lose_recordings(database):
    """Take the recordings out of the bucket, so that nearly every sale lacks one."""
    with database.transaction() as connection:
        raw(connection).execute(_SQL["no_recordings"].encode())
