"""Bulk loading of clients beside its floor and its peers.

The floor is two COPYs of already split CSV, ids included, into the same two tables with the same keys and
indexes, in one transaction. Four processes that load four files have four such connections for a floor, and at
most 1.2 of it for a goal, too. Goals on 2 cores, for one million rows of which 2 % are bad: the whole command at
most 1.2 floors, a dry run of at least 500,000 rows a second, 15 times as fast as row by row; the same memory
within 20 % for one and five million rows, under 500 MB; a workbook of 100,000 rows read and judged in 1.3
times what the reader library takes alone. Where others work on the machine, too, CPU seconds tell more: those of
the client and of the server are shown beside the seconds.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from uuid import uuid4

import psycopg
import pyarrow as pa
import sqlalchemy as sa
from python_calamine import load_workbook

from tests.benchmarks import bulk_load_peers as peers
from tests.benchmarks.client_files import write_clients
from tests.benchmarks.commands import server_cpu, toolkit
from tests.benchmarks.timing import Timed, line, timed
from tests.client_rows import FIELDS
from tests.own_services import own_home
from toolkit.operations.register.bulk_load import LoadOptions, load_clients
from toolkit.operations.register.bulk_load.copying import rows_of
from toolkit.operations.register.bulk_load.verdicts import decide
from toolkit.operations.spreadsheets import TableSource, open_table
from toolkit.storage import embedded, schema
from toolkit.storage.database import Database
from toolkit.storage.identifiers import new_ids
from toolkit.storage.tables import addresses, clients

_ROUNDS = 3
_PROCESSES = 4
_SIDE_BY_SIDE_ROWS = 1_000_000
_PEER_ROWS = 20_000
_WORKBOOK_ROWS = 100_000


def main(scale: float) -> None:
    """Print the measurements with their ratios."""
    with own_home() as home:
        bench = _Bench(home, max(1, round(1_000_000 * scale)))
        bench.against_floor()
        bench.side_by_side(max(1, round(_SIDE_BY_SIDE_ROWS * scale)))
        bench.against_peers(max(1, round(_PEER_ROWS * min(1.0, scale))))
        bench.memory()
        bench.workbook(max(1, round(_WORKBOOK_ROWS * scale)))


def _beside(load: Timed[None], floor: Timed[None]) -> str:
    """Return both ratios as they are shown."""
    ratio, of_cpu = load.seconds / floor.seconds, load.cpu / floor.cpu
    return f"{ratio:.2f} floors (goal 1.2); {load.cpu:.2f} s of CPU, {of_cpu:.2f} floors"


class _Bench:
    def __init__(self, home: Path, rows: int) -> None:
        self._home, self._rows = home, rows
        self._url = sa.make_url(embedded.database_url(home))
        self._source = write_clients(home / "clients.csv", rows)
        self._server = sa.create_engine(self._url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)

    def against_floor(self) -> None:
        """The whole command, with and without writing."""
        split = self._split()
        floor, load, dry_run = self._in_turn(
            lambda url: _copy(url, *split),
            lambda url: self._toolkit(url, self._source),
            lambda url: self._toolkit(url, self._source, "--dry-run"),
        )
        self._load_rate = self._rows / load.seconds
        print(f"{'':46}{'seconds':>8}{'rows/s':>12}  ratio")
        line("floor: two COPYs", floor.seconds, self._rows, f"1.00 floors; {floor.cpu:.2f} s of CPU")
        line("toolkit clients load, whole command", load.seconds, self._rows, _beside(load, floor))
        line("toolkit clients load --dry-run", dry_run.seconds, self._rows, "(goal 500,000 rows/s)")

    def side_by_side(self, rows: int) -> None:
        """Four processes that load four files, beside four connections that copy what they accept."""
        sources = [
            write_clients(self._home / f"part{part}.csv", rows, seed=2 + part) for part in range(_PROCESSES)
        ]
        split = [self._split(source) for source in sources]
        with ThreadPoolExecutor(_PROCESSES) as threads:
            floor, load = self._in_turn(
                lambda url: list(threads.map(lambda paths: _copy(url, *paths), split)),
                lambda url: list(threads.map(lambda source: self._toolkit(url, source), sources)),
            )
        name, ratio = f"floor: {_PROCESSES} connections, two COPYs each", f"1.00 floors; {floor.cpu:.2f} s of CPU"
        line(name, floor.seconds, _PROCESSES * rows, ratio)
        name, ratio = f"{_PROCESSES} processes load {_PROCESSES} files", _beside(load, floor)
        line(name, load.seconds, _PROCESSES * rows, ratio)

    def _in_turn(self, *works: Callable[[str], object]) -> list[Timed[None]]:
        """Return the median of some rounds of each, every time in a fresh database."""
        rounds: list[list[tuple[float, float]]] = [[] for _ in works]
        for _ in range(_ROUNDS):
            for work, times in zip(works, rounds, strict=True):
                with self._database() as url:
                    taken = timed(partial(work, url), partial(server_cpu, self._home))
                    times.append((taken.seconds, taken.cpu))
        middle = ([statistics.median(each) for each in zip(*times, strict=True)] for times in rounds)
        return [Timed(seconds, cpu, None) for seconds, cpu in middle]

    def against_peers(self, rows: int) -> None:
        """The same work by usual means, on fewer rows."""
        source = write_clients(self._home / "fewer.csv", rows)
        for name, peer in peers.PEERS.items():
            with self._database() as url:
                try:
                    seconds = peer(source, url)
                except ImportError as error:
                    print(f"{name:46}not measured: {error.name} is not installed")
                    continue
            line(name, seconds, rows, f"the load is {self._load_rate * seconds / rows:.0f} times as fast")

    def memory(self) -> None:
        """The peak of the whole command for one file and one five times as long."""
        peaks = []
        for factor in (1, 5):
            source = write_clients(self._home / f"times{factor}.csv", factor * self._rows)
            with self._database() as url:
                run = toolkit(["clients", "load", source, "--out", self._home / "out"], self._environ(url))
            peaks.append(run.peak_mb)
            source.unlink()
            print(f"{f'memory, {factor * self._rows:,} rows':46}{run.peak_mb:>6.0f} MB{run.seconds:>12.1f} s")
        print(f"{'':46}{peaks[1] / peaks[0]:.2f} times as much for 5 times the rows (goal 1.2, under 500 MB)")

    def workbook(self, rows: int) -> None:
        """A workbook read and judged, beside the reader library alone; in this process, both without start-up."""
        path = self._home / "clients.xlsx"
        peers.write_workbook(write_clients(self._home / "workbook.csv", rows), path)
        alone, judged = [], []
        with self._database() as url:
            database = Database(url)
            for _ in range(_ROUNDS):
                alone.append(timed(lambda: load_workbook(path).get_sheet_by_index(0).to_python()).seconds)
                load = partial(load_clients, database, [path], out=self._home / "out", dry_run=True, clock=_now)
                judged.append(timed(load).seconds)
            database.dispose()
        reader, ours = statistics.median(alone), statistics.median(judged)
        line("workbook: calamine alone", reader, rows, "1.00 readers")
        line("workbook: read and judged", ours, rows, f"{ours / reader:.2f} readers (goal 1.3)")

    @contextmanager
    def _database(self) -> Iterator[str]:
        """A fresh database with all tables and keys, and no rows."""
        name = f"bench_{uuid4().hex}"
        url = self._url.set(database=name).render_as_string(hide_password=False)
        with self._server.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        database = Database(url)
        schema.upgrade(database, service_tables=True)
        database.dispose()
        with self._server.connect() as connection:
            connection.exec_driver_sql("CHECKPOINT")
        yield url
        with self._server.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")

    def _environ(self, url: str) -> dict[str, str]:
        return {**os.environ, "TOOLKIT_HOME": str(self._home), "DATABASE_URL": url}

    def _toolkit(self, url: str, source: Path, *options: str) -> float:
        run = toolkit(["clients", "load", source, "--out", self._home / "out", *options], self._environ(url))
        assert run.status in (0, 3), run.output
        return run.seconds

    def _split(self, source: Path | None = None) -> tuple[Path, Path]:
        """The accepted rows as the two tables have them, as usual CSV."""
        source = source or self._source
        paths = (self._home / f"{source.stem}-clients.csv", self._home / f"{source.stem}-addresses.csv")
        columns = {name: position for position, name in enumerate(FIELDS)}
        now = _now()
        with paths[0].open("wb") as people, paths[1].open("wb") as places:
            for chunk in open_table(TableSource(source)).chunks():
                verdict = decide(chunk, columns, LoadOptions(), now.date())
                mask = pa.array(verdict.accepted)
                accepted = {name: column.filter(mask) for name, column in verdict.values.items()}
                rows = rows_of(
                    accepted,
                    now,
                    lambda count: (new_ids(count), new_ids(count)),
                    (chunk, verdict.accepted.nonzero()[0]),
                )
                # None of these values holds a comma or a quotation mark.
                people.write(rows.clients.tobytes().replace(b"\x01", b","))
                places.write(rows.addresses.tobytes().replace(b"\x01", b","))
        return paths


def _copy(url: str, people: Path, places: Path) -> float:
    plain = sa.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain) as connection:
        started = time.perf_counter()
        for path, table in ((people, clients), (places, addresses)):
            statement = f"COPY {table.name} ({', '.join(table.columns.keys())}) FROM STDIN (FORMAT csv)"
            with connection.cursor() as cursor, cursor.copy(statement) as copy, path.open("rb") as stream:
                while block := stream.read(1 << 20):
                    copy.write(block)
        connection.commit()
        return time.perf_counter() - started


def _now() -> datetime:
    return datetime.now(UTC)
