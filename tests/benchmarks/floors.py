"""Databases of their own in one server, and works that are measured in turn, each beside its floor."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import uuid4

import psycopg
import sqlalchemy as sa

from tests.benchmarks.commands import server_cpu, toolkit
from tests.benchmarks.timing import timed
from toolkit.storage import embedded, schema
from toolkit.storage.database import Database

ROUNDS = 3
PROCESSES = 4
"""So many load at once, and so many connections copy as their floor."""


@dataclass(frozen=True)
class Spent:
    """Seconds by the clock, and those of the processors: of the clients and of the server."""

    seconds: float
    client: float
    server: float

    def beside(self, floor: Spent) -> str:
        """Return the seconds and their ratios to a floor as they are shown."""
        ratio, cpu = self.seconds / floor.seconds, self.client + self.server
        of_cpu = cpu / (floor.client + floor.server)
        apart = f"{self.client:.2f} s of the clients, {self.server:.2f} s of the server"
        return f"{ratio:.2f} floors; CPU {of_cpu:.2f} floors: {apart}"


class OwnServer:
    """The PostgreSQL under a home that nobody else uses; ``prepare`` fills each fresh database."""

    def __init__(self, home: Path, prepare: Callable[[Database], object] = lambda _: None) -> None:
        self.home = home
        self._prepare = prepare
        self._url = sa.make_url(embedded.database_url(home))
        self._server = sa.create_engine(self._url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)

    @contextmanager
    def database(self) -> Iterator[str]:
        """A fresh database with all tables and keys, and no other rows than the prepared ones."""
        name = f"bench_{uuid4().hex}"
        url = self._url.set(database=name).render_as_string(hide_password=False)
        with self._server.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        database = Database(url)
        schema.upgrade(database, service_tables=True)
        self._prepare(database)
        database.dispose()
        with self._server.connect() as connection:
            connection.exec_driver_sql("CHECKPOINT")
        yield url
        with self._server.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")

    def in_turn(self, *works: Callable[[str], object]) -> list[Spent]:
        """Return the median of some rounds of each, every time in a fresh database."""
        rounds: list[list[tuple[float, float, float]]] = [[] for _ in works]
        for _ in range(ROUNDS):
            for work, times in zip(works, rounds, strict=True):
                with self.database() as url:
                    before = server_cpu(self.home)
                    taken = timed(partial(work, url))
                    times.append((taken.seconds, taken.cpu, server_cpu(self.home) - before))
        return [Spent(*(statistics.median(each) for each in zip(*times, strict=True))) for times in rounds]

    def environ(self, url: str) -> dict[str, str]:
        """Return the environment of a command that works in a database."""
        return {**os.environ, "TOOLKIT_HOME": str(self.home), "DATABASE_URL": url}

    def load(self, url: str, what: str, source: Path, *options: str) -> None:
        """Run a whole command that loads a file."""
        run = toolkit([what, "load", source, "--out", self.home / "out", *options], self.environ(url))
        assert run.status in (0, 3), run.output


def copy(url: str, sources: Mapping[str, Path]) -> float:
    """Copy CSV into places, tables with the names of their columns, in one transaction; return its seconds."""
    plain = sa.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain) as connection:
        started = time.perf_counter()
        for place, path in sources.items():
            statement = f"COPY {place} FROM STDIN (FORMAT csv)"
            with connection.cursor() as cursor, cursor.copy(statement) as copying, path.open("rb") as stream:
                while block := stream.read(1 << 20):
                    copying.write(block)
        connection.commit()
        return time.perf_counter() - started
