"""Bulk loading of clients beside a bare COPY into the same tables.

The floor is two COPYs of rows already judged and split, ids included, into the same two tables with the same keys
and indexes, in one transaction. Its ids are in the order of time (version 7), as those of the load, for their
places in an index cost less than random ones. Goals on 2 cores, for one million rows of which 2 % are bad: the
whole command at most 1.5 floors, and less than 500 MB.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from tests.benchmarks.measuring import OwnServer, copy, line, own_home, toolkit
from tests.support.client_rows import FIELDS, client, write_csv
from toolkit.database.copying import new_ids
from toolkit.database.tables import addresses, clients
from toolkit.intake.checks import decide
from toolkit.intake.sources import Bytes, TableSource, values
from toolkit.intake.tables import open_table

_ROWS = 1_000_000
_PLACES = [f"{table.name} ({', '.join(table.columns.keys())})" for table in (clients, addresses)]


def main(scale: float) -> None:
    """Print the measurements with their ratios."""
    rows = max(1, round(_ROWS * scale))
    with own_home() as home:
        server = OwnServer(home)
        source = write_csv(home / "clients.csv", map(_client, range(rows)))
        split = _split(home, source)
        peaks = []

        def load(url: str) -> None:
            run = toolkit(["clients", "load", source, "--out", home / "out"], server.environ(url))
            assert run.status in (0, 3), run.output
            peaks.append(run.peak_mb)

        floor, ours = server.in_turn(lambda url: copy(url, split), load)
        print(f"{'':46}{'seconds':>8}{'rows/s':>12}  ratio")
        line("floor: two COPYs", floor.seconds, rows, floor.beside(floor))
        line("toolkit clients load, whole command", ours.seconds, rows, f"{ours.beside(floor)} (goal 1.5)")
        print(f"{'memory':46}{max(peaks):>6.0f} MB (goal 500)")


def _client(number: int) -> dict[str, str]:
    """A client; of a hundred one has a wrong check digit, and one a short number of the installation."""
    row = client(number)
    if number % 100 == 0:
        row["cpf"] = row["cpf"][:-1] + str((int(row["cpf"][-1]) + 1) % 10)
    elif number % 100 == 50:
        row["address.installationNumber"] = "12345"
    return row


def _split(home: Path, source: Path) -> dict[str, Path]:
    """The accepted rows as the two tables have them, as usual CSV."""
    columns = {name: position for position, name in enumerate(FIELDS)}
    now = datetime.now(UTC)
    paths = [home / f"accepted-{table.name}.csv" for table in (clients, addresses)]
    with paths[0].open("wb") as people, paths[1].open("wb") as places:
        for chunk in open_table(TableSource(source)).chunks():
            verdict = decide(chunk, columns, now.date())
            mask = pa.array(verdict.accepted)
            accepted = {name: column.filter(mask) for name, column in verdict.values.items()}
            count = len(accepted["cpf"])
            accepted["id"] = accepted["client_id"] = _texts(new_ids(count))
            accepted["created_at"] = pa.array([now.isoformat(" ")] * count)
            _write(people, [accepted[column.name] for column in clients.columns])
            accepted["id"] = _texts(new_ids(count))
            _write(places, [accepted[column.name] for column in addresses.columns])
    return dict(zip(_PLACES, paths, strict=True))


def _texts(ids: Bytes) -> pa.StringArray:
    return pa.array([str(UUID(bytes=each.tobytes())) for each in ids])


def _write(stream: BinaryIO, columns: Sequence[pa.StringArray]) -> None:
    """Write rows whose values hold no comma and no quotation mark."""
    absent = pc.JoinOptions(null_handling="replace", null_replacement="")
    lines = pc.binary_join_element_wise(*columns, ",", options=absent)
    values(pc.binary_join_element_wise(lines, "\n", "")).tofile(stream)
