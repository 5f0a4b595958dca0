"""Sealing, exporting and verifying the custody log. Scale 1 is 10,000,000 events; goals: linear time, flat memory.

The larger log comes after one of a fifth of it, in the same process, whose memory must not grow between them.
"""

from __future__ import annotations

import resource
from datetime import UTC, datetime
from pathlib import Path

from tests.benchmarks.timing import timed
from tests.own_services import own_database
from toolkit.operations.prove.custody_log.export import export_log
from toolkit.operations.prove.custody_log.live import verify_live
from toolkit.operations.prove.custody_log.sealing import seal_events
from toolkit.operations.prove.custody_log.verification import verify_log
from toolkit.storage.database import Database

_EVENTS = 10_000_000
_MORE_MB = 50


def main(scale: float) -> None:
    """Print seconds, events a second, and the memory of this process."""
    events = max(10_000, round(_EVENTS * scale))
    with own_database() as (database, home):
        few = events // 5
        first = _measure(database, home, few, few)
        last = _measure(database, home, events - few, events)
        assert last - first < _MORE_MB, f"{last - first:.0f} MB more for five times the events"


def _measure(database: Database, home: Path, more: int, events: int) -> float:
    with database.raw() as connection:
        connection.execute(
            "INSERT INTO audit.custody_events (kind, happened_at, detail) "
            "SELECT 'REPORTED', now(), jsonb_build_object('files', jsonb_build_object('csv', md5(number::text))) "
            "FROM generate_series(1, %s) AS number",
            [more],
        )
    log = home / "log.jsonl"
    peak = 0.0
    for name, work, count in (
        ("sealing", lambda: seal_events(database, _now), more),
        ("exporting", lambda: export_log(database, log, _now), events),
        ("verifying the export", lambda: verify_log(log), events),
        ("verifying the database", lambda: verify_live(database), events),
    ):
        seconds = timed(work).seconds
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{name:28}{count:>12,} events{seconds:>9.1f} s{count / seconds:>12,.0f}/s{peak:>7.0f} MB", flush=True
        )
    return peak


def _now() -> datetime:
    return datetime.now(UTC)
