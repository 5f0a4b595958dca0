"""The custody log: sealing, exporting and verifying the events of made-up sales.

Scale 1 is 400,000 sales with some 2,400,000 events. The memory of all three must not grow with the log.
"""

from __future__ import annotations

import sqlalchemy as sa

from tests.benchmarks.made_sales import NOW, fill
from tests.benchmarks.measuring import line, own_database, peak_mb, timed
from toolkit.log.sealing import export_log, seal_events
from toolkit.log.verification import verify_log

_SALES = 400_000


def main(scale: float) -> None:
    """Print the seconds of each, and the memory."""
    with own_database() as (database, home):
        fill(database, max(100, round(_SALES * scale)))
        with database.transaction() as connection:
            events = connection.execute(sa.text("SELECT count(*) FROM audit.custody_events")).scalar_one()
        line("seal", timed(lambda: seal_events(database, lambda: NOW)).seconds, events)
        line("export", timed(lambda: export_log(database, home / "log.jsonl", lambda: NOW)).seconds, events)
        verified = timed(lambda: verify_log(home / "log.jsonl"))
        line("verify", verified.seconds, events, f"{peak_mb():.0f} MB for {events:,} events")
