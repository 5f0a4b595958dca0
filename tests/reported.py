"""Results of audits that never ran, for the tests of reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd

from toolkit.domain.deadlines import Deadlines
from toolkit.domain.evidence import EvidenceType
from toolkit.domain.integrity import IntegrityFinding
from toolkit.domain.rules import Evidence, EvidenceState, Sale, evaluate
from toolkit.operations.judge.audit import AuditResult
from toolkit.operations.judge.audit.census import UNKNOWN_GROUP
from toolkit.operations.judge.audit.expression import COVERAGES
from toolkit.operations.judge.audit.life import NO_LIFE
from toolkit.operations.judge.audit.present import present_file_findings, present_findings
from toolkit.operations.judge.audit.result import FEW, ROW_COLUMNS
from toolkit.operations.judge.audit.source import LastSync, Source
from toolkit.operations.judge.findings.living import living
from toolkit.operations.verify.contents.verification import Verified

AS_OF = datetime(2026, 11, 20, 21, 0, tzinfo=UTC)

MARKS = {
    "!": EvidenceState.UNUSABLE,
    "-": EvidenceState.VANISHED,
    "?": EvidenceState.NOT_UPLOADED,
    "~": EvidenceState.EXPIRED,
}
SHORT = {
    "DC": EvidenceType.DOC_CONTRATANTE,
    "DR": EvidenceType.DOC_RESPONSAVEL_FINANCEIRO,
    "DCR": EvidenceType.DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO,
}


_OF_RECORD = ["saleId", "partner", "evidenceId", "evidenceType"]
FAULTS = [*_OF_RECORD, "code", "since", "size", "seconds", "pages", "mediaType", "sha256"]
WITHDRAWN = [*_OF_RECORD, "reason", "withdrawnBy", "approvedBy", "withdrawnAt"]


@dataclass(frozen=True)
class Told:
    """A sale as a test tells it: ``files`` as in the tests of the rules, ``POV DC~ DCR!``."""

    sale_id: str
    files: str = ""
    group: str = "A"
    payer: bool = True
    completed: bool = False
    days: float = 3
    partner: str | None = "Norte Energia"
    client_id: str | None = "0199c2d4-0000-7000-8000-000000000001"
    cpf: str | None = "***.982.247-**"
    unexamined: int = 0
    first_bytes: int = 0
    extra: dict[str, Any] = field(default_factory=dict)


def source(*, embedded: Sequence[str] = (), synced: bool = True) -> Source:
    return Source(
        database="db.example.com:5432/sales",
        embedded=tuple(embedded),
        toolkit="0.0.0",
        rules="0123456789ab",
        last_sync=LastSync(AS_OF - timedelta(minutes=5), "evidence at s3.example.com") if synced else None,
        seal="5ea1" * 16 if synced else None,
    )


def result_of(
    told: Sequence[Told],
    *,
    given_source: Source | None = None,
    cpf_shown: bool = False,
    file_findings: Sequence[IntegrityFinding] = (),
) -> AuditResult:
    """Return the result of an audit of these sales."""
    everything = pd.DataFrame([_row(each) for each in told], columns=[*ROW_COLUMNS, "age", "has_client"])
    census = everything.assign(
        utility_group=everything["utilityGroup"].where(
            everything["utilityGroup"].isin(list("ABCD")), UNKNOWN_GROUP
        ),
        sales=1,
        first_bytes=everything["firstBytes"],
        fully_verified=(everything["firstBytes"] + everything["never"]) == 0,
    )
    keys = [
        "status",
        "missing",
        "reasons",
        "problems",
        "utility_group",
        "partner",
        "has_client",
        "fully_verified",
    ]
    counts = census.groupby(keys, as_index=False, dropna=False)[["sales", "unexamined", *COVERAGES.values()]].sum()
    rows = everything.loc[everything["status"] != "compliant", list(ROW_COLUMNS)].reset_index(drop=True)
    warns = (everything["problems"] != "") | everything["clientId"].isna()
    warned = everything.loc[(everything["status"] == "compliant") & warns, list(ROW_COLUMNS)]
    told_rows = pd.concat([rows, warned], ignore_index=True).astype(dict.fromkeys(FEW, "category"))
    for name in ("createdAt", "completedAt", "oldestRequest"):
        told_rows[name] = pd.to_datetime(told_rows[name], utc=True).astype("datetime64[us, UTC]")
    zone = ZoneInfo("America/Sao_Paulo")
    present = pd.concat(
        [
            present_findings(told_rows),
            present_file_findings(file_findings, pd.DataFrame(columns=["sale_id", "partner", "utility_group"])),
        ]
    )
    no_lives = pd.DataFrame(columns=["id"])
    return AuditResult(
        as_of=AS_OF,
        made_at=AS_OF,
        source=given_source or source(),
        counts=counts,
        read_rows=lambda: told_rows,
        cpf_shown=cpf_shown,
        file_findings=tuple(file_findings),
        verification=Verified(0, {}, 0),
        life=replace(
            NO_LIFE, read=lambda: (living(present, no_lives, [], [], AS_OF, Deadlines(zone)), NO_LIFE.trends)
        ),
        read_faults=lambda: pd.DataFrame(columns=FAULTS),
        read_withdrawals=lambda: pd.DataFrame(columns=WITHDRAWN),
        read_completions=lambda: pd.DataFrame(columns=["partner", "completed", "median_days"]),
    )


def _row(told: Told) -> dict[str, Any]:
    words = [(word.rstrip("!-?~"), MARKS.get(word[-1], EvidenceState.COUNTED)) for word in told.files.split()]
    records = [Evidence(SHORT.get(name) or EvidenceType(name), state) for name, state in words]
    verdict = evaluate(Sale(told.group, told.payer, told.completed), records)
    there = {record.evidence_type for record in records if record.state is EvidenceState.COUNTED}
    created_at = AS_OF - timedelta(days=told.days)
    return {
        "saleId": told.sale_id,
        "utilityGroup": told.group,
        "status": str(verdict.status),
        "missing": "|".join(piece.evidence_type for piece in verdict.missing),
        "reasons": "|".join(piece.reason for piece in verdict.missing),
        "problems": "|".join(verdict.problems),
        "counted": "|".join(each for each in EvidenceType if each in there),
        "isClientFinancialResponsible": told.payer,
        "partner": told.partner,
        "clientId": told.client_id,
        "cpf": told.cpf,
        "createdAt": created_at,
        "ageDays": int(told.days),
        "completedAt": created_at + timedelta(hours=2) if told.completed else None,
        "oldestRequest": created_at + timedelta(hours=1) if records else None,
        "unexamined": told.unexamined,
        "verified": sum(record.state is EvidenceState.COUNTED for record in records)
        - told.unexamined
        - told.first_bytes,
        "firstBytes": told.first_bytes,
        "never": told.unexamined,
        "unreadable": 0,
        "has_client": told.client_id is not None,
    }
