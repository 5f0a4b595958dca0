"""A home with a PostgreSQL and a bucket that nothing else uses, for a benchmark."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolkit import embedded
from toolkit.database import schema
from toolkit.database.connection import Database


@contextmanager
def own_home() -> Iterator[Path]:
    """A ``TOOLKIT_HOME``, gone at the end with the servers that were started in it."""
    home = Path(tempfile.mkdtemp(prefix="own-", dir="/tmp"))  # open to the account of PostgreSQL
    try:
        yield home
    finally:
        embedded.stop(home)
        shutil.rmtree(home)


@contextmanager
def own_database() -> Iterator[tuple[Database, Path]]:
    """A migrated database without rows, and the home that it is in."""
    with own_home() as home:
        database = Database(embedded.database_url(home), embedded=True)
        schema.upgrade(database, service_tables=True)
        yield database, home
        database.dispose()
