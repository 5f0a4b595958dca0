"""The life of findings: note an audit, read every life, compare two moments and count each day of a year.

Scale 1 is 200,000 findings that are open, after a year of nightly audits in which as many were resolved again.
Goal: the changes between two moments and the trend of a year together under 5 seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import TypeVar
from zoneinfo import ZoneInfo

import pandas as pd
import sqlalchemy as sa

from tests.benchmarks.timing import timed
from tests.own_services import own_database
from toolkit.domain.deadlines import Deadlines
from toolkit.domain.finding_life import finding_id
from toolkit.operations.judge.audit.judgement import AUDITED, bring
from toolkit.operations.judge.findings.changes import changes_between, trends
from toolkit.operations.judge.findings.history import lives_at, note_findings
from toolkit.operations.judge.findings.living import living
from toolkit.storage.database import Database
from toolkit.storage.identifiers import new_id
from toolkit.storage.tables import audit_runs

T = TypeVar("T")

_FINDINGS = 200_000
_TOUCHED = 2_000
_NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
_ZONE = ZoneInfo("America/Sao_Paulo")


def main(scale: float) -> None:
    """Print the measurements."""
    with own_database() as (database, _):
        count = max(1000, round(_FINDINGS * scale))
        print(f"{count:,} findings, a year of nights{'seconds':>20}")
        _measure(database, count)


def _measure(database: Database, count: int) -> None:
    present = _present(range(count))
    _line("note the first audit", lambda: _note(database, present, _NOW - timedelta(days=400)))
    _past(database, count)
    touched = _present(range(min(_TOUCHED, count // 10), count))
    _line("note a night in which some findings end", lambda: _note(database, touched, _NOW))
    first = date(2025, 11, 21)
    with database.snapshot() as connection:
        _line("changes over a year", lambda: changes_between(database, _NOW - timedelta(days=365), _NOW))
        _line("trend of 365 days, 20 partners", lambda: trends(connection, first, _NOW, _ZONE))
        lives = _line("read every life", lambda: lives_at(connection, _NOW))
    _line("findings with their lives", lambda: living(touched, lives, [_NOW], [], _NOW, Deadlines(_ZONE)))


def _present(numbers: range) -> pd.DataFrame:
    code = "MISSING_POV"
    rows = [(finding_id(code, f"S-{n}"), code, f"S-{n}", f"partner {n % 20}", "A", "EXPIRED") for n in numbers]
    return pd.DataFrame(rows, columns=["id", "code", "sale_id", "partner", "utility_group", "reason"])


def _note(database: Database, present: pd.DataFrame, moment: datetime) -> None:
    sales = present.rename(columns={"sale_id": "saleId", "utility_group": "utilityGroup"})
    with database.transaction() as connection:
        bring(connection, sales.assign(clientId="somebody", missing="POV", problems=""))
        note_findings(connection, AUDITED, moment)
        run = {"id": new_id(), "as_of": moment, "ran_at": moment, "with_files": False}
        totals = dict.fromkeys(("sales", "compliant", "incomplete", "conflict"), len(present))
        connection.execute(sa.insert(audit_runs), run | totals)


def _past(database: Database, count: int) -> None:
    """As many findings that came and went on some days of the year before."""
    with database.transaction() as connection:
        connection.execute(
            sa.text(
                "INSERT INTO audit.finding_observations "
                "(finding_id, code, sale_id, partner, utility_group, seen_at, gone_at) "
                "SELECT gen_random_uuid(), 'MISSING_AUT', 'R-' || i, 'partner ' || i % 20, 'B', at, "
                "       at + i % 30 * interval '1 day' + interval '1 hour' "
                "FROM generate_series(1, :count) AS i, "
                "     LATERAL (SELECT timestamptz '2025-10-20' + i % 360 * interval '1 day' AS at) AS began"
            ),
            {"count": count},
        )
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("ANALYZE audit.finding_observations")


def _line(name: str, work: Callable[[], T]) -> T:
    taken = timed(work)
    print(f"{name:46}{taken.seconds:>8.2f}", flush=True)
    return taken.answer
