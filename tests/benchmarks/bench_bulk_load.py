"""Bulk loading of clients beside its floor and its peers.

The floor is two COPYs of already split CSV, ids included, into the same two tables with the same keys and
indexes, in one transaction. Its ids are random (version 4), as ``gen_random_uuid()`` and most services make them;
beside it stands the same with ids in the order of time (version 7), as the load makes them: their places in an
index cost less. Four processes that load four files have four such connections for a floor, and at most 1.2 of it
for a goal, beside ids in order, too. Goals on 2 cores, for one million rows of which 2 % are bad: the whole
command at most 1.2 floors, a dry run of at least 500,000 rows a second, 15 times as fast as row by row; the
same memory within 20 % for one and five million rows, under 500 MB; a workbook of 100,000 rows read and judged
in 1.3 times what the reader library takes alone. Where others work on the machine, too, CPU seconds tell more:
those of the client and of the server are shown beside the seconds.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from python_calamine import load_workbook

from tests.benchmarks import bulk_load_peers as peers
from tests.benchmarks.client_files import write_clients
from tests.benchmarks.commands import toolkit
from tests.benchmarks.floors import PROCESSES, ROUNDS, OwnServer, copy
from tests.benchmarks.timing import line, timed
from tests.client_rows import FIELDS
from tests.own_services import own_home
from toolkit.operations.register.bulk_load import LoadOptions, load_clients
from toolkit.operations.register.bulk_load.verdicts import decide
from toolkit.operations.spreadsheets import TableSource, open_table
from toolkit.operations.spreadsheets.text_bytes import Bytes, values
from toolkit.storage.database import Database
from toolkit.storage.identifiers import new_ids
from toolkit.storage.tables import addresses, clients

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


class _Bench:
    def __init__(self, home: Path, rows: int) -> None:
        self._home, self._rows = home, rows
        self._source = write_clients(home / "clients.csv", rows)
        self._server = OwnServer(home)

    def against_floor(self) -> None:
        """The whole command, with and without writing."""
        ordered, random = self._split(self._source)
        floor, floor_in_order, load, dry_run = self._server.in_turn(
            lambda url: copy(url, random),
            lambda url: copy(url, ordered),
            lambda url: self._server.load(url, "clients", self._source),
            lambda url: self._server.load(url, "clients", self._source, "--dry-run"),
        )
        self._load_rate = self._rows / load.seconds
        print(f"{'':46}{'seconds':>8}{'rows/s':>12}  ratio")
        line("floor: two COPYs", floor.seconds, self._rows, floor.beside(floor))
        line(
            "the same with ids in the order of time",
            floor_in_order.seconds,
            self._rows,
            floor_in_order.beside(floor),
        )
        line("toolkit clients load, whole command", load.seconds, self._rows, f"{load.beside(floor)} (goal 1.2)")
        line("", load.seconds, self._rows, f"{load.beside(floor_in_order)}, with ids in order (goal 1.2)")
        line("toolkit clients load --dry-run", dry_run.seconds, self._rows, "(goal 500,000 rows/s)")

    def side_by_side(self, rows: int) -> None:
        """Four processes that load four files, beside four connections that copy what they accept."""
        sources = [write_clients(self._home / f"part{part}.csv", rows, seed=2 + part) for part in range(PROCESSES)]
        ordered, random = zip(*map(self._split, sources), strict=True)
        with ThreadPoolExecutor(PROCESSES) as threads:
            floor, floor_in_order, load = self._server.in_turn(
                lambda url: list(threads.map(partial(copy, url), random)),
                lambda url: list(threads.map(partial(copy, url), ordered)),
                lambda url: list(threads.map(partial(self._server.load, url, "clients"), sources)),
            )
        for name, spent in (
            (f"floor: {PROCESSES} connections, two COPYs each", floor),
            ("the same with ids in the order of time", floor_in_order),
            (f"{PROCESSES} processes load {PROCESSES} files of {rows:,} rows", load),
        ):
            line(name, spent.seconds, PROCESSES * rows, spent.beside(floor) + " (goal 1.2)" * (spent is load))
        line("", load.seconds, PROCESSES * rows, f"{load.beside(floor_in_order)}, with ids in order (goal 1.2)")

    def against_peers(self, rows: int) -> None:
        """The same work by usual means, on fewer rows."""
        source = write_clients(self._home / "fewer.csv", rows)
        for name, peer in peers.PEERS.items():
            with self._server.database() as url:
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
            with self._server.database() as url:
                run = toolkit(["clients", "load", source, "--out", self._home / "out"], self._server.environ(url))
            peaks.append(run.peak_mb)
            source.unlink()
            print(f"{f'memory, {factor * self._rows:,} rows':46}{run.peak_mb:>6.0f} MB{run.seconds:>12.1f} s")
        print(f"{'':46}{peaks[1] / peaks[0]:.2f} times as much for 5 times the rows (goal 1.2, under 500 MB)")

    def workbook(self, rows: int) -> None:
        """A workbook read and judged, beside the reader library alone; in this process, both without start-up."""
        path = self._home / "clients.xlsx"
        peers.write_workbook(write_clients(self._home / "workbook.csv", rows), path)
        alone, judged = [], []
        with self._server.database() as url:
            database = Database(url)
            for _ in range(ROUNDS):
                alone.append(timed(lambda: load_workbook(path).get_sheet_by_index(0).to_python()).seconds)
                load = partial(load_clients, database, [path], out=self._home / "out", dry_run=True, clock=_now)
                judged.append(timed(load).seconds)
            database.dispose()
        reader, ours = statistics.median(alone), statistics.median(judged)
        line("workbook: calamine alone", reader, rows, "1.00 readers")
        line("workbook: read and judged", ours, rows, f"{ours / reader:.2f} readers (goal 1.3)")

    def _split(self, source: Path) -> tuple[_Split, _Split]:
        """The accepted rows as the two tables have them, as usual CSV: with ids in order, and with random ids."""
        columns = {name: position for position, name in enumerate(FIELDS)}
        now = _now()
        found = []
        with ExitStack() as files:
            for kind in ("ordered", "random"):
                paths = [self._home / f"{source.stem}-{kind}-{table.name}.csv" for table in (clients, addresses)]
                found.append(dict(zip(_PLACES, paths, strict=True)))
            streams = [[files.enter_context(path.open("wb")) for path in each.values()] for each in found]
            for chunk in open_table(TableSource(source)).chunks():
                verdict = decide(chunk, columns, LoadOptions(), now.date())
                mask = pa.array(verdict.accepted)
                accepted = {name: column.filter(mask) for name, column in verdict.values.items()}
                count = len(accepted["cpf"])
                for new, (people, places) in zip((new_ids, _random_ids), streams, strict=True):
                    accepted["id"] = accepted["client_id"] = _texts(new(count))
                    accepted["created_at"] = pa.array([now.isoformat(" ")] * count)
                    _write(people, [accepted[column.name] for column in clients.columns])
                    accepted["id"] = _texts(new(count))
                    _write(places, [accepted[column.name] for column in addresses.columns])
        return found[0], found[1]


_Split = dict[str, Path]
_PLACES = [f"{table.name} ({', '.join(table.columns.keys())})" for table in (clients, addresses)]


def _random_ids(count: int) -> Bytes:
    """Return ids of version 4, as ``new_ids`` returns those of version 7."""
    ids = np.frombuffer(os.urandom(16 * count), np.uint8).reshape(count, 16).copy()
    ids[:, 6] = (ids[:, 6] & 0x0F) | 0x40
    ids[:, 8] = (ids[:, 8] & 0x3F) | 0x80
    return ids


def _texts(ids: Bytes) -> pa.StringArray:
    return pa.array([str(UUID(bytes=each.tobytes())) for each in ids])


def _write(stream: BinaryIO, columns: Sequence[pa.StringArray]) -> None:
    """Write rows whose values hold no comma and no quotation mark."""
    absent = pc.JoinOptions(null_handling="replace", null_replacement="")
    lines = pc.binary_join_element_wise(*columns, ",", options=absent)
    values(pc.binary_join_element_wise(lines, "\n", "")).tofile(stream)


def _now() -> datetime:
    return datetime.now(UTC)
