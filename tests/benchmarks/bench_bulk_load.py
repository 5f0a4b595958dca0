"""Bulk loading of clients beside a bare COPY into the same tables.

The floor is two COPYs of rows already judged and split, those that a load wrote, ids included, into the same two
tables with the same keys and indexes, in one transaction. Goals on 2 cores, for one million rows of which
2 % are bad: the whole command at most 1.5 floors, and less than 500 MB.
"""

from __future__ import annotations

from pathlib import Path

import psycopg

from tests.benchmarks.measuring import OwnServer, copy, line, own_home, plain, toolkit
from tests.support.client_rows import client, write_csv

_ROWS = 1_000_000
_TABLES = ("clients", "addresses")


def main(scale: float) -> None:
    """Print the measurements with their ratios."""
    rows = max(1, round(_ROWS * scale))
    with own_home() as home:
        server = OwnServer(home)
        source = write_csv(home / "clients.csv", map(_client, range(rows)))
        peaks = []

        def load(url: str) -> None:
            run = toolkit(["clients", "load", source, "--out", home / "out"], server.environ(url))
            assert run.status in (0, 3), run.output
            peaks.append(run.peak_mb)

        with server.database() as url:
            load(url)
            written = _exported(url, home)
        floor, ours = server.in_turn(lambda url: copy(url, written), load)
        print(f"{'':46}{'seconds':>8}{'rows/s':>12}  ratio")
        line("floor: two COPYs", floor.seconds, rows, f"{floor.cpu:.2f} CPU seconds")
        beside = f"{ours.seconds / floor.seconds:.2f} floors (goal 1.5), CPU {ours.cpu / floor.cpu:.2f}"
        line("toolkit clients load, whole command", ours.seconds, rows, beside)
        print(f"{'memory':46}{max(peaks):>6.0f} MB (goal 500)")


def _client(number: int) -> dict[str, str]:
    """A client; of a hundred one has a wrong check digit, and one a short number of the installation."""
    row = client(number)
    if number % 100 == 0:
        row["cpf"] = row["cpf"][:-1] + str((int(row["cpf"][-1]) + 1) % 10)
    elif number % 100 == 50:
        row["address.installationNumber"] = "12345"
    return row


def _exported(url: str, home: Path) -> dict[str, Path]:
    """The rows that a load has written, as CSV by the table that each belongs in."""
    paths = {name: home / f"{name}.csv" for name in _TABLES}
    with psycopg.connect(plain(url)) as connection, connection.cursor() as cursor:
        for name, path in paths.items():
            with cursor.copy(f"COPY {name} TO STDOUT (FORMAT csv)") as copying, path.open("wb") as stream:
                stream.writelines(copying)
    return paths
