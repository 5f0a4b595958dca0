"""The custody log: sealing the events of made-up sales, proving one of them, and writing the log as tiles.

Scale 1 is 400,000 sales with some 2,400,000 events. The goal of a proof is 50 ms; memory may not grow.
"""

from __future__ import annotations

import sqlalchemy as sa

from tests.benchmarks.made_sales import NOW, fill
from tests.benchmarks.measuring import line, own_database, peak_mb, timed
from toolkit.contract.events import LogKeys
from toolkit.log.export import export_tiles
from toolkit.log.notes import LogSigner, new_key
from toolkit.log.sealing import prove, seal_events

_SALES = 400_000
_PROOFS = 100


def main(scale: float) -> None:
    """Print the seconds of each, and the memory."""
    signer = LogSigner.read("evidence.example.com/custody", new_key(), "the key")
    with own_database() as (database, home):
        fill(database, max(100, round(_SALES * scale)))
        with database.transaction() as connection:
            events = connection.execute(sa.text("SELECT count(*) FROM audit.custody_events")).scalar_one()
        line("seal", timed(lambda: seal_events(database, lambda: NOW, signer)).seconds, events)
        with database.transaction() as connection:
            wanted = range(1, events, max(1, events // _PROOFS))
            proven = timed(lambda: [prove(connection, event) for event in wanted])
        line("prove", proven.seconds, len(wanted), f"{proven.seconds / len(wanted) * 1000:.1f} ms each (goal 50)")
        exported = timed(lambda: export_tiles(database, home / "log", LogKeys()))
        line("export", exported.seconds, events, f"{peak_mb():.0f} MB for {events:,} events")
