"""Read the numbers and lists of an audit folder by DuckDB over its Parquet files, of all partners or of one.

The report of one partner reads the same folder through views that hold the rows of this partner alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import date
from functools import partial
from math import sqrt
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.audit.changes import BY_DAY
from toolkit.audit.findings import FEW_OF_FINDINGS, as_listed
from toolkit.audit.folder import CASES, LOOKS, RANK, TO_TELL, TOTALS, UNPROVEN_SALES, Audit, Looks, Source
from toolkit.contract.codes import CODES, Owner, Severity
from toolkit.contract.contents import COVERAGES
from toolkit.contract.evidence import EvidenceType, UtilityGroup
from toolkit.contract.findings import SEPARATOR, STANDING, FindingStatus, Problem, Reason, Status
from toolkit.contract.rules import GROUP_RULES, EvidenceState
from toolkit.contract.service_rows import ServiceChange
from toolkit.contract.waivers import Waiver
from toolkit.message import recognised
from toolkit.reports import audited
from toolkit.reports.audited import AGE_BANDS, Audited, Reviews


def read_audited(
    audit: Audit,
    *,
    cpfs: Mapping[str, str] | None = None,
    with_work: bool = True,
) -> Audited:
    """Read the numbers and lists of an audit folder; not ``with_work``, without what was done and mended.

    ``cpfs`` has the whole CPF of each client id, where somebody asked for them with a reason.
    """
    facts, partner = audit.facts, audit.partner
    today = facts.as_of.astimezone(ZoneInfo(facts.timezone)).date()
    listed, table = _listed(audit), partial(_table, audit)
    # In the order of the folder, in which people act.
    query = f"FROM findings WHERE {with_work} OR status <> '{FindingStatus.RESOLVED}'"
    found = table(query, few=(*FEW_OF_FINDINGS, "change"))
    findings = as_listed(found).assign(change=found["change"])
    if partner is not None:
        facts = replace(facts, source=uncounted(facts.source), files=Looks.of(audit.sql(LOOKS).to_pylist()))
    moved = "CAST(NULL AS BIGINT)" if partner is not None else "coalesce(trend, 0)"
    nothing = pd.DataFrame()
    cases = listed["saleId"].head(CASES).tolist()
    if cpfs is not None:
        listed["cpf"] = listed["clientId"].map(cpfs.get)
    return Audited(
        **_totals(audit),
        facts=facts,
        listed=listed,
        findings=findings,
        trend=table(BY_DAY.format(trend="FROM trend")),
        partners=table(_PARTNERS.format(trend=moved)) if with_work else nothing,
        partner_months=table(_PARTNER_MONTHS, facts.as_of, facts.timezone) if with_work else nothing,
        waivers=_waivers(audit, today),
        file_findings=audit.sql(FILE_FINDINGS).to_pylist(),
        faults=table(_FAULTS).astype(object),
        withdrawals=table(_WITHDRAWALS).astype(object),
        completed=table(_COMPLETED, facts.as_of).astype(object) if with_work else nothing,
        reviews=_reviews(audit) if with_work else Reviews(),
        records=audit.sql(_RECORDS, cases),
        events=audit.sql("FROM events"),
        today=today,
        partner=partner,
        cpf_shown=cpfs is not None,
    )


_STANDING: Final = "status IN ({})".format(", ".join(f"'{each}'" for each in STANDING))
_HOUSE: Final = f"'{Owner.COMPLIANCE}', '{Owner.OPERATIONS}'"
"""The owners of findings beside the one partner of a sale."""


def uncounted(source: Source) -> Source:
    """Return what a report for one partner tells of the source of an audit: nothing that counts rows of all."""
    counting = {ServiceChange.SALES_CHANGED, ServiceChange.RECORDS_CHANGED, ServiceChange.JUMPED}
    plain = [each for each in source.service_changes if recognised(each, ServiceChange).template not in counting]
    return replace(source, service_changes=tuple(plain), service_notes=(), rows_left_out=())


_CENSUS: Final = f"""
    SELECT 'utilityGroup' AS of, CASE WHEN utility_group IN ({", ".join(f"'{each}'" for each in UtilityGroup)})
        THEN utility_group ELSE '{audited.UNKNOWN_GROUP}' END AS row, status AS name, count(*) AS sales
    FROM verdicts GROUP BY ALL
    UNION ALL SELECT 'ageDays', CASE
        {" ".join(f"WHEN created_at > $1 - INTERVAL {d + 1} DAY THEN '{band}'" for band, d in AGE_BANDS.items())}
        ELSE '{audited.OLDER}' END, status, count(*)
    FROM verdicts WHERE status <> '{Status.COMPLIANT}' GROUP BY ALL
    UNION ALL SELECT 'evidenceType', piece, reason, count(*) FROM (
        SELECT unnest(string_split(missing, '{SEPARATOR}')) AS piece,
            unnest(string_split(reasons, '{SEPARATOR}')) AS reason
        FROM verdicts WHERE missing <> ''
    ) GROUP BY ALL
    UNION ALL SELECT 'problem', problem, 'sales', count(*) FROM (
        SELECT unnest(string_split(problems, '{SEPARATOR}')) AS problem FROM verdicts WHERE problems <> ''
    ) GROUP BY ALL
"""

_LISTED: Final = f"""
    WITH unproven AS ({UNPROVEN_SALES}), concerned AS (
        SELECT sale_id FROM unproven UNION SELECT unnest(sale_ids) FROM file_findings
    ), acting AS (
        SELECT sale_id, min(due_at) FILTER ({_STANDING}) AS due_at, count(*) FILTER (overdue) AS overdue,
            count(*) FILTER ({_STANDING}) AS open,
            count(*) FILTER ({_STANDING} AND severity = '{Severity.CRITICAL}') AS critical,
            count(*) FILTER (status = '{FindingStatus.WAIVED}') AS waived,
            concat_ws('|', replace(max(owner) FILTER ({_STANDING} AND owner NOT IN ({_HOUSE})), '|', '/'),
                {", ".join(f"max(owner) FILTER ({_STANDING} AND owner = {each})" for each in _HOUSE.split(", "))}
            ) AS owners
        FROM findings GROUP BY sale_id
    )
    SELECT {", ".join(f'{ours} AS "{name}"' for name, ours in audited.ROW_COLUMNS.items() if ours != "age_days")},
        due_at AS "dueAt", {", ".join(f"coalesce({each}, 0) AS {each}" for each in audited.OF_FINDINGS[1:-1])},
        coalesce(owners, '') AS owners, {RANK} AS rank
    FROM verdicts LEFT JOIN clients USING (client_id) LEFT JOIN acting USING (sale_id)
    WHERE {TO_TELL} OR sale_id IN (SELECT sale_id FROM concerned)
"""

_COMPLETED: Final = f"""
    SELECT sale_id AS "saleId", partner, completed_at AS "completedAt", status FROM verdicts
    WHERE completed_at > $1 - INTERVAL {audited.COMPLETED_DAYS} DAY AND completed_at <= $1
    QUALIFY row_number() OVER (PARTITION BY partner ORDER BY completed_at DESC, sale_id) <= {audited.MOST}
    ORDER BY completed_at DESC, sale_id
"""

_PARTNERS: Final = f"""
    WITH sold AS (
        SELECT coalesce(partner, '') AS partner, count(*) AS sales,
            {", ".join(f"count(*) FILTER (status = '{each}') AS {each}" for each in Status)},
            median(floor(epoch(completed_at)) - floor(epoch(created_at))) / 86400 AS median_days
        FROM verdicts GROUP BY 1
    ), found AS (
        SELECT coalesce(partner, '') AS partner, count(*) FILTER ({_STANDING}) AS findings,
            count(*) FILTER (overdue) AS overdue, count(*) FILTER (status = '{FindingStatus.WAIVED}') AS waived
        FROM findings GROUP BY 1
    ), moved AS (SELECT partner, arg_max(present, day) - arg_min(present, day) AS trend FROM trend GROUP BY 1)
    SELECT partner, {", ".join(f"coalesce({each}, 0) AS {each}" for each in ("sales", *Status))},
        {", ".join(f"coalesce({each}, 0) AS {each}" for each in ("findings", "overdue", "waived"))},
        {{trend}} AS trend, median_days AS "medianDays"
    FROM sold FULL JOIN found USING (partner) LEFT JOIN moved USING (partner)
    WHERE sales > 0 OR findings > 0
    ORDER BY overdue DESC, findings DESC, partner
"""

_PARTNER_MONTHS: Final = f"""
    WITH theirs AS (
        SELECT *, coalesce(closed_at, $1) AS until, closed_at IS NOT NULL AND reason IS NULL AS mended
        FROM findings WHERE owner = partner
    )
    SELECT partner, strftime(opened_at AT TIME ZONE $2, '%Y-%m') AS month, count(*) AS findings,
        count(told_at) AS told, count(answered_at) AS answered, count(*) FILTER (mended) AS mended,
        median(business_days_open) FILTER (mended) AS "medianDays", count(*) FILTER ({_STANDING}) AS "stillOpen",
        count(*) FILTER (
            waiver_id IS NULL AND due_at < until AND (told_at IS NULL OR told_at > due_at)) AS "lateUntold"
    FROM theirs WHERE date_diff('month', opened_at AT TIME ZONE $2, $1 AT TIME ZONE $2) < {audited.MONTHS}
    GROUP BY ALL ORDER BY month DESC, "stillOpen" DESC, partner
"""

_FAULTS: Final = """
    SELECT sale_id AS "saleId", partner, evidence_id AS "evidenceId", evidence_type AS "evidenceType",
        fault AS code, fault_since AS since, size, seconds, pages, media_type AS "mediaType", sha256
    FROM files WHERE fault IS NOT NULL AND withdrawn_at IS NULL ORDER BY fault_since DESC, sale_id, evidence_id
"""

FILE_FINDINGS: Final = """
    SELECT problem, sale_ids AS "saleIds", evidence_ids AS "evidenceIds", folders, detail
    FROM file_findings ORDER BY number
"""

_WITHDRAWALS: Final = """
    SELECT sale_id AS "saleId", partner, evidence_id AS "evidenceId", evidence_type AS "evidenceType", reason,
        withdrawn_by AS "withdrawnBy", approved_by AS "approvedBy", withdrawn_at AS "withdrawnAt"
    FROM withdrawals ORDER BY withdrawn_at DESC, sale_id, evidence_id
"""

_RECORDS: Final = """
    SELECT sale_id, evidence_id AS id, evidence_type AS type, state, requested_at AS requested,
        size, seconds, pages, left(sha256, 16) AS sha256, coverage, fault, seen_at AS seen,
        withdrawn_at AS withdrawn, reason, withdrawn_by AS "withdrawnBy", approved_by AS "approvedBy"
    FROM files LEFT JOIN (
        SELECT evidence_id, withdrawn_at, reason, withdrawn_by, approved_by FROM withdrawals
    ) AS taken USING (evidence_id, withdrawn_at)
    WHERE sale_id IN (SELECT unnest($1::text[])) ORDER BY sale_id, requested_at, evidence_id
"""
"""A page has 16 digits of each SHA-256; ``toolkit sale show`` has all 64."""

_LARGE: Final = 1 << 20  # bytes of a table whose memory is worth being given back


def _table(
    audit: Audit, query: str, *parameters: object, few: Sequence[str] = (), order: Sequence[str] = ()
) -> pd.DataFrame:
    """Return the rows of a query; columns with ``few`` distinct values become categories.

    Sorting them here, when they are small, takes half the memory that it takes in the query.
    """
    found = audit.sql(query, *parameters)
    for name in few:
        found = found.set_column(found.column_names.index(name), name, found[name].dictionary_encode())
    if order:
        found = found.take(pc.sort_indices(found, [(name, "ascending") for name in order]))
    table: pd.DataFrame = found.to_pandas()
    large = found.nbytes > _LARGE
    del found
    if large:
        pa.default_memory_pool().release_unused()  # for the next table
    return table


def _totals(audit: Audit) -> dict[str, Any]:
    """Return the totals, numbers and tables, by their names in ``Audited``."""
    [numbers] = audit.sql(TOTALS).to_pylist()
    counts = audit.sql(_CENSUS, audit.facts.as_of).to_pylist()
    found = {(each["of"], each["row"], each["name"]): each["sales"] for each in counts}

    def grid(of: str, rows: Iterable[str], columns: Iterable[str]) -> pd.DataFrame:
        """Return every row with every column, also where nothing was found."""
        return pd.DataFrame(
            [{of: str(row), **{str(each): found.get((of, row, each), 0) for each in columns}} for row in rows]
        )

    demanded = {requirement.named for rules in GROUP_RULES.values() for requirement in rules}
    groups = grid("utilityGroup", [*UtilityGroup, audited.UNKNOWN_GROUP], Status)
    problems = grid("problem", Problem, ["sales"])
    problems.insert(1, "severity", [str(CODES[each].severity) for each in Problem])
    return {
        "coverage": {each: numbers.pop(column) for each, column in COVERAGES.items()},
        "by_group": groups[(groups["utilityGroup"] != audited.UNKNOWN_GROUP) | groups[[*Status]].any(axis=1)],
        "missing": grid("evidenceType", [each for each in EvidenceType if each in demanded], Reason),
        "problems": problems,
        "ages": grid("ageDays", [*AGE_BANDS, audited.OLDER], [Status.INCOMPLETE, Status.CONFLICT]),
        **numbers,
    }


def _listed(audit: Audit) -> pd.DataFrame:
    found = _table(audit, _LISTED, few=(*audited.FEW, "owners"), order=("rank", "createdAt", "saleId"))
    found["ageDays"] = (audit.facts.as_of - found["createdAt"]).dt.days.clip(lower=0)
    return found[[*audited.ROW_COLUMNS, *audited.OF_FINDINGS]]


def _waivers(audit: Audit, today: date) -> tuple[Waiver, ...]:
    """Return those that hold on the day of the audit."""
    names = [each.name for each in fields(Waiver)]
    rows = audit.sql("FROM waivers ORDER BY added_at, id").to_pylist()
    found = (Waiver(**{name: row[name] for name in names} | {"id": UUID(row["id"])}) for row in rows)
    return tuple(each for each in found if each.holds(today))


def _reviews(audit: Audit) -> Reviews:
    if "reviews" not in audit.facts.parts:
        return Reviews()
    [row] = audit.sql(_COUNTS, audit.facts.as_of, audit.facts.timezone, str(EvidenceState.COUNTED)).to_pylist()
    if not row["drawn"]:
        return Reviews(**row)
    questions: pd.DataFrame = audit.sql(_BY_QUESTION).to_pandas(integer_object_nulls=True).astype(object)
    intervals = [
        interval(*map(int, each)) for each in zip(questions["failed"], questions["lookedAt"], strict=True)
    ]
    shares = pd.DataFrame(intervals, columns=["share", "low", "high"], index=questions.index, dtype=object)
    people = Reviews().agreement if audit.partner is not None else _agreement(audit.sql(_PAIRS).to_pandas())
    return Reviews(**row, questions=questions.join(shares), agreement=people)


_Z: Final = 1.959964  # the deviations that 95 per cent of a normal distribution lie within


def interval(failed: int, looked_at: int) -> tuple[float | None, float | None, float | None]:
    """Return the share of ``failed`` ones and Wilson's 95 per cent interval of it; nothing where nobody looked."""
    if not looked_at:
        return None, None, None
    share, square = failed / looked_at, _Z**2
    middle = (share + square / (2 * looked_at)) / (1 + square / looked_at)
    half = _Z / (1 + square / looked_at) * sqrt(share * (1 - share) / looked_at + square / (4 * looked_at**2))
    return share, middle - half if failed else 0.0, middle + half if failed < looked_at else 1.0


def _agreement(pairs: pd.DataFrame) -> pd.DataFrame:
    """Compare each reviewer with whoever else looked at the same file."""
    rows = [
        (*names, len(both), float((both["own"] == both["other"]).mean()), kappa(both))
        for names, both in pairs.groupby(["words", "reviewer"])
    ]
    return pd.DataFrame(rows, columns=Reviews().agreement.columns)


def kappa(pairs: pd.DataFrame) -> float | None:
    """Return Cohen's kappa of the columns ``own`` and ``other``, ``None`` where both know one answer only."""
    agreed = (pairs["own"] == pairs["other"]).mean()
    own, other = (pairs[name].value_counts(normalize=True) for name in ("own", "other"))
    by_chance = float((own * other).sum())
    return None if by_chance == 1 else float((agreed - by_chance) / (1 - by_chance))


_COUNTS: Final = """
    WITH present AS (
        SELECT evidence_id, arg_max(failed, answered_at) AS failed, max(ends_on) AS ends_on FROM reviews
        WHERE standing AND answered_at IS NOT NULL GROUP BY evidence_id
    ), counted AS (SELECT evidence_id FROM files WHERE state = $3)
    SELECT (SELECT count(*) FROM counted) AS files,
        (SELECT count(DISTINCT (draw_id, evidence_id)) FROM reviews) AS drawn,
        count(*) AS looked_at, count(*) FILTER (failed) AS failed,
        count(*) FILTER (NOT failed AND ends_on > CAST($1 AT TIME ZONE $2 AS DATE)) AS accepted
    FROM counted JOIN present USING (evidence_id)
"""

_BY_QUESTION: Final = """
    WITH answer AS (
        SELECT DISTINCT draw_id, evidence_id, partner, words, failing, failed FROM reviews
    ), every AS (SELECT DISTINCT draw_id, evidence_id, partner, failed FROM answer)
    SELECT partner, NULL AS question, count(*) AS drawn, count(failed) AS "lookedAt",
        count(*) FILTER (failed) AS failed
    FROM every GROUP BY partner
    UNION ALL
    SELECT partner, words, NULL, count(*), count(*) FILTER (failing)
    FROM answer WHERE words IS NOT NULL GROUP BY partner, words
    ORDER BY partner NULLS LAST, question NULLS FIRST
"""

_PAIRS: Final = """
    SELECT one.words, one.reviewer, one.answer AS own, two.answer AS other
    FROM reviews AS one JOIN reviews AS two USING (draw_id, evidence_id, question)
    WHERE one.turn <> two.turn AND one.turn <= 2 AND two.turn <= 2
    ORDER BY ALL
"""
