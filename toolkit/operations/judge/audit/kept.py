"""Judge now what changed since the last audit of now, and take over its judgement of all other sales.

A judgement changes when something about the sale is observed (the sale, a record, an object, a look at its
contents, a withdrawal), or at the moment until which it stands, when upload credentials run out. Observations are
stamped in the order of their commits (``toolkit.storage.observation_clock``), so those since a moment are found by
their stamps.

All sales are judged where nothing was kept, or where another statement judges: the rules or the toolkit changed.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from hashlib import sha256
from typing import Final

import ibis
import pandas as pd
import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.errors import JudgementDiffers
from toolkit.operations.judge.audit.census import census, summed
from toolkit.operations.judge.audit.details import OF_SALES, faults_at
from toolkit.operations.judge.audit.judgement import (
    AUDITED,
    Judged,
    audited,
    clients,
    in_postgres,
    in_sql,
    judged_at,
    judging_sql,
    put_audited,
)
from toolkit.operations.judge.audit.lists import DatabaseLists
from toolkit.operations.judge.audit.observed import unbound
from toolkit.storage.database import raw
from toolkit.storage.tables import judged_sales, judgement, sale_observations

TOUCHED: Final = "touched_sales"
"""The temporary table with the ``sale_id`` of each sale that may be judged otherwise than before."""


@dataclass(frozen=True)
class JudgedNow(Judged):
    """All sales, judged now; those that were judged, and not taken over, are in the table ``AUDITED``."""

    everything: bool
    """True if all sales were judged; otherwise those of ``TOUCHED`` were."""
    counts: pd.DataFrame

    def census(self) -> pd.DataFrame:
        """Return the census of all sales, most of it taken over."""
        return self.counts


def judged_now(connection: Connection, moment: datetime, *, everything: bool = False) -> JudgedNow:
    """Judge the sales as of ``moment``, which is now, and keep that for the next time.

    ``everything`` judges all sales, also those about which nothing changed. Whoever calls it holds the lock of the
    history of findings, so that no other audit of now keeps anything meanwhile.

    Raises:
        JudgementDiffers: a sale is judged otherwise than it was kept, although nothing about it changed.
    """
    moment = moment.astimezone(UTC)
    statement, fresh = judging_sql(moment), audited()
    said = statement.replace(moment.isoformat(), "") + in_sql(census(fresh))
    fingerprint = sha256(said.encode()).hexdigest()
    kept = connection.execute(
        sa.select(judgement.c.judged_at, judgement.c.counts).where(judgement.c.fingerprint == fingerprint)
    ).one_or_none()
    everything = everything or kept is None
    run = partial(_run, connection, {"moment": moment, "since": moment if kept is None else kept.judged_at})
    if kept is not None:
        _put(run, TOUCHED, _TOUCHED)
    if not everything:
        for setting in _SETTINGS:
            run(f"SET LOCAL {setting}")
        for name, query in _INPUTS.items():
            _put(run, name, query)
            statement = statement.replace(f'"audit"."{name}"', f'pg_temp."{name}"')
        run("SET LOCAL enable_indexscan TO DEFAULT")
    put_audited(connection, statement)
    read = partial(in_postgres, connection)
    carried = None if kept is None else _carried_on(read, pd.DataFrame(**json.loads(kept.counts)), fresh)
    if carried is None or everything:
        counts = read(census(fresh))
        differing = 0 if carried is None else connection.scalar(sa.text(_DIFFERING)) or _apart(carried, counts)
    else:
        counts, differing = carried, -int(carried["sales"].clip(upper=0).sum())
    if differing:
        raise JudgementDiffers(differing)
    if everything:
        run(_FORGET_OTHERS)
        run(f"{_KEEP} ON CONFLICT (sale_id) DO NOTHING")  # those judged as before still have their row
        run("ANALYZE audit.judged_sales")
    else:
        run(_FORGET_TOUCHED)
        run(_KEEP)
    forget_judgement(connection)
    told = {"judged_at": moment, "fingerprint": fingerprint, "counts": counts.to_json(orient="split", index=False)}
    connection.execute(sa.insert(judgement).values(only=True, **told))
    return JudgedNow(_kept_sales(), clients(), read, everything, counts)


def _carried_on(
    read: Callable[[ibis.Table], pd.DataFrame], counts: pd.DataFrame, fresh: ibis.Table
) -> pd.DataFrame:
    """Return the census with the touched sales as they are judged now, in place of how they were."""
    touched = ibis.table({"sale_id": "string"}, name=TOUCHED)
    gone, come = (read(census(sales.semi_join(touched, "sale_id"))) for sales in (_kept_sales(), fresh))
    return summed([counts, come], less=gone)


def _apart(carried: pd.DataFrame, counts: pd.DataFrame) -> int:
    """Return how many sales one census has where the other has none."""
    return int(summed([carried], less=counts)["sales"].abs().sum())


@dataclass(frozen=True, eq=False)
class KeptLists(DatabaseLists):
    """The lists behind an audit of now, the same also after a later judgement was kept instead of its own."""

    @cached_property
    def faults(self) -> pd.DataFrame:
        """The unusable files, looked for at the sales that were judged to have some."""
        with self.place.at(self.moment) as connection:
            unusable = sa.select(judged_sales.c.sale_id).where(judged_sales.c.unusable)
            which = sale_observations.c.sale_id.in_(unusable) if self._still(connection) else OF_SALES
            return faults_at(connection, self.moment, which)

    def _ask(self, question: Callable[[Judged], ibis.Table]) -> pd.DataFrame:
        with self.place.at(self.moment) as connection:
            if self._still(connection):
                return in_postgres(connection, question(self.judged))
            with judged_at(connection, self.moment) as judged:
                return judged.read(question(judged))

    def _still(self, connection: Connection) -> bool:
        """Tell whether the judgement of this audit is the one that is kept."""
        return bool(connection.scalar(sa.select(judgement.c.judged_at)) == self.moment)


def _kept_sales() -> ibis.Table:
    return unbound(judged_sales, *judged_sales.columns.keys())


def forget_judgement(connection: Connection) -> None:
    """Have the next audit of now judge all sales."""
    connection.execute(sa.delete(judgement))


def _put(run: Callable[[str], None], name: str, query: str) -> None:
    """Put the rows of a query into a temporary table."""
    run(f"CREATE TEMPORARY TABLE {name} ON COMMIT DROP AS {query}")
    run(f"ANALYZE pg_temp.{name}")


def _run(connection: Connection, moments: dict[str, datetime], query: str) -> None:
    for name, moment in moments.items():  # a statement that creates a table takes no parameters
        query = query.replace(f":{name}", f"timestamptz '{moment.isoformat()}'")
    raw(connection).execute(query.encode())


def _row(table: str) -> str:
    return f"ROW({', '.join(f'{table}.{column.name}' for column in judged_sales.columns)})"


_COLUMNS: Final = ", ".join(column.name for column in judged_sales.columns)

_SEEN: Final = ("sale_observations", "evidence_observations", "object_observations")

_SINCE: Final = {
    table: " UNION ALL ".join(
        f"SELECT * FROM audit.{table} WHERE {stamp} > :since"  # noqa: S608
        for stamp in ("seen_at", "gone_at")
    )
    for table in _SEEN
}

_TOUCHED: Final = f"""
    WITH looked_at AS (
        SELECT observation_id FROM audit.content_checks WHERE checked_at > :since
        UNION ALL
        SELECT observation_id FROM audit.verification_failures WHERE failed_at > :since
    ),
    keys AS (
        SELECT key FROM ({_SINCE["object_observations"]}) AS objects
        UNION
        SELECT key FROM audit.object_observations WHERE id = ANY(ARRAY(SELECT observation_id FROM looked_at))
    )
    SELECT sale_id FROM ({_SINCE["sale_observations"]}) AS sales
    UNION
    SELECT sale_id FROM ({_SINCE["evidence_observations"]}) AS records
    UNION
    SELECT sale_id FROM audit.evidence_observations
    WHERE evidence_id IN (SELECT evidence_id FROM audit.withdrawals WHERE withdrawn_at > :since)
    UNION
    SELECT sale_id FROM audit.evidence_observations
    WHERE object_key = ANY(ARRAY(SELECT key FROM keys)) AND gone_at IS NULL
    UNION
    SELECT sale_id FROM audit.judged_sales WHERE stands_until <= :moment
"""  # noqa: S608
"""A record that ended, and may have had one of these keys, is among the records since then itself."""

_SETTINGS: Final = (
    "random_page_cost = 0.3",  # up to three rows in a hundred are read by indexes
    "enable_mergejoin = off",  # it would go through the kept sales in their order
    "enable_indexscan = off",  # where a bitmap names the rows, their pages are read ahead
    "default_statistics_target = 10",  # the inputs are small
)
"""The settings under which the touched sales are read."""

_OF_TOUCHED: Final = f"sale_id = ANY(ARRAY(SELECT sale_id FROM {TOUCHED}))"  # noqa: S608
"""As an array, all are looked up on one way through the index."""

_INPUTS: Final = {
    "sale_observations": f"""
        SELECT * FROM audit.sale_observations WHERE {_OF_TOUCHED} AND gone_at IS NULL
        UNION ALL
        SELECT * FROM audit.sale_observations WHERE {_OF_TOUCHED} AND gone_at > :moment
    """,  # noqa: S608
    "evidence_observations": f"""
        SELECT * FROM audit.evidence_observations WHERE {_OF_TOUCHED} AND (gone_at IS NULL OR gone_at > :moment)
    """,  # noqa: S608
    "object_observations": """
        SELECT * FROM audit.object_observations
        WHERE key COLLATE "C" = ANY(ARRAY(SELECT DISTINCT object_key FROM pg_temp.evidence_observations))
    """,
    "content_checks": """
        SELECT * FROM audit.content_checks
        WHERE observation_id = ANY(ARRAY(SELECT id FROM pg_temp.object_observations))
    """,
    "verification_failures": """
        SELECT * FROM audit.verification_failures
        WHERE observation_id = ANY(ARRAY(SELECT id FROM pg_temp.object_observations))
    """,
}
"""The rows that the judgement of the touched sales reads, each in a temporary table of the name of their own."""

_DIFFERING: Final = f"""
    SELECT count(*)
    FROM audit.judged_sales AS kept FULL JOIN {AUDITED} AS fresh USING (sale_id)
    WHERE sale_id NOT IN (SELECT sale_id FROM {TOUCHED}) AND {_row("kept")} IS DISTINCT FROM {_row("fresh")}
"""  # noqa: S608

_FORGET_OTHERS: Final = f"""
    DELETE FROM audit.judged_sales AS kept
    WHERE NOT EXISTS (
        SELECT FROM {AUDITED} AS fresh
        WHERE fresh.sale_id = kept.sale_id AND {_row("fresh")} IS NOT DISTINCT FROM {_row("kept")}
    )
"""  # noqa: S608

_FORGET_TOUCHED: Final = f"DELETE FROM audit.judged_sales WHERE {_OF_TOUCHED}"  # noqa: S608

_KEEP: Final = f"INSERT INTO audit.judged_sales ({_COLUMNS}) SELECT {_COLUMNS} FROM {AUDITED}"  # noqa: S608
