"""Bulk loading of clients beside a bare COPY into the same tables.

The floor is two COPYs of rows already judged and split, those that a load wrote, ids included, into the same two
tables with the same keys and indexes, in one transaction.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

from tests.benchmarks.measuring import copy, in_turn, line, own_database, plain, toolkit
from tests.support.client_rows import client, write_csv

_ROWS = 1_000_000
_TABLES = ("clients", "addresses")


def main(scale):
    """Print the measurements with their ratios."""
    rows = max(1, round(_ROWS * scale))
    peaks = []
    with TemporaryDirectory() as folder:
        source = write_csv(Path(folder, "sent.csv"), map(_client, range(rows)))

        def load(_, home):
            environ = {**os.environ, "TOOLKIT_HOME": str(home)}
            peaks.append(toolkit(["clients", "load", source, "--out", home / "out"], environ, ends=3))

        with own_database() as (database, home):
            load(database, home)
            written = _exported(database, Path(folder))
        floor, ours = in_turn(lambda database, _: copy(database, written), load)
    print(f"{'':46}{'seconds':>8}{'rows/s':>12}  ratio")
    line("floor: two COPYs", floor.seconds, rows, f"{floor.cpu:.2f} CPU seconds")
    beside = f"{ours.seconds / floor.seconds:.2f} floors (goal 1.5), CPU {ours.cpu / floor.cpu:.2f}"
    line("toolkit clients load, whole command", ours.seconds, rows, beside)
    print(f"{'memory':46}{max(peaks):>6.0f} MB (goal 500)")


def _client(number):
    """A client; of a hundred one has a wrong check digit, and one a short number of the installation."""
    row = client(number)
    if number % 100 == 0:
        row["cpf"] = row["cpf"][:-1] + str((int(row["cpf"][-1]) + 1) % 10)
    elif number % 100 == 50:
        row["address.installationNumber"] = "12345"
    return row


def _exported(database, folder):
    """The rows that a load has written, as CSV by the table that each belongs in."""
    paths = {name: folder / f"{name}.csv" for name in _TABLES}
    with psycopg.connect(plain(database)) as connection, connection.cursor() as cursor:
        for name, path in paths.items():
            with cursor.copy(f"COPY {name} TO STDOUT (FORMAT csv)") as copying, path.open("wb") as stream:
                stream.writelines(copying)
    return paths
