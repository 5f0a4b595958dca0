"""Results of audits that never ran, for the tests of reports."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import NAMESPACE_OID, uuid5
from zoneinfo import ZoneInfo

import openpyxl
import pandas as pd

from tests.support.audit_folders import audit_folder
from toolkit.audit.duckdb_session import duckdb_session
from toolkit.audit.extract import Observed
from toolkit.audit.findings import findings_query
from toolkit.audit.folder import Audit, AuditFacts
from toolkit.audit.source import LastSync, Source
from toolkit.contract.codes import SaleWarning, missing_code
from toolkit.contract.contents import LOOK, ContentProblem, Coverage, IntegrityFinding
from toolkit.contract.deadlines import Deadlines
from toolkit.contract.events import Event
from toolkit.contract.evidence import KIND_OF, EvidenceType, FileKind, Withdrawal
from toolkit.contract.findings import file_finding_ids, finding_id, items
from toolkit.contract.rules import Evidence, EvidenceState, Sale, evaluate
from toolkit.evidence.records import EvidenceRecord, StoredFile, TimeLine
from toolkit.reports import DEFAULT_FORMATS, write_report
from toolkit.reports.audited import Audited
from toolkit.reports.reading import read_audited
from toolkit.reports.totals import FEW, ROW_COLUMNS

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


_ABOUT = "code VARCHAR, sale_id VARCHAR, partner VARCHAR, utility_group VARCHAR"
_HISTORY = {
    "present": f"id UUID, {_ABOUT}, reason VARCHAR",
    "episode": f"finding_id UUID, {_ABOUT}, seen_at TIMESTAMPTZ, gone_at TIMESTAMPTZ",
    "sale": "sale_id VARCHAR, partner VARCHAR, utility_group VARCHAR",
    "gap": "sale_id VARCHAR, gone_at TIMESTAMPTZ, back_at TIMESTAMPTZ",
}

_OF_RECORD = ["saleId", "partner", "evidenceId", "evidenceType"]
FAULTS = [*_OF_RECORD, "code", "since", "size", "seconds", "pages", "mediaType", "sha256"]
WITHDRAWN = [*_OF_RECORD, "reason", "withdrawnBy", "approvedBy", "withdrawnAt"]


@dataclass(frozen=True)
class SaleEvidence:
    """The records and the events of one sale."""

    records: tuple[EvidenceRecord, ...]
    timeline: TimeLine | None


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
) -> Audited:
    """Return an audit of these sales, some of which have this ``evidence``, as it is read from its folder."""
    with TemporaryDirectory() as folder:
        made = folder_of(Path(folder), told, given_source, file_findings, evidence)
        return replace(read_audited(made), cpf_shown=cpf_shown)


def folder_of(
    place: Path,
    told: Sequence[Told],
    given_source: Source | None = None,
    file_findings: Sequence[IntegrityFinding] = (),
    evidence: Mapping[str, SaleEvidence] | None = None,
) -> Audit:
    """Write the folder of an audit of these sales."""
    known = {each.sale_id: evidence_of(each) for each in told} | dict(evidence or {})
    verdicts = [_row(each) for each in told]
    rows = pd.DataFrame(verdicts, columns=[each for each in ROW_COLUMNS.values() if each != "age_days"])
    rows = rows.rename(columns={ours: name for name, ours in ROW_COLUMNS.items()})
    present = pd.concat(
        [
            present_findings(rows.astype(dict.fromkeys(FEW, "category"))),
            present_file_findings(file_findings, rows.rename(columns=ROW_COLUMNS)[_OF_SALE]),
        ]
    )
    zone = ZoneInfo("America/Sao_Paulo")
    with duckdb_session() as session:
        for name, columns in _HISTORY.items():
            session.execute(f"CREATE TABLE {name} ({columns})")
        if len(present):
            rows = present.astype(object).where(present.notna(), None).itertuples(index=False)
            session.executemany("INSERT INTO present VALUES (?, ?, ?, ?, ?, ?)", [*rows])
        query = findings_query(Observed(session, AS_OF), audits=[], waivers=[], deadlines=Deadlines(zone))
        findings: list[Any] = session.sql(query).to_arrow_table().to_pylist()
    partners = {each.sale_id: each.partner for each in told}
    return audit_folder(
        place,
        AuditFacts(
            as_of=AS_OF,
            made_at=AS_OF,
            run="1",
            counts={},
            coverage={},
            changes_since=None,
            verified_first=True,
            timezone=zone.key,
            source=given_source or source(),
        ),
        {
            "verdicts": verdicts,
            "findings": findings,
            "files": [
                _file_row(record, partners.get(sale_id))
                for sale_id, own in known.items()
                for record in own.records
            ],
            "events": [
                {
                    "sale_id": sale_id,
                    "evidence_id": str(evidence_id),
                    "kind": event.kind,
                    "happened_at": event.happened_at,
                }
                for sale_id, own in sorted(known.items())
                for event, evidence_id in own.timeline or ()
            ],
            "withdrawals": [
                {"sale_id": sale_id, "partner": partners.get(sale_id), "evidence_type": record.evidence_type}
                | _withdrawal(record.withdrawal)
                for sale_id, own in known.items()
                for record in own.records
                if record.withdrawal
            ],
            "clients": [
                {"client_id": each.client_id, "cpf": each.cpf}
                for each in {each.client_id: each for each in told}.values()
                if each.client_id
            ],
            "file_findings": [
                {
                    "number": number,
                    "problem": each.problem,
                    "detail": each.detail,
                    "sale_ids": each.sale_ids,
                    "evidence_ids": [*map(str, each.evidence_ids)],
                    "folders": each.folders,
                    "finding_ids": [one for one, _ in file_finding_ids(each)],
                }
                for number, each in enumerate(file_findings)
            ],
        },
    )


_OF_SALE = ["sale_id", "partner", "utility_group"]


def _file_row(record: EvidenceRecord, partner: str | None) -> dict[str, Any]:
    taken, file = record.withdrawal, record.file
    row: dict[str, Any] = {
        "evidence_id": str(record.id),
        "sale_id": record.sale_id,
        "partner": partner,
        "evidence_type": record.evidence_type,
        "state": record.told_state,
        "requested_at": record.requested_at,
        "expires_at": record.expires_at,
    }
    if file:
        row |= {each.name: getattr(file, each.name) for each in fields(file)} | {"fault_since": file.seen_at}
        row |= {"look": LOOK}
    if taken:
        row |= {"withdrawn_at": taken.withdrawn_at}
    return row


def _withdrawal(taken: Withdrawal) -> dict[str, Any]:
    told = {each.name: getattr(taken, each.name) for each in fields(taken)}
    return {"evidence_id": str(told.pop("evidence_id")), **told}


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
        requested_at = AS_OF - timedelta(days=1) + timedelta(minutes=number)
        record = EvidenceRecord(
            *(evidence_id, told.sale_id, str(evidence_type), state, None, None, None, requested_at),
            *(None, "key", file if there else None, None),
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
        "sale_id": told.sale_id,
        "utility_group": told.group,
        "status": str(verdict.status),
        "missing": "|".join(piece.evidence_type for piece in verdict.missing),
        "reasons": "|".join(piece.reason for piece in verdict.missing),
        "problems": "|".join(verdict.problems),
        "counted": "|".join(each for each in EvidenceType if each in there),
        "is_client_financial_responsible": told.payer,
        "partner": told.partner,
        "client_id": told.client_id,
        "created_at": created_at,
        "completed_at": created_at + timedelta(hours=2) if told.completed else None,
        "oldest_request": created_at + timedelta(hours=1) if records else None,
        "unexamined": told.unexamined,
        "verified": sum(record.state is EvidenceState.COUNTED for record in records)
        - told.unexamined
        - told.first_bytes,
        "first_bytes": told.first_bytes,
        "never": told.unexamined,
        "unreadable": 0,
    }


def written(result: Audited, out: Path, *formats: str) -> Path:
    write_report(result, out, formats or DEFAULT_FORMATS)
    return out


def csv_rows(out: Path) -> list[dict[str, str]]:
    with (out / "missing-evidence.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def sheet_rows(out: Path, name: str) -> list[tuple[Any, ...]]:
    book = openpyxl.load_workbook(out / "missing-evidence.xlsx")
    return list(book[name].iter_rows(values_only=True))


_PRESENT = ["id", "code", "sale_id", "partner", "utility_group", "reason"]


def present_findings(sales: pd.DataFrame) -> pd.DataFrame:
    """The problems, missing pieces and warnings of sales, which are in the columns of ``Audited.told``."""
    found = []
    for row in sales.astype(object).where(sales.notna(), None).to_dict("records"):
        codes: list[tuple[str, str | None]] = [(problem, None) for problem in items(row["problems"])]
        codes += zip(map(missing_code, items(row["missing"])), items(row["reasons"]), strict=True)
        codes += [(str(SaleWarning.WITHOUT_CLIENT), None)] * (row["clientId"] is None)
        about = (row["saleId"], row["partner"], row["utilityGroup"])
        found += [(finding_id(code, row["saleId"]), code, *about, reason) for code, reason in codes]
    return pd.DataFrame(found, columns=_PRESENT, dtype=object)


def present_file_findings(findings: Iterable[IntegrityFinding], sales: pd.DataFrame) -> pd.DataFrame:
    """The findings about files, one row a sale; ``sales`` has their partners and utility groups."""
    rows = [
        (each, str(finding.problem), sale_id)
        for finding in findings
        for each, sale_id in file_finding_ids(finding)
    ]
    found = pd.DataFrame(rows, columns=["id", "code", "sale_id"], dtype="str")
    found = found.drop_duplicates("id").merge(sales, on="sale_id", how="left")
    return found.reindex(columns=_PRESENT)
