"""Loads of sales beside COPYs of what they leave behind.

The floor is a COPY of CSV into ``sales`` and one into the observations of sales, in one transaction: rows that are
judged and split already, into the same tables with the same keys, indexes and triggers. The goal on 2 cores, for
files of 250,000 sales with the whole command: at most 1.2 floors for one, and for four that four processes load
into one database beside four such connections. Half of the files tells its times without an offset.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from uuid import UUID
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from tests.benchmarks.floors import PROCESSES, OwnServer, copy
from tests.benchmarks.timing import line
from tests.own_services import own_home
from toolkit.storage.database import Database

_ROWS = 250_000
_CLIENTS = 1_000
_HEADINGS = "saleId,clientId,utilityGroup,isClientFinancialResponsible,createdAt,partner,completedAt"
_COLUMNS = "client_id, utility_group, is_client_financial_responsible, created_at, partner, completed_at"
_PLACES = (
    f"sales (id, {_COLUMNS})",
    f"audit.sale_observations (sale_id, {_COLUMNS}, seen_at)",
)


def main(scale: float) -> None:
    """Print the measurements with their ratios."""
    rows = max(1, round(_ROWS * scale))
    with own_home() as home, ThreadPoolExecutor(PROCESSES) as threads:
        server = OwnServer(home, _register)
        files = [_write(home, number, rows) for number in range(PROCESSES)]
        print(f"{'':46}{'seconds':>8}{'rows/s':>12}  ratio")
        for count in (1, PROCESSES):
            sources, split = zip(*files[:count], strict=True)

            def loaded(url: str, sources: Sequence[Path] = sources) -> None:
                list(threads.map(lambda source: server.load(url, "sales", source, "--overwrite"), sources))

            def copied(url: str, split: Sequence[Mapping[str, Path]] = split) -> None:
                list(threads.map(partial(copy, url), split))

            floor, load = server.in_turn(copied, loaded)
            for name, spent in ((f"floor: {count} times two COPYs", floor), (f"{count} times sales load", load)):
                line(name, spent.seconds, count * rows, spent.beside(floor) + " (goal 1.2)" * (spent is load))


def _register(database: Database) -> None:
    """Register the clients of the sales."""
    with database.transaction() as connection:
        connection.execute(sa.text(_REGISTER), {"last": _CLIENTS - 1})


_REGISTER = """
    INSERT INTO public.clients (id, cpf, number_on_dealership, enrollment, first_name, last_name, birthdate,
                                created_at)
    SELECT CAST(lpad(CAST(i AS text), 32, '0') AS uuid), lpad(CAST(i AS text), 11, '0'), '1', '1', 'Ana', 'Souza',
           '1980-01-01', '2026-01-01'
    FROM generate_series(0, :last) AS i
"""


def _write(home: Path, number: int, rows: int) -> tuple[Path, dict[str, Path]]:
    """Write a file of sales as another system exports it, and the same as the two tables have it."""
    source = home / f"export{number}.csv"
    split = {place: home / f"{place.split()[0]}{number}.csv" for place in _PLACES}
    paths = [source, *split.values()]
    zone, began = ZoneInfo("America/Sao_Paulo"), datetime(2026, 1, 1, tzinfo=UTC)
    with paths[0].open("w") as one, paths[1].open("w") as two, paths[2].open("w") as three:
        exported, sales, observations = csv.writer(one), csv.writer(two), csv.writer(three)
        one.write(f"{_HEADINGS}\n")
        for at in range(rows):
            sale_id, client = f"V-{number}-{at:08}", UUID(int=int(f"{at % _CLIENTS}", 16))
            values = [client, "ABCD"[at % 4], "true" if at % 4 else "false"]
            created = began + timedelta(seconds=31 * at)
            completed = created + timedelta(days=3) if at % 5 == 0 else None
            local = created.astimezone(zone)
            told = local.isoformat() if at % 2 else f"{local:%d/%m/%Y %H:%M:%S}"
            partner = f"partner {at % 20}"
            exported.writerow([sale_id, *values, told, partner, completed and completed.isoformat()])
            sales.writerow([sale_id, *values, created, partner, completed])
            observations.writerow([sale_id, *values, created, partner, completed, datetime.now(UTC)])
    return source, split
