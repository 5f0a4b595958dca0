"""Read the numbers and lists of an audit folder by DuckDB over its Parquet files, of all partners or of one.

The report of one partner reads the same folder through views that hold the rows of this partner alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime, timedelta
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa

from toolkit.audit.findings import TREND_DAYS, as_listed
from toolkit.audit.folder import Audit
from toolkit.audit.judge import COVERAGES, looks_sql
from toolkit.audit.source import Looks
from toolkit.contract.codes import EndReason
from toolkit.contract.contents import IntegrityFinding, IntegrityProblem
from toolkit.contract.evidence import UtilityGroup
from toolkit.contract.findings import Problem, Status
from toolkit.contract.waivers import Waiver, WaiverRequest
from toolkit.errors import InvalidInput
from toolkit.reports.audited import CASES, Audited, Compared
from toolkit.reports.totals import (
    AGE_BANDS,
    COMPLETED_DAYS,
    FEW,
    MOST,
    OLDER,
    ROW_COLUMNS,
    UNKNOWN_GROUP,
    UNVERIFIED,
)


def partners_in(audit: Audit) -> list[str]:
    """Return the names of the partners that sales of an audit name, in their order."""
    found = audit.sql("SELECT DISTINCT partner FROM verdicts WHERE partner IS NOT NULL ORDER BY 1")
    names: list[str] = found["partner"].to_pylist()
    return names


def read_audited(audit: Audit, *, cpfs: Mapping[str, str] | None = None) -> Audited:
    """Read the numbers and lists of an audit folder.

    ``cpfs`` has the whole CPF of each client id, where somebody asked for them with a reason.

    Raises:
        InvalidInput: no sale names the partner that the tables are restricted to.
    """
    facts, partner = audit.facts, audit.partner
    if partner is not None and not audit.sql("SELECT 1 FROM verdicts LIMIT 1").num_rows:
        raise InvalidInput("No sale names the partner {!r}; names are written exactly as in the sales.", partner)
    read = _Reading(audit, facts.as_of, facts.as_of.astimezone(ZoneInfo(facts.timezone)).date())
    findings, told = read.findings(), read.told()
    if cpfs is not None:
        told["cpf"] = told["clientId"].map(cpfs.get)
    return Audited(
        counts=read.table(_CENSUS),
        open_by_age=read.table(_AGES, facts.as_of),
        as_of=facts.as_of,
        made_at=facts.made_at,
        source=facts.source,
        told=told,
        findings=findings.drop(columns="change"),
        trends=read.trends(),
        compared=_compared(findings, facts.changes_since, facts.as_of),
        waivers=read.waivers(set(findings["waiverId"].dropna())),
        file_findings=read.file_findings(findings),
        faults=read.camel("files", _FAULTS, "fault IS NOT NULL AND withdrawn_at IS NULL", "fault_since"),
        withdrawals=read.camel("withdrawals", _WITHDRAWALS, "true", "withdrawn_at"),
        latest_completed=read.table(_COMPLETED, facts.as_of, facts.as_of - timedelta(days=COMPLETED_DAYS)).astype(
            object
        ),
        completions=read.table(_COMPLETIONS),
        **read.evidence(told["saleId"].head(CASES).tolist()),
        today=read.today,
        partner=partner,
        of_now=facts.of_now,
        verified_first=facts.verified_first,
        looks=Looks.of(audit.sql(looks_sql()).to_pylist()),
        cpf_shown=cpfs is not None,
    )


_TOLD_STATUSES: Final = f"status <> '{Status.COMPLIANT}' OR problems <> '' OR client_id IS NULL"
_UNPROVEN: Final = "first_bytes + never + unreadable > 0"

_CENSUS: Final = f"""
    SELECT status, missing, reasons, problems, partner,
        CASE WHEN utility_group IN ({", ".join(f"'{each}'" for each in UtilityGroup)})
            THEN utility_group ELSE '{UNKNOWN_GROUP}' END AS utility_group,
        client_id IS NOT NULL AS has_client, NOT ({_UNPROVEN}) AS fully_verified,
        count(*) AS sales, sum(unexamined)::bigint AS unexamined,
        {", ".join(f"sum({column})::bigint AS {column}" for column in COVERAGES.values())}
    FROM verdicts GROUP BY ALL ORDER BY ALL
"""

_AGES: Final = f"""
    SELECT status, partner, CASE
        {" ".join(f"WHEN created_at > $1 - INTERVAL {d + 1} DAY THEN '{band}'" for band, d in AGE_BANDS.items())}
        ELSE '{OLDER}' END AS band, count(*) AS sales
    FROM verdicts WHERE status <> '{Status.COMPLIANT}' GROUP BY ALL ORDER BY ALL
"""

_TOLD: Final = f"""
    WITH unproven AS (
        SELECT sale_id FROM verdicts WHERE NOT ({_TOLD_STATUSES}) AND {_UNPROVEN}
        ORDER BY sale_id LIMIT {UNVERIFIED}
    ), concerned AS (
        SELECT sale_id FROM unproven UNION SELECT unnest(sale_ids) FROM file_findings
    )
    SELECT {", ".join(f'{ours} AS "{name}"' for name, ours in ROW_COLUMNS.items() if ours != "age_days")}
    FROM verdicts LEFT JOIN clients USING (client_id)
    WHERE {_TOLD_STATUSES} OR sale_id IN (SELECT sale_id FROM concerned)
    ORDER BY status = '{Status.COMPLIANT}', NOT starts_with(problems, '{Problem.COMPLETED_WITHOUT_EVIDENCE}'),
        created_at, sale_id
"""

_COMPLETED: Final = f"""
    SELECT sale_id AS "saleId", partner, completed_at AS "completedAt" FROM verdicts
    WHERE completed_at > $2 AND completed_at <= $1
    QUALIFY row_number() OVER (PARTITION BY partner ORDER BY completed_at DESC, sale_id) <= {MOST}
    ORDER BY completed_at DESC, sale_id
"""

_COMPLETIONS: Final = """
    SELECT partner, count(*) AS completed,
        median(floor(epoch(completed_at)) - floor(epoch(created_at))) / 86400 AS median_days
    FROM verdicts WHERE completed_at IS NOT NULL GROUP BY partner
"""

_FAULTS: Final = {
    "saleId": "sale_id",
    "partner": "partner",
    "evidenceId": "evidence_id",
    "evidenceType": "evidence_type",
    "code": "fault",
    "since": "fault_since",
    "size": "size",
    "seconds": "seconds",
    "pages": "pages",
    "mediaType": "media_type",
    "sha256": "sha256",
}
_WITHDRAWALS: Final = {
    "saleId": "sale_id",
    "partner": "partner",
    "evidenceId": "evidence_id",
    "evidenceType": "evidence_type",
    "reason": "reason",
    "withdrawnBy": "withdrawn_by",
    "approvedBy": "approved_by",
    "withdrawnAt": "withdrawn_at",
}
@dataclass(frozen=True, slots=True)
class _Reading:
    audit: Audit
    as_of: datetime
    today: date

    def table(self, query: str, *parameters: object) -> pd.DataFrame:
        found: pd.DataFrame = self.audit.sql(query, *parameters).to_pandas()
        return found

    def camel(self, table: str, columns: Mapping[str, str], wanted: str, latest: str) -> pd.DataFrame:
        """Return rows under the names that reports have for their columns, the latest first."""
        listed = ", ".join(f'{ours} AS "{name}"' for name, ours in columns.items())
        query = f"SELECT {listed} FROM {table} WHERE {wanted} ORDER BY {latest} DESC, sale_id, evidence_id"
        return self.table(query).astype(object)

    def told(self) -> pd.DataFrame:
        found = self.table(_TOLD)
        for name in ("createdAt", "completedAt", "oldestRequest"):
            found[name] = pd.to_datetime(found[name], utc=True).astype("datetime64[us, UTC]")
        found["ageDays"] = (self.as_of - found["createdAt"]).dt.days.clip(lower=0)
        return found[list(ROW_COLUMNS)].astype(dict.fromkeys(FEW, "category"))

    def findings(self) -> pd.DataFrame:
        """Return the findings in the order of the folder, in which people act, each with its remedy."""
        found = self.table("SELECT * FROM findings")
        return as_listed(found).assign(change=found["change"].astype("category"))

    def trends(self) -> pd.DataFrame:
        found = self.table("SELECT partner, day, present, came, went FROM trend ORDER BY partner, day")
        found["day"] = pd.to_datetime(found["day"]).dt.date
        if self.audit.partner is None or len(found):
            return found
        days = [self.today - timedelta(days=back) for back in reversed(range(TREND_DAYS))]
        return pd.DataFrame({"partner": self.audit.partner, "day": days, "present": 0, "came": 0, "went": 0})

    def waivers(self, used: set[str]) -> tuple[Waiver, ...]:
        """Return those that hold on the day of the audit; of one partner, those of its findings."""
        asked = [each.name for each in fields(WaiverRequest)]
        rest = ("added_at", "revoked_at", "revoked_by", "revoked_reason")
        found = (
            Waiver(UUID(row["id"]), WaiverRequest(*(row[each] for each in asked)), *(row[each] for each in rest))
            for row in self.audit.sql("SELECT * FROM waivers ORDER BY added_at, id").to_pylist()
            if self.audit.partner is None or row["id"] in used
        )
        return tuple(each for each in found if each.holds(self.today))

    def file_findings(self, findings: pd.DataFrame) -> tuple[IntegrityFinding, ...]:
        rows = self.audit.sql("SELECT * FROM file_findings ORDER BY number").to_pylist()
        if self.audit.partner is None:
            return tuple(map(_file_finding, rows))
        ids, sales = set(findings["id"]), set(findings["saleId"].dropna())
        return tuple(_file_finding(row).only(sales) for row in rows if not ids.isdisjoint(row["finding_ids"]))

    def evidence(self, sale_ids: Sequence[str]) -> dict[str, pa.Table]:
        """Return the records and the events of these sales."""
        of_these = "sale_id IN (SELECT unnest($1::text[]))"
        records = self.audit.sql(
            "SELECT files.*, reason, withdrawn_by, approved_by FROM files "
            "LEFT JOIN (SELECT evidence_id, reason, withdrawn_by, approved_by FROM withdrawals) AS taken "
            f"USING (evidence_id) WHERE {of_these} ORDER BY sale_id, requested_at, evidence_id",
            list(sale_ids),
        )
        return {
            "records": records,
            "events": self.audit.sql(f"SELECT * FROM events WHERE {of_these}", list(sale_ids)),
        }


def _file_finding(row: Mapping[str, Any]) -> IntegrityFinding:
    """Return a finding, the folders of its objects in place of their keys."""
    ids = tuple(UUID(str(each)) for each in row["evidence_ids"])
    sales, folders = tuple(row["sale_ids"]), tuple(row["folders"])
    return IntegrityFinding(IntegrityProblem(row["problem"]), folders, ids, sales, row["detail"])


def _compared(findings: pd.DataFrame, since: datetime | None, as_of: datetime) -> Compared | None:
    """Return what the audit noted of each finding since the audit before."""
    if since is None:
        return None
    of = {kind: findings.loc[findings["change"] == kind, "id"] for kind in ("new", "reopened", "resolved", "open")}
    ids = {kind: pa.array(sorted(of[kind]), pa.large_string()) for kind in ("new", "reopened", "resolved")}
    left = findings.loc[(findings["change"] == "resolved") & (findings["reason"] == EndReason.SALE_GONE), "id"]
    without = pa.array(sorted(left), pa.large_string())
    return Compared(since, as_of, **ids, without_sale=without, still_open=len(of["open"]))
