"""Compare the findings of an audit with their episodes, and give each its history, deadline, owner and waiver.

An episode lasts from the audit that saw a finding first until the audit that did not see it any more. PostgreSQL
keeps them all; an audit of now writes those that began or ended with it. Everything is computed in the working
tables of the audit: ``present`` (what the audit sees), ``episode`` (as of its moment), and ``history``, one row a
finding.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import accumulate, combinations
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa
import sqlalchemy as sa
from pydantic.alias_generators import to_camel
from sqlalchemy import Connection

from toolkit.audit.duckdb_session import PIECE, copy_to, quoted
from toolkit.audit.folder import Audit
from toolkit.contract.codes import CODES, SALE_GONE, WITHOUT_CLIENT, Owner, Severity, missing_code
from toolkit.contract.deadlines import Deadlines, is_business_day
from toolkit.contract.findings import NAMESPACE, SEPARATOR, FindingStatus, finding_id
from toolkit.contract.waivers import Waiver
from toolkit.database.connection import copy_rows

TREND_DAYS: Final = 30  # days of the trend, the last one included
_MOST_DAYS: Final = 1000  # the most business days of a deadline; twice as many days hold them
_NAMED: Final = ("sale_id", "partner", "code")  # the things that a waiver names, at least one of them


def find_present(session: Any, of_files: Sequence[Mapping[str, Any]], of_service: Collection[str]) -> None:
    """Put the findings that the audit sees into ``present``, and those of files into ``concerned``, too.

    The relation ``listed`` has the sales with findings in the columns of verdicts, ``of_files`` is what is odd
    about files, and ``of_service`` are the codes of what is odd about the service's rows.
    """
    rows: set[tuple[str, str, str | None]] = {(finding_id(code), code, None) for code in of_service}
    rows |= {
        (each, finding["problem"], sale_id)
        for finding in of_files
        for each, sale_id in zip(finding["finding_ids"], finding["sale_ids"] or [None], strict=True)
    }
    texts = dict.fromkeys(("id", "code", "sale_id"), pa.string())
    concerned = [dict(zip(texts, row, strict=True)) for row in sorted(rows, key=str)]
    session.register("concerned", pa.Table.from_pylist(concerned, pa.schema(texts)))
    session.execute(_PRESENT)


def note_changes(connection: Connection | None, session: Any, moment: datetime) -> None:
    """Note in ``episode`` which findings began and ended with this audit, and nothing else.

    They are noted in PostgreSQL, too, where ``connection`` is given; it holds the lock of the findings' history.
    """
    session.execute(_DIFFERING)
    if connection is not None:
        connection.execute(sa.text(_NEW_DIFFERING))
        for rows in session.sql("FROM differing").to_arrow_reader(PIECE):
            copy_rows(connection, "differing", pa.Table.from_batches([rows]))
    for statement in _NOTE:
        session.execute(statement.format("episode", "$moment"), {"moment": moment})
        if connection is not None:
            noting = statement.format("audit.finding_observations", ":moment")
            connection.execute(sa.text(noting), {"moment": moment})


def write_findings(
    session: Any,
    moment: datetime,
    folder: Path,
    before: datetime | None,
    audits: Sequence[datetime],
    waivers: Sequence[Waiver],
    deadlines: Deadlines,
) -> None:
    """Write ``findings.parquet`` and ``trend.parquet``.

    ``audits`` are those that noted findings, oldest first, and ``before`` is the one to compare with.
    """
    zone, today = deadlines.timezone.key, deadlines.day_of(moment)
    find_history(session, moment, before, audits, zone)
    [(first,)] = session.execute("SELECT min(first_day) FROM history").fetchall()
    session.register("catalogue", _catalogue(session, deadlines))
    session.register("holding", _holding(waivers, today))
    session.register("calendar", _calendar(first or today, today))
    session.execute(copy_to(_FINDINGS.format(zone=quoted(zone)), folder / "findings.parquet"))
    trend = trend_query(moment, today - timedelta(days=TREND_DAYS - 1), deadlines.timezone)
    session.execute(copy_to(trend, folder / "trend.parquet"))


def find_history(
    session: Any, moment: datetime, before: datetime | None, audits: Sequence[datetime], zone: str
) -> None:
    """Make ``history`` of ``present`` and the episodes: ``change`` says what happened since ``before``."""
    session.register("audit", pa.table({"as_of": pa.array(list(audits), pa.timestamp("us", "UTC"))}))
    session.execute(_HISTORY, {"moment": moment, "before": before, "zone": zone})


def trend_query(moment: datetime, first: date, zone: ZoneInfo) -> str:
    """Return the query of the findings that were there, came and went, by partner and day from ``first`` on."""
    given = {"zone": zone.key, "today": str(moment.astimezone(zone).date()), "first": str(first)}
    return _TREND.format(**{name: quoted(text) for name, text in given.items()})


def as_listed(found: pd.DataFrame) -> pd.DataFrame:
    """Return findings under the names that reports have for their columns, each with its remedy."""
    why = found["reason"].astype("string").fillna(found["code"].astype("string")).astype("category")
    listed = found.assign(remedy=why.map({code: each.remedy for code, each in CODES.items()}))
    return (
        listed[[*_LISTED]].astype(dict.fromkeys((*FEW_OF_FINDINGS, "remedy"), "category")).rename(columns=to_camel)
    )


def findings_of_sale(audit: Audit | None, sale_id: str) -> pd.DataFrame:
    """Return the findings of a sale in an audit, as listed; without an audit there are none."""
    if audit is None:
        return as_listed(pd.DataFrame(columns=[name for name in _LISTED if name != "remedy"]))
    return as_listed(audit.sql("FROM findings WHERE sale_id = ?", sale_id).to_pandas())


def _catalogue(session: Any, deadlines: Deadlines) -> pa.Table:
    """Return what is said of the code of findings, with the business days that they have in a utility group."""
    severities = list(Severity)
    pairs = session.execute("SELECT DISTINCT code, utility_group FROM history").fetchall()
    rows = [
        {
            "code": code.code,
            "utility_group": group,
            "severity": str(code.severity),
            "weight": severities.index(code.severity),
            "owner": str(code.owner),
            "of_partner": code.owner is Owner.PARTNER,
            "days": deadlines.days(code.code, group),
        }
        for code, group in ((CODES[each], group) for each, group in pairs)
        if code.severity is not None
    ]
    texts = dict.fromkeys(("code", "utility_group", "severity", "owner"), pa.string())
    numbers = dict.fromkeys(("weight", "days"), pa.int64())
    return pa.Table.from_pylist(rows, pa.schema({**texts, **numbers, "of_partner": pa.bool_()}))


def _holding(waivers: Sequence[Waiver], day: date) -> pa.Table:
    rows = [
        {name: getattr(each, name) for name in _NAMED} | {"waiver_id": str(each.id), "last": each.end}
        for each in waivers
        if each.holds(day)
    ]
    texts = dict.fromkeys((*_NAMED, "waiver_id"), pa.string())
    return pa.Table.from_pylist(rows, pa.schema(texts | {"last": pa.date32()}))


def _calendar(first: date, last: date) -> pa.Table:
    """Return the days from ``first`` on, each with the number of business days until then, itself included."""
    days = [first + timedelta(days=place) for place in range((last - first).days + 2 * _MOST_DAYS)]
    working = [is_business_day(day) for day in days]
    return pa.table(
        {"day": pa.array(days, pa.date32()), "number": list(accumulate(map(int, working))), "working": working}
    )


FEW_OF_FINDINGS: Final = (
    *("partner", "utility_group", "code", "evidence_type", "reason", "severity", "status", "owner"),
    "waiver_id",
)
"""The columns with few distinct values."""

_LISTED: Final = (
    *("id", "sale_id", "partner", "utility_group", "code", "evidence_type", "reason", "severity", "status"),
    *("first_seen", "last_seen", "opened_at", "due_at", "age_days", "age_business_days", "due_in_business_days"),
    *("overdue", "owner", "remedy", "waiver_id", "told_at", "answer", "answer_until"),
)

_DIGITS: Final = f"sha1(unhex('{NAMESPACE.hex}') || encode(concat_ws(chr(31), code, sale_id)))"

_ID: Final = """
    CAST(concat_ws(
        '-', substr(digits, 1, 8), substr(digits, 9, 4), '5' || substr(digits, 14, 3),
        translate(substr(digits, 17, 1), '0123456789abcdef', '89ab89ab89ab89ab') || substr(digits, 18, 3),
        substr(digits, 21, 12)) AS UUID)
"""
"""The id of a finding of a sale, as ``toolkit.contract.findings.finding_id`` makes it."""

_PRESENT: Final = f"""
    CREATE OR REPLACE TABLE present AS
    WITH of_sale AS (
        SELECT sale_id, partner, utility_group, unnest(string_split(problems, '{SEPARATOR}')) AS code,
               CAST(NULL AS VARCHAR) AS reason
        FROM listed WHERE problems <> ''
        UNION ALL
        SELECT sale_id, partner, utility_group,
               '{missing_code("")}' || unnest(string_split(missing, '{SEPARATOR}')),
               unnest(string_split(reasons, '{SEPARATOR}'))
        FROM listed WHERE missing <> ''
        UNION ALL
        SELECT sale_id, partner, utility_group, '{WITHOUT_CLIENT}', NULL
        FROM listed WHERE client_id IS NULL
    ),
    named AS (SELECT *, {_DIGITS} AS digits FROM of_sale)
    SELECT {_ID} AS id, code, sale_id, partner, utility_group, reason FROM named
    UNION ALL
    SELECT CAST(id AS UUID), code, sale_id, partner, utility_group, NULL
    FROM concerned LEFT JOIN sale USING (sale_id)
"""

_DIFFERING: Final = """
    CREATE OR REPLACE TEMP TABLE differing AS
    WITH open AS (FROM episode WHERE gone_at IS NULL)
    SELECT true AS present, id, code, sale_id, partner, utility_group
    FROM present WHERE id NOT IN (SELECT finding_id FROM open)
    UNION ALL
    SELECT false, finding_id, code, NULL, NULL, NULL
    FROM open WHERE finding_id NOT IN (SELECT id FROM present)
"""

_NEW_DIFFERING: Final = """
    CREATE TEMPORARY TABLE differing
        (present boolean, id uuid, code text, sale_id text, partner text, utility_group text) ON COMMIT DROP
"""

_NOTE: Final = (
    """
    UPDATE {} SET gone_at = {}
    WHERE gone_at IS NULL AND finding_id IN (SELECT id FROM differing WHERE NOT present)
    """,
    """
    INSERT INTO {} (finding_id, code, sale_id, partner, utility_group, seen_at)
    SELECT id, code, sale_id, partner, utility_group, {} FROM differing WHERE present
    """,
)
"""The statements that note them, of both databases."""

_KNOWN: Final = ", ".join(f"'{code.code}'" for code in CODES.values() if code.severity is not None)

_HISTORY: Final = f"""
    CREATE OR REPLACE TABLE history AS
    WITH known AS (
        SELECT finding_id AS id, any_value(code) AS code, any_value(sale_id) AS sale_id,
               min(seen_at) AS first_seen, max(seen_at) AS opened_at, count(*) AS episodes,
               arg_max({{'gone_at': gone_at, 'partner': partner, 'utility_group': utility_group}},
                   seen_at) AS last,
               bool_or(seen_at <= $before AND (gone_at IS NULL OR gone_at > $before)) AS open_before,
               bool_or(gone_at <= $before) AS ended_before
        FROM episode WHERE code IN ({_KNOWN}) GROUP BY finding_id
    ),
    standing AS (
        SELECT present.*, false AS resolved, episodes > 1 AS again, first_seen, opened_at,
               CAST($moment AS TIMESTAMPTZ) AS last_seen, CAST(NULL AS TIMESTAMPTZ) AS closed_at,
               CASE WHEN $before IS NULL THEN NULL WHEN open_before THEN 'open'
                    WHEN ended_before THEN 'reopened' ELSE 'new' END AS change
        FROM present JOIN known ON known.id = present.id
    ),
    ended AS (SELECT *, last.gone_at AS closed_at FROM known WHERE last.gone_at IS NOT NULL),
    resolved AS (
        SELECT ended.id, ended.code, ended.sale_id,
               CASE WHEN sale.sale_id IS NULL THEN last.partner ELSE sale.partner END AS partner,
               CASE WHEN sale.sale_id IS NULL THEN last.utility_group
                    ELSE sale.utility_group END AS utility_group,
               CASE WHEN EXISTS (
                   SELECT 1 FROM gap WHERE gap.sale_id = ended.sale_id AND gap.gone_at > opened_at
                       AND gap.gone_at <= closed_at AND (gap.back_at IS NULL OR gap.back_at > closed_at)
               ) THEN '{SALE_GONE}' END AS reason,
               true AS resolved, false AS again, first_seen, opened_at,
               greatest(opened_at, audit.as_of) AS last_seen, closed_at,
               CASE WHEN open_before THEN 'resolved' END AS change
        FROM ended
        LEFT JOIN sale ON sale.sale_id = ended.sale_id
        ASOF LEFT JOIN audit ON closed_at > audit.as_of
    )
    SELECT *, CAST(first_seen AT TIME ZONE $zone AS DATE) AS first_day,
           CAST(opened_at AT TIME ZONE $zone AS DATE) AS opened_day,
           CAST(last_seen AT TIME ZONE $zone AS DATE) AS until_day
    FROM (FROM standing UNION ALL BY NAME FROM resolved)
"""

_WAIVED: Final = " UNION ALL ".join(
    f"""
        SELECT history.id, waiver_id, last
        FROM history JOIN holding ON {" AND ".join(f"holding.{name} = history.{name}" for name in names)}
        WHERE NOT history.resolved{"".join(f" AND holding.{name} IS NULL" for name in _NAMED if name not in names)}
    """
    for number in range(1, len(_NAMED) + 1)
    for names in combinations(_NAMED, number)
)
"""One query for each combination of what waivers name: each joins by equality."""

_FINDINGS: Final = f"""
    WITH waived AS (
        SELECT id, arg_max(waiver_id, (last, waiver_id)) AS waiver_id FROM ({_WAIVED}) GROUP BY id
    ),
    heard AS (
        SELECT id, min(delivered_at) AS told_at
        FROM history JOIN told ON finding_id = id AND told.partner = history.partner AND delivered_at >= opened_at
        GROUP BY id
    ),
    replied AS (
        SELECT id, max(answered_at) AS answered_at, arg_max(answer, answered_at) AS answer,
               arg_max_null(until, answered_at) AS answer_until
        FROM history
        JOIN answered ON finding_id = id AND answered.partner = history.partner AND answered_at >= opened_at
        GROUP BY id
    ),
    dated AS (
        SELECT history.*, waiver_id, catalogue.severity, catalogue.weight,
               CASE WHEN of_partner AND partner IS NOT NULL THEN partner ELSE catalogue.owner END AS owner,
               CASE WHEN days = 0 THEN opened_day ELSE due.day END AS due_day,
               until.number AS until_number, first.number AS first_number,
               opened.number + days AS due_number, closed.number - opened.number AS closed_number
        FROM history
        JOIN catalogue ON catalogue.code = history.code
            AND catalogue.utility_group IS NOT DISTINCT FROM history.utility_group
        JOIN calendar AS opened ON opened.day = opened_day
        JOIN calendar AS until ON until.day = until_day
        JOIN calendar AS first ON first.day = first_day
        JOIN (SELECT number, day FROM calendar WHERE working) AS due ON due.number = opened.number + days
        LEFT JOIN calendar AS closed ON closed.day = CAST(closed_at AT TIME ZONE {{zone}} AS DATE)
        LEFT JOIN waived ON waived.id = history.id
    )
    SELECT CAST(id AS VARCHAR) AS id, sale_id, partner, utility_group, code,
           CASE WHEN starts_with(code, '{missing_code("")}')
                THEN substr(code, {len(missing_code("")) + 1}) END AS evidence_type,
           reason, severity,
           CASE WHEN resolved THEN '{FindingStatus.RESOLVED}'
                WHEN waiver_id IS NOT NULL THEN '{FindingStatus.WAIVED}'
                WHEN again THEN '{FindingStatus.REOPENED}' ELSE '{FindingStatus.OPEN}' END AS status,
           first_seen, last_seen, opened_at, closed_at,
           CAST(due_day + INTERVAL 1 DAY AS TIMESTAMP) AT TIME ZONE {{zone}} - INTERVAL 1 SECOND AS due_at,
           CAST(until_day - first_day AS BIGINT) AS age_days,
           until_number - first_number AS age_business_days,
           CASE WHEN until_day > due_day THEN least(due_number - until_number, -1)
                ELSE due_number - until_number END AS due_in_business_days,
           until_day > due_day AND NOT resolved AND waiver_id IS NULL AS overdue,
           owner, waiver_id, change, told_at, answered_at, answer, answer_until,
           closed_number AS business_days_open
    FROM dated LEFT JOIN heard USING (id) LEFT JOIN replied USING (id)
    ORDER BY resolved, weight, due_at, sale_id, code, id
"""

_TREND: Final = """
    WITH counted AS (
        SELECT coalesce(CASE WHEN present.id IS NULL THEN episode.partner ELSE present.partner END, '') AS partner,
               CAST(seen_at AT TIME ZONE {zone} AS DATE) AS came,
               CAST(gone_at AT TIME ZONE {zone} AS DATE) AS went
        FROM episode LEFT JOIN present ON present.id = episode.finding_id
    ),
    lately AS (FROM counted WHERE went IS NULL OR went >= CAST({first} AS DATE)),
    day AS (
        SELECT CAST(unnest(generate_series(CAST({first} AS TIMESTAMP), CAST({today} AS TIMESTAMP),
            INTERVAL 1 DAY)) AS DATE) AS day
    ),
    partner AS (SELECT partner FROM lately UNION SELECT '' WHERE EXISTS (FROM counted)),
    came AS (
        SELECT partner, greatest(came, CAST({first} AS DATE) - 1) AS day, count(*) AS came FROM lately GROUP BY ALL
    ),
    went AS (SELECT partner, went AS day, count(*) AS went FROM lately WHERE went IS NOT NULL GROUP BY ALL),
    before AS (SELECT partner, came AS present FROM came WHERE day < CAST({first} AS DATE))
    SELECT partner, day,
           CAST(coalesce(present, 0) + sum(coalesce(came, 0) - coalesce(went, 0))
               OVER (PARTITION BY partner ORDER BY day) AS BIGINT) AS present,
           coalesce(came, 0) AS came, coalesce(went, 0) AS went
    FROM partner CROSS JOIN day
    LEFT JOIN before USING (partner)
    LEFT JOIN came USING (partner, day)
    LEFT JOIN went USING (partner, day)
    ORDER BY partner, day
"""
