"""Observe the sales service: what changed in its sales and evidence records, and what cannot be used of them.

Both belong to another system and change under us. Whatever was seen is kept as an observation that holds from
``seen_at`` until ``gone_at``, so that an audit can be asked as of any past moment. The times that the service
writes itself (``created_at``, ``requested_at``) are data: a row that is dated back is known from when it was seen.

All rows are compared each time. A row that cannot be used is set aside and counted: what was observed of it before
stays as it is. Codes that the contract does not know stay as they are, too.
"""
# made of constants, and of the operator's own statements

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.contract.evidence import EvidenceType, UtilityGroup
from toolkit.contract.service_rows import FLAWS, JUMPS, LEFT_OUT, SINCE_AUDIT, ServiceChange
from toolkit.database.belonging import belong_to_service, pending_restore
from toolkit.database.connection import FIRST_DAY, LAST_DAY, Database
from toolkit.database.observation_clock import stamp
from toolkit.database.service import COLUMNS, PARTNER, service_of
from toolkit.database.service_tables import Resolved, changes_between, resolve
from toolkit.database.statements import sources_of
from toolkit.database.tables import (
    audit_runs,
    content_checks,
    evidence_observations,
    sale_observations,
    service_readings,
    withdrawals,
)
from toolkit.errors import MassDisappearance
from toolkit.message import Message

FEW: Final = 10  # the number that may always be gone


def check_disappearance(gone: int, known: int, what: str) -> None:
    """Make sure that most of what is known is still there.

    A mistyped bucket, a policy that hides rows, a SELECT with a wrong filter: each looks as if everything had been
    deleted. What is taken over then stands in the history for ever, so somebody has to confirm it.

    Raises:
        MassDisappearance: with the numbers, and what to do.
    """
    if gone > FEW and gone * 2 > known:
        raise MassDisappearance(
            "{:,} of the {:,} {} that were known are gone at once. Nothing was written. Check that this "
            "is the right database and bucket, and that their rows and objects are not hidden; if they "
            "are really gone, run it again with --confirm-disappearance.",
            *(gone, known, what),
        )


OBSERVED: Final = tuple(COLUMNS["sales"])[1:]  # the columns of a sale that are kept, beside its id

_HISTORIES: Final[Mapping[str, tuple[sa.Table, str, tuple[str, ...], str]]] = {
    "sales": (sale_observations, "sale_id", OBSERVED, "created_at IS NOT NULL AND id <> ''"),
    "records": (
        evidence_observations,
        "evidence_id",
        tuple(name for name in evidence_observations.c.keys()[1:] if name in COLUMNS["records"]),
        "sale_id IS NOT NULL AND requested_at IS NOT NULL",
    ),
}
"""By relation: the observations of its rows, their column with the row's id, the columns that are kept beside it,
and the condition without which a row is set aside."""

_MOMENTS: Final = ("created_at", "completed_at", "requested_at", "expires_at")

_KEPT: Final[Mapping[str, str]] = {
    "partner": PARTNER,
    "utility_group": "coalesce(utility_group, '')",
    "evidence_type": "coalesce(evidence_type, '')",
    **{
        name: f"CASE WHEN {name} IS NOT NULL THEN least(greatest({name}, '{FIRST_DAY}'), '{LAST_DAY}') END"
        for name in _MOMENTS
    },
}
"""Columns that are kept otherwise than they are read: no code is one that the contract does not know, and no time
is infinite or of a year that no report can show."""


@dataclass(frozen=True, slots=True)
class ServiceReading:
    """The result of one reading of the service, with what was noticed since an audit before it.

    ``counts`` holds the rows of each relation and, by the names of ``FLAWS`` and ``LEFT_OUT``, those that are not
    as they should be. ``changes`` are sentences about what is read otherwise than before: another file, other
    tables behind it, a count that jumped, and a restore in place that nobody has confirmed. ``raised`` has the
    counts that jumped and are still higher, each as it was before; ``since_audit`` is what ``SINCE_AUDIT`` names.
    """

    read_at: datetime
    resolved: Resolved
    counts: Mapping[str, int]
    changes: tuple[str, ...]
    raised: Mapping[str, int]
    since_audit: Mapping[str, int]

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about rows that cannot be used as they are, and about sales that are gone."""
        by_text = {text: self.counts.get(name, 0) for name, text in FLAWS.items()}
        by_text |= {text: self.counts[name] for name, text in LEFT_OUT.items() if name in self.raised}
        by_text |= {text: self.since_audit[name] for name, text in SINCE_AUDIT.items()}
        return tuple(Message(text, count) for text, count in by_text.items() if count)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Sentences about the rows of the tables that the statements do not yield."""
        return tuple(Message(text, self.counts[name]) for name, text in LEFT_OUT.items() if self.counts.get(name))

    def document(self) -> dict[str, Any]:
        """Return it for a JSON document."""
        return {
            "readAt": self.read_at.isoformat(),
            **self.resolved,
            "counts": self.counts,
            "raised": self.raised,
            "changes": list(self.changes),
            "notes": list(self.notes),
        }


def observe_service(database: Database, *, confirmed: bool = False) -> None:
    """Note what changed in the relations ``sales`` and ``records`` since they were observed last.

    ``confirmed`` takes it for true that most of them are gone.

    Raises:
        WrongService: the database belongs to another service; nothing was written.
        MassDisappearance: most of them are gone; nothing was written.
        SchemaMismatch: a statement does not fit the tables any more; nothing was written.
    """
    with database.transaction() as connection:
        resolved, counts = resolve(connection), counts_of(connection)
        now = stamp(connection)
        belong_to_service(connection, now)
        before = _newest(connection)
        found = {relation: _observe(connection, relation, now) for relation in _HISTORIES}
        for relation, what in (("sales", "sales"), ("records", "evidence records")):
            observed = found[relation]
            if observed.vanished > FEW and not confirmed:
                current = sa.select(sa.func.count()).where(_HISTORIES[relation][0].c.gone_at.is_(None))
                left = connection.execute(current).scalar_one() - observed.appeared
                check_disappearance(observed.vanished, left + observed.vanished, what)
        changes: tuple[str, ...] = ()
        raised: dict[str, int] = {}
        if before is not None:
            known = counts | before.counts
            jumped = [name for name in FLAWS | LEFT_OUT if _has_jumped(name, known[name], counts[name])]
            levels = {name: known[name] for name in jumped if name in JUMPS} | before.raised
            raised = {name: level for name, level in levels.items() if counts[name] > level}
            changes = (
                *changes_between(before.resolved, resolved),
                *(_jump(name, known[name], counts[name]) for name in jumped),
                *_changed(found, counts),
            )
        row = {"resolved": resolved, "counts": counts, "changes": list(changes), "raised": raised}
        connection.execute(sa.insert(service_readings), row | {"read_at": now})


def _newest(connection: Connection, moment: datetime | None = None) -> sa.Row[Any] | None:
    query = sa.select(service_readings).order_by(service_readings.c.id.desc()).limit(1)
    if moment is not None:
        query = query.where(service_readings.c.read_at <= moment)
    return connection.execute(query).one_or_none()


def last_reading(connection: Connection, moment: datetime) -> ServiceReading | None:
    """Return the newest reading at a moment, ``None`` where there was none.

    Its changes are those of all readings since the audit before it: whoever reads the service in between, such as
    a sync of the bucket, takes nothing away from the next audit.
    """
    row = _newest(connection, moment)
    if row is None:
        return None
    last = sa.select(sa.func.max(audit_runs.c.as_of)).where(audit_runs.c.as_of < row.read_at)
    bound = {"read_at": row.read_at, "moment": moment, "before": connection.scalar(last)}
    changes, *happened = connection.execute(sa.text(_SINCE_AUDIT), bound).one()
    restored = pending_restore(connection, moment)
    changes = (*changes, *((restored,) if restored else ()))
    since = dict(zip(SINCE_AUDIT, happened, strict=True))
    return ServiceReading(row.read_at, row.resolved, row.counts, changes, row.raised, since)


_BEFORE: Final = "coalesce(CAST(:before AS timestamptz), '-infinity')"

_GONE: Final = """
    (SELECT count(DISTINCT {key}) FROM {seen} AS known
     WHERE known.gone_at > {before} AND known.gone_at <= :moment AND NOT EXISTS (
         SELECT FROM {seen} AS still
         WHERE still.{key} = known.{key} AND still.seen_at <= :moment
           AND (still.gone_at IS NULL OR still.gone_at > :moment)
     )),
"""

_OF_OTHER_SALE: Final = "was.sale_id <> now.sale_id"
_CREATED_ANEW: Final = "was.client_id <> now.client_id OR was.created_at <> now.created_at"
_OTHERWISE: Final = """
    (SELECT count(*)
     FROM {seen} AS now
     CROSS JOIN LATERAL (
         SELECT * FROM {seen} AS known
         WHERE known.{key} = now.{key} AND known.gone_at <= now.seen_at
         ORDER BY known.gone_at DESC LIMIT 1
     ) AS was
     WHERE now.seen_at > CAST(:before AS timestamptz) AND now.seen_at <= :moment AND ({otherwise}))
"""

_SINCE_AUDIT: Final = f"""
    SELECT ARRAY(
        SELECT change FROM audit.service_readings, jsonb_array_elements_text(changes) AS change
        WHERE read_at <= :read_at AND read_at > {_BEFORE} ORDER BY id
    ),
    {"".join(_GONE.format(seen=of.fullname, key=key, before=_BEFORE) for of, key, *_ in _HISTORIES.values())}
    {_OTHERWISE.format(seen=evidence_observations.fullname, key="evidence_id", otherwise=_OF_OTHER_SALE)},
    {_OTHERWISE.format(seen=sale_observations.fullname, key="sale_id", otherwise=_CREATED_ANEW)}
"""


def _changed(found: Mapping[str, sa.Row[Any]], counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a sentence where most rows are read otherwise: other codes of a lookup, another zone, other keys."""
    changed = {"sales": ServiceChange.SALES_CHANGED, "records": ServiceChange.RECORDS_CHANGED}
    for relation, change in changed.items():
        if found[relation].changed > FEW and found[relation].changed * 2 > counts[relation]:
            yield change.format(found[relation].changed, counts[relation])


def _has_jumped(name: str, before: int, now: int) -> bool:
    """Tell whether a count is new, or more than doubled by more than ten; rows left out may be new, but few."""
    few, is_new = (FEW, before == 0 and now > 0) if name in FLAWS else (3, False)
    return is_new or now > max(2 * before, before + few)


def _jump(name: str, before: int, now: int) -> str:
    sentence = (FLAWS | LEFT_OUT)[name].format(now)
    return ServiceChange.JUMPED.format(sentence.removesuffix("."), before)


def counts_of(connection: Connection) -> dict[str, int]:
    """Count the rows of each relation, and those that are not as they should be, by the names of ``FLAWS``."""
    service = service_of(connection)
    names = {name: service.text(name) for name in ("sales", "records", "clients")}
    codes = {"groups": [str(each) for each in UtilityGroup], "types": [str(each) for each in EvidenceType]}
    found: dict[str, int] = {}
    for query in (_COUNT_SALES, _COUNT_PARTNERS, _COUNT_RECORDS, _COUNT_CLIENTS):
        for name, count in connection.execute(sa.text(query.format(**names)), codes).mappings().one().items():
            found[name] = found.get(name, 0) + int(count)
    for name, relation in (("salesLeftOut", "sales"), ("recordsLeftOut", "records")):
        found[name] = max(0, rows_behind(connection, relation) - found[relation])
    return {name: found[name] for name in ("sales", "records", "clients", *FLAWS, *LEFT_OUT)}


def rows_behind(connection: Connection, relation: str) -> int:
    """Count the rows of the table whose ids a statement yields, or of one in each part of a UNION."""
    service = service_of(connection)
    names = sources_of(service.statements[relation], "id")
    found = {"names": names, "origin": service.origin.get(relation, 0)}
    tables = connection.scalars(sa.text(_TABLES_BEHIND), found).all()
    counts = (sa.text(f"SELECT count(*) FROM {table}".replace(":", r"\:")) for table in tables)
    return sum(connection.execute(each).scalar_one() for each in counts)


def observe(connection: Connection, relation: str, only: str | UUID | None = None) -> int:
    """Note and count changes of ``sales`` or ``records`` alone, or of the one with this id, in the transaction."""
    return sum(_observe(connection, relation, stamp(connection), only))


def _observe(connection: Connection, relation: str, now: datetime, only: str | UUID | None = None) -> sa.Row[Any]:
    """Close the observations that no longer hold, and open one for each row that has none.

    The rows are read by statements that only read, so that the server may share them among processes.
    """
    observations, key, columns, usable = _HISTORIES[relation]
    seen, bound = observations.fullname, {} if only is None else {"only": only}
    service = service_of(connection)
    given = service.text(relation) if only is None else service.one(relation, "id", ":only")
    rows = f"SELECT * FROM {given} AS read"
    connection.execute(sa.text(_SIDE_BY_SIDE))
    connection.execute(sa.text(_SET_ASIDE.format(rows=rows, usable=usable)), bound)
    some = connection.execute(sa.text("SELECT EXISTS (SELECT FROM pg_temp.set_aside)")).scalar_one()
    read = ", ".join(f"{_KEPT.get(name, name)} AS {name}" for name in columns)
    not_aside = " AND NOT EXISTS (SELECT FROM pg_temp.set_aside WHERE set_aside.id = {})" if some else ""
    which = "" if only is None else f" AND {key} = :only"
    different = _DIFFERENT.format(
        rows=f"SELECT id, {read}, true AS present FROM ({rows}) AS read "
        f"WHERE id IS NOT NULL{not_aside.format('read.id')}",
        last=f"SELECT * FROM {seen} AS kept WHERE gone_at IS NULL{which}{not_aside.format(f'kept.{key}')}",
        key=key,
        values=", ".join(f"fresh.{name}" for name in columns),
        known=", ".join(f"last.{name}" for name in columns),
    )
    connection.execute(sa.text(different), bound)
    observed = connection.execute(sa.text(_COUNTS)).one()
    if any(observed):
        connection.execute(sa.text(_CLOSE.format(seen=seen)), {"now": now})
        connection.execute(sa.text(_OPEN.format(seen=seen, key=key, columns=", ".join(columns))), {"now": now})
    connection.execute(sa.text("DROP TABLE pg_temp.different, pg_temp.set_aside"))
    return observed


_SIDE_BY_SIDE: Final = """
    SELECT set_config('parallel_tuple_cost', '0', true),
           set_config('work_mem', CAST(least(CAST(setting AS bigint), 8192) AS text), true)
    FROM pg_settings
    WHERE name = 'work_mem'
"""
"""Few rows are different. What the processes share fits into the 64 MB that a container has for it."""

_SET_ASIDE: Final = """
    CREATE TEMPORARY TABLE set_aside ON COMMIT DROP AS
    SELECT id FROM ({rows}) AS fresh
    GROUP BY id HAVING id IS NOT NULL AND (count(*) > 1 OR NOT bool_and({usable}))
"""

_DIFFERENT: Final = """
    CREATE TEMPORARY TABLE different ON COMMIT DROP AS
    SELECT fresh.id, {values}, present, last.id AS observation
    FROM ({rows}) AS fresh FULL JOIN ({last}) AS last ON fresh.id = last.{key}
    WHERE present IS NULL OR last.id IS NULL OR ROW({values}) IS DISTINCT FROM ROW({known})
"""

_COUNTS: Final = """
    SELECT count(*) FILTER (WHERE present AND observation IS NULL) AS appeared,
           count(*) FILTER (WHERE present AND observation IS NOT NULL) AS changed,
           count(*) FILTER (WHERE present IS NULL) AS vanished
    FROM pg_temp.different
"""

_CLOSE: Final = """
    UPDATE {seen} AS seen SET gone_at = :now
    FROM pg_temp.different WHERE seen.id = observation AND seen.gone_at IS NULL
"""

_OPEN: Final = """
    INSERT INTO {seen} ({key}, {columns}, seen_at)
    SELECT id, {columns}, :now FROM pg_temp.different WHERE present ORDER BY id
"""

_TABLES_BEHIND: Final = """
    SELECT CAST(CAST(CAST(:origin AS bigint) AS regclass) AS text) WHERE :origin <> 0
    UNION
    SELECT CAST(to_regclass(name) AS text) FROM unnest(CAST(:names AS text[])) AS given (name)
    WHERE :origin = 0 AND to_regclass(name) IS NOT NULL
"""

_COUNT_SALES: Final = """
    SELECT coalesce(sum(times), 0) AS sales,
           coalesce(sum(times) FILTER (WHERE coalesce(id, '') = ''), 0) AS "salesWithoutId",
           coalesce(sum(times) FILTER (WHERE id IS NOT NULL AND times > 1), 0) AS "salesRepeated",
           coalesce(sum(undated), 0) AS "salesWithoutCreatedAt", coalesce(sum(unknown), 0) AS "groupsUnknown",
           coalesce(sum(unpaid), 0) AS "payersUnknown", coalesce(sum(infinite), 0) AS "timesInfinite",
           coalesce(sum(future), 0) AS "timesInFuture",
           coalesce(sum(alone), 0) AS "salesOfNoClient"
    FROM (
        SELECT sale.id, count(*) AS times, count(*) FILTER (WHERE sale.created_at IS NULL) AS undated,
               count(*) FILTER (WHERE utility_group IS NULL OR NOT utility_group = ANY(:groups)) AS unknown,
               count(*) FILTER (WHERE is_client_financial_responsible IS NULL) AS unpaid,
               count(*) FILTER (WHERE least(sale.created_at, completed_at) < '1971-01-01Z'
                                OR greatest(sale.created_at, completed_at) = 'infinity') AS infinite,
               count(*) FILTER (WHERE greatest(sale.created_at, completed_at) > now() + interval '5 minutes'
                                AND isfinite(greatest(sale.created_at, completed_at))) AS future,
               count(*) FILTER (WHERE sale.client_id IS NOT NULL AND client.id IS NULL) AS alone
        FROM {sales} AS sale
        LEFT JOIN (SELECT DISTINCT id FROM {clients} AS read) AS client ON client.id = sale.client_id
        GROUP BY sale.id
    ) AS sale
"""

_COUNT_PARTNERS: Final = r"""
    SELECT coalesce(sum(times), 0) AS "partnersAlike"
    FROM (
        SELECT sum(times) AS times
        FROM (SELECT btrim(partner) AS name, count(*) AS times FROM {sales} AS read GROUP BY 1) AS named
        GROUP BY lower(regexp_replace(name, '\s+', ' ', 'g')) HAVING count(*) > 1
    ) AS alike
"""

_COUNT_RECORDS: Final = """
    SELECT counted.*, "recordsRepeated", "keysRepeated"
    FROM (
        SELECT count(*) AS records, count(*) FILTER (WHERE record.id IS NULL) AS "recordsWithoutId",
               count(*) FILTER (WHERE record.id IS NOT NULL AND (sale_id IS NULL OR requested_at IS NULL))
                   AS "recordsWithoutSaleOrTime",
               count(*) FILTER (WHERE coalesce(object_key, '') = '') AS "recordsWithoutKey",
               count(*) FILTER (WHERE evidence_type IS NULL OR NOT evidence_type = ANY(:types)) AS "typesUnknown",
               count(*) FILTER (WHERE least(requested_at, expires_at) < '1971-01-01Z'
                                OR greatest(requested_at, expires_at) = 'infinity') AS "timesInfinite",
               count(*) FILTER (WHERE isfinite(requested_at)
                                AND requested_at > now() + interval '5 minutes') AS "timesInFuture",
               count(*) FILTER (WHERE sale_id IS NOT NULL AND sale.id IS NULL) AS "recordsOfNoSale"
        FROM {records} AS record
        LEFT JOIN (SELECT DISTINCT id COLLATE "C" AS id FROM {sales} AS read) AS sale
            ON sale.id = sale_id COLLATE "C"
    ) AS counted,
    (SELECT coalesce(sum(times), 0) AS "recordsRepeated"
     FROM (SELECT count(*) AS times FROM {records} AS read WHERE id IS NOT NULL
           GROUP BY id HAVING count(*) > 1) AS id
    ) AS ids,
    (SELECT coalesce(sum(times), 0) AS "keysRepeated"
     FROM (SELECT count(*) AS times FROM {records} AS read WHERE object_key <> ''
           GROUP BY object_key HAVING count(*) > 1) AS key
    ) AS keys
"""

_COUNT_CLIENTS: Final = """
    SELECT count(DISTINCT id) AS clients,
           count(*) - count(DISTINCT (id, address_id)) AS "clientsRepeated"
    FROM {clients} AS read
"""


def valid_at(observations: sa.Table, moment: datetime) -> sa.ColumnElement[bool]:
    """Tell the observations that held at the moment."""
    gone_at = observations.c.gone_at
    return sa.and_(observations.c.seen_at <= moment, sa.or_(gone_at.is_(None), gone_at > moment))


def stamped_by(stamp: sa.ColumnElement[Any], moment: datetime | None) -> sa.ColumnElement[bool]:
    """Tell what was stamped by the moment, everything where it is ``None``."""
    return sa.true() if moment is None else stamp <= moment


def withdrawal_of(
    evidence_id: Any, sale_id: Any, object_key: Any, *, moment: datetime | None = None
) -> sa.ColumnElement[bool]:
    """Tell the withdrawal of a record: of this sale, or of this file, where the service gave it another sale.

    A service that was restored gives ids again: a record of another sale and another file is another record.
    """
    known = evidence_observations.alias("known")
    of_file = (
        sa.exists()
        .where(
            known.c.evidence_id == withdrawals.c.evidence_id,
            known.c.sale_id == withdrawals.c.sale_id,
            known.c.object_key == object_key,
            stamped_by(known.c.seen_at, moment),
        )
        .correlate_except(known)
    )
    of_sale = sa.or_(withdrawals.c.sale_id == "", withdrawals.c.sale_id == sale_id)
    return sa.and_(withdrawals.c.evidence_id == evidence_id, sa.or_(of_sale, of_file))


def latest_look(seen: sa.FromClause) -> sa.FromClause:
    """Return the latest look at an object's contents."""
    looked = content_checks.alias("looked")
    every = sa.select(looked).where(looked.c.observation_id == seen.c.id)
    return every.order_by(looked.c.id.desc()).limit(1).lateral("latest")


def first_fault(latest: sa.FromClause, moment: datetime | None = None) -> sa.Select[Any]:
    """Return the ``fault`` that the latest look found, and ``fault_since``, by the first of those that did."""
    looked, sound = content_checks.alias("looked").c, content_checks.alias("sound").c
    corrected = sa.exists().where(
        sound.observation_id == looked.observation_id, sound.id > looked.id, sound.problem.is_(None)
    )
    query: sa.Select[Any] = sa.select(looked.problem.label("fault"), looked.checked_at.label("fault_since")).where(
        looked.observation_id == latest.c.observation_id,
        looked.problem.is_not(None),
        stamped_by(looked.checked_at, moment),
        ~corrected.where(stamped_by(sound.checked_at, moment)),
    )
    return query.order_by(looked.id).limit(1)
