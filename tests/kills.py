"""Kill a load of clients at some moment, let it run again, and see that each row is in exactly once."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from tests.client_rows import client, write_csv
from tests.waiting import PATIENCE
from toolkit.storage.database import Database
from toolkit.storage.tables import addresses, clients, load_batches

BAD_EVERY = 50


@dataclass(frozen=True)
class Victim:
    """A file to load, and how the command is started."""

    source: Path
    out: Path
    environ: Mapping[str, str]
    rows: int

    @classmethod
    def prepare(cls, folder: Path, environ: Mapping[str, str], rows: int) -> Victim:
        """A file of ``rows`` different clients, one in fifty of them bad."""
        made = (client(n, cpf="0") if n % BAD_EVERY == 0 else client(n) for n in range(rows))
        return cls(write_csv(folder / "clients.csv", made), folder / "out", environ, rows)

    @property
    def words(self) -> list[str]:
        """The command, as ``toolkit`` reads it."""
        return ["-q", "clients", "load", str(self.source), "--out", str(self.out)]

    def start(self) -> subprocess.Popen[str]:
        """The command, running."""
        return subprocess.Popen(
            [sys.executable, "-m", "toolkit", *self.words],
            env=dict(self.environ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def seconds(self) -> float:
        """Return the seconds that an undisturbed run takes."""
        started = time.perf_counter()
        self.run_to_the_end()
        return time.perf_counter() - started

    def run_to_the_end(self) -> None:
        """Run it once, undisturbed."""
        process = self.start()
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 3, errors

    def disturb(self, after: float, strike: Callable[[subprocess.Popen[str]], None]) -> int:
        """Run it, strike ``after`` so many seconds, and tell how it ended."""
        process = self.start()
        time.sleep(after)
        strike(process)
        _, errors = process.communicate(timeout=PATIENCE)
        assert "Traceback" not in errors
        return process.returncode


def check_all_in_once(victim: Victim, database: Database) -> None:
    """Each good row is registered once with its address, one batch is noted, the bad rows came back."""
    good = victim.rows - len(range(0, victim.rows, BAD_EVERY))
    with database.transaction() as connection:
        count = sa.select(sa.func.count(), sa.func.count(sa.distinct(clients.c.cpf))).select_from(clients)
        assert tuple(connection.execute(count).one()) == (good, good)
        matched = sa.select(sa.func.count()).select_from(
            addresses.join(clients, addresses.c.client_id == clients.c.id)
        )
        assert connection.scalar(matched) == good
        assert connection.scalar(sa.select(sa.func.count()).select_from(addresses)) == good
        assert connection.scalar(sa.select(sa.func.count()).select_from(load_batches)) == 1
    names = {path.name for path in victim.out.iterdir()}
    expected = {f"{victim.source.name}.rejected.csv", f"{victim.source.name}.rejected.xlsx"}
    assert expected <= names <= expected | {f"{victim.source.name}.skipped.csv"}
    lines = (victim.out / f"{victim.source.name}.rejected.csv").read_text("utf-8-sig").splitlines()
    assert len(lines) == 1 + victim.rows - good


def check_nothing_or_all_in(victim: Victim, database: Database) -> None:
    """A load that was struck has registered all of its rows or none."""
    good = victim.rows - len(range(0, victim.rows, BAD_EVERY))
    with database.transaction() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(clients)) in (0, good)
