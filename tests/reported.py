"""Results of audits that never ran, for the tests of reports."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from math import inf
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, uuid5
from zoneinfo import ZoneInfo

import openpyxl
import pandas as pd
from pypdf.generic import ArrayObject

from toolkit.domain.contents import ContentProblem, Coverage
from toolkit.domain.custody_chain import Event
from toolkit.domain.deadlines import Deadlines
from toolkit.domain.evidence import KIND_OF, EvidenceType, FileKind
from toolkit.domain.integrity import IntegrityFinding
from toolkit.domain.rules import Evidence, EvidenceState, Sale, evaluate
from toolkit.operations.judge.audit import AuditResult
from toolkit.operations.judge.audit.census import AGE_BANDS, OLDER, UNKNOWN_GROUP
from toolkit.operations.judge.audit.expression import COVERAGES
from toolkit.operations.judge.audit.life import KnownLife
from toolkit.operations.judge.audit.lists import FEW, ROW_COLUMNS
from toolkit.operations.judge.audit.present import present_file_findings, present_findings
from toolkit.operations.judge.audit.records import EvidenceRecord, StoredFile
from toolkit.operations.judge.audit.sale_evidence import SaleEvidence
from toolkit.operations.judge.audit.source import LastSync, Source
from toolkit.operations.judge.findings.changes import TREND
from toolkit.operations.judge.findings.living import living
from toolkit.operations.verify.contents.verification import Verified
from toolkit.reports import DEFAULT_FORMATS, write_report

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


SALES = (
    Told("VND-1", "POV DC"),
    Told("VND-2", "POV! DC~", group="B", days=12, partner="Açaí & Cia"),
    Told("VND-3", "POV AUT? DCR?", group="C", payer=False, days=0.5, completed=True),
    Told("VND-4", "KYC POV", group="D", days=100, client_id=None, cpf=None),
    Told("VND-5", "", group="A", days=45, partner=None, unexamined=0),
    Told("VND-6", "POV DC", group="E", days=1),
    Told("VND-7", "POV DC DCR", group="C", unexamined=1),
)


TURNED = ("S\u202e01", "\u2067isolated\u2069", "line\u2028break")
"""Characters that show a text in another order, or break its line."""

NASTY = (
    "=cmd|'/c calc'!A1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\tx",
    "'=1",
    "'quoted'",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }}",
    'a,b\n"c"|d',
    "http://example.com",
)


@dataclass(frozen=True)
class KnownLists:
    """Lists that are given instead of read."""

    sales: pd.DataFrame
    evidence: Callable[[Sequence[str]], Iterator[SaleEvidence]]
    completed: pd.DataFrame
    faults: pd.DataFrame = field(default_factory=partial(pd.DataFrame, columns=FAULTS))
    withdrawals: pd.DataFrame = field(default_factory=partial(pd.DataFrame, columns=WITHDRAWN))
    completions: pd.DataFrame = field(
        default_factory=partial(pd.DataFrame, columns=["partner", "completed", "median_days"])
    )


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
    evidence: Mapping[str, SaleEvidence] | None = None,
) -> AuditResult:
    """Return the result of an audit of these sales, some of which have this ``evidence``."""
    known = {each.sale_id: evidence_of(each) for each in told} | dict(evidence or {})
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
    completed = told_rows.loc[told_rows["completedAt"].notna(), ["saleId", "partner", "completedAt"]].astype(
        object
    )
    zone = ZoneInfo("America/Sao_Paulo")
    present = pd.concat(
        [
            present_findings(told_rows),
            present_file_findings(file_findings, pd.DataFrame(columns=["sale_id", "partner", "utility_group"])),
        ]
    )
    found = living(present, pd.DataFrame(columns=["id"]), [], [], AS_OF, Deadlines(zone))
    lists: Any = KnownLists(
        told_rows,
        lambda sale_ids: (known.get(each) or SaleEvidence((), ()) for each in sale_ids),
        completed.reset_index(drop=True),
    )
    return AuditResult(
        as_of=AS_OF,
        made_at=AS_OF,
        source=given_source or source(),
        counts=counts,
        open_by_age=pd.DataFrame(
            {
                "partner": rows["partner"],
                "status": rows["status"],
                "band": pd.cut(rows["ageDays"], [-1, *AGE_BANDS.values(), inf], labels=[*AGE_BANDS, OLDER]),
                "sales": 1,
            }
        ),
        lists=lists,
        cpf_shown=cpf_shown,
        file_findings=tuple(file_findings),
        verification=Verified(0, {}, 0),
        life=KnownLife(found, pd.DataFrame(columns=list(TREND))),
    )


def evidence_of(told: Told) -> SaleEvidence:
    """Return a record for each word of ``files``, and the events of those that have a file."""
    records, events = [], []
    for number, (evidence_type, state) in enumerate(states(told.files)):
        evidence_id = uuid5(NAMESPACE_OID, f"{told.sale_id} {number}")
        seen_at = AS_OF - timedelta(hours=number)
        there = state in {EvidenceState.COUNTED, EvidenceState.UNUSABLE}
        fault = str(ContentProblem.DAMAGED) if state is EvidenceState.UNUSABLE else None
        seconds, pages = (61.25, None) if KIND_OF[evidence_type] is FileKind.AUDIO else (None, 2)
        file = StoredFile(number, 1234567, seen_at, Coverage.VERIFIED, None, "5ea1" * 16, seconds, pages, fault)
        record = EvidenceRecord(
            *(evidence_id, told.sale_id, str(evidence_type), state, None, None, None, AS_OF - timedelta(days=1)),
            *(None, None, "key", file if there else None, None),
        )
        records.append(record)
        events += [(Event(number, "UPLOADED", seen_at, {}), evidence_id)] * there
    return SaleEvidence(tuple(records), tuple(events[::-1]))


def states(files: str) -> list[tuple[EvidenceType, EvidenceState]]:
    """The type and the state of the record that each word stands for."""
    words = [(word.rstrip("!-?~"), MARKS.get(word[-1], EvidenceState.COUNTED)) for word in files.split()]
    return [(SHORT.get(name) or EvidenceType(name), state) for name, state in words]


def _row(told: Told) -> dict[str, Any]:
    records = [Evidence(*each) for each in states(told.files)]
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


def written(result: AuditResult, out: Path, *formats: str) -> Path:
    write_report(result, out, formats or DEFAULT_FORMATS)
    return out


def csv_rows(out: Path) -> list[dict[str, str]]:
    with (out / "missing-evidence.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def sheet_rows(out: Path, name: str) -> list[tuple[Any, ...]]:
    book = openpyxl.load_workbook(out / "missing-evidence.xlsx")
    return list(book[name].iter_rows(values_only=True))


def structure(element: Any) -> Iterator[str]:
    """The kinds of the elements of a tagged PDF, from the top."""
    element = element.get_object()
    if isinstance(element, dict):
        if "/S" in element:
            yield str(element["/S"])
        yield from structure(element.get("/K", ArrayObject()))
    elif isinstance(element, list):
        for each in element:
            yield from structure(each)
