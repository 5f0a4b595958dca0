"""Results of audits that were made without a database, for the tests of reports."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import NAMESPACE_OID, uuid5
from zoneinfo import ZoneInfo

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.audits import judge_on
from tests.support.client_rows import read_csv
from toolkit.audit import run
from toolkit.audit.duckdb_session import duckdb_session
from toolkit.audit.engines import DuckdbEngine
from toolkit.audit.findings import find_present, note_changes, write_findings
from toolkit.audit.folder import FACTS, AuditFacts, LastSync, Source, open_audit, part_of
from toolkit.audit.judge import GIVEN, OUTPUTS
from toolkit.contract.contents import LOOK, ContentProblem, Coverage
from toolkit.contract.deadlines import Deadlines
from toolkit.contract.evidence import KIND_OF, EvidenceType, FileKind
from toolkit.contract.rules import EvidenceState
from toolkit.reports import write_report
from toolkit.reports.reading import read_audited
from toolkit.reports.report import DEFAULT_FORMATS, Report

AS_OF = datetime(2026, 11, 20, 21, 0, tzinfo=UTC)

MARKS = {
    "!": EvidenceState.UNUSABLE,
    "-": EvidenceState.VANISHED,
    "?": EvidenceState.NOT_UPLOADED,
    "~": EvidenceState.EXPIRED,
    "/": EvidenceState.WITHDRAWN,
}
SHORT = {
    "DC": EvidenceType.DOC_CONTRATANTE,
    "DR": EvidenceType.DOC_RESPONSAVEL_FINANCEIRO,
    "DCR": EvidenceType.DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO,
}

_SCHEMAS = {**{name: schema.to_pyarrow() for name, schema in GIVEN.items()}, **run._LISTS}
_ABOUT = "code VARCHAR, sale_id VARCHAR, partner VARCHAR, utility_group VARCHAR"
_HISTORY = {
    "episode": f"finding_id UUID, {_ABOUT}, seen_at TIMESTAMPTZ, gone_at TIMESTAMPTZ",
    "sale": "sale_id VARCHAR, partner VARCHAR, utility_group VARCHAR",
    "gap": "sale_id VARCHAR, gone_at TIMESTAMPTZ, back_at TIMESTAMPTZ",
    "told": "finding_id UUID, partner VARCHAR, delivered_at TIMESTAMPTZ",
    "answered": "finding_id UUID, partner VARCHAR, answer VARCHAR, until DATE, answered_at TIMESTAMPTZ",
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
    *("=cmd|'/c calc'!A1", "+1", "-1", "@SUM(A1)", "\tx", "'=1", "'quoted'", "<script>alert(1)</script>"),
    *('"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}", 'a,b\n"c"|d', "http://example.com"),
)


def source(*, embedded=(), synced=True):
    return Source(
        database="db.example.com:5432/sales",
        embedded=tuple(embedded),
        toolkit="0.0.0",
        rules="0123456789ab",
        last_sync=LastSync(AS_OF - timedelta(minutes=5), "evidence at s3.example.com") if synced else None,
        seal="5ea1" * 16 if synced else None,
    )


def result_of(told, **given):
    """Return an audit of these sales as it is read from its folder."""
    with TemporaryDirectory() as folder:
        return read_audited(folder_of(Path(folder), told, **given))


def folder_of(place, told, *, given_source=None, file_findings=(), evidence=None):
    """Write the folder of an audit of these sales, some of which have this ``evidence``."""
    partners = {each.sale_id: each.partner for each in told}
    known = {each.sale_id: evidence_of(each) for each in told} | dict(evidence or {})
    records = [
        each
        | {"partner": partners.get(each["sale_id"]), "record": number, "object": number if each["size"] else None}
        for number, each in enumerate(each for own in known.values() for each in own)
    ]
    objects = [each for each in records if each["size"]]
    clients = {each.client_id: each.cpf for each in told if each.client_id}
    rows = {
        "sales": [_row(each) for each in told],
        "records": records,
        "objects": objects,
        "events": [
            each | {"kind": each["event"], "happened_at": each["seen_at"]}
            for each in sorted(objects, key=lambda each: (each["sale_id"], each["seen_at"]))
        ],
        "withdrawals": [each for each in records if "withdrawn_at" in each],
        "clients": [{"client_id": client_id, "cpf": cpf} for client_id, cpf in clients.items()],
        "file_findings": [each | {"number": number} for number, each in enumerate(file_findings)],
    }
    place.mkdir(parents=True, exist_ok=True)
    for name, schema in _SCHEMAS.items():
        pq.write_table(pa.Table.from_pylist(rows.get(name, []), schema), place / f"{name}.parquet")
    deadlines = Deadlines(ZoneInfo("America/Sao_Paulo"))
    with duckdb_session() as session:
        judge_on(DuckdbEngine(session), place, place, AS_OF)
        for name, columns in _HISTORY.items():
            session.execute(f"CREATE TABLE {name} ({columns})")
        session.execute(f"CREATE TABLE listed AS FROM '{place / 'verdicts.parquet'}'")
        session.execute("INSERT INTO sale SELECT sale_id, partner, utility_group FROM listed")
        find_present(session, file_findings, [])
        note_changes(None, session, AS_OF)
        write_findings(session, AS_OF, place, before=None, audits=[], waivers=[], deadlines=deadlines)
    facts = AuditFacts(
        as_of=AS_OF,
        made_at=AS_OF,
        run="1",
        counts={},
        coverage={},
        changes_since=None,
        verified_first=True,
        timezone=deadlines.timezone.key,
        source=given_source or source(),
        parts={name: part_of(place, name) for name in (*_SCHEMAS, *OUTPUTS, "findings", "trend")},
    )
    (place / FACTS).write_bytes(facts.written())
    return open_audit(place)


def evidence_of(told):
    """Return a record for each word of ``files``, with its file where it has one, in the columns of the inputs."""
    records, unexamined = [], told.unexamined
    for number, (evidence_type, state) in enumerate(states(told.files)):
        there = state in {EvidenceState.COUNTED, EvidenceState.UNUSABLE}
        kind = KIND_OF[evidence_type]
        record = {
            "sale_id": told.sale_id,
            "evidence_id": str(uuid5(NAMESPACE_OID, f"{told.sale_id} {number}")),
            "evidence_type": str(evidence_type),
            "requested_at": AS_OF - timedelta(days=1) + timedelta(minutes=number),
            "expires_at": AS_OF + timedelta(hours=state is EvidenceState.NOT_UPLOADED),
            "vanished": state is EvidenceState.VANISHED,
            "size": 1234567 if there else None,
            "seen_at": AS_OF - timedelta(hours=number),
            "event": "UPLOADED",
        }
        if unexamined:
            looked = {"coverage": Coverage.NEVER}
            unexamined -= there
        else:
            looked = {"kind": kind, "coverage": Coverage.VERIFIED, "sha256": "5ea1" * 16, "look": LOOK}
            looked |= {"seconds": 61.25} if kind is FileKind.AUDIO else {"pages": 2}
        if state is EvidenceState.UNUSABLE:
            looked |= {"fault": str(ContentProblem.DAMAGED), "fault_since": record["seen_at"]}
        records.append(record | looked)
    return records


def states(files):
    """The type and the state of the record that each word stands for."""
    words = [(word.rstrip("".join(MARKS)), MARKS.get(word[-1], EvidenceState.COUNTED)) for word in files.split()]
    return [(SHORT.get(name, name), state) for name, state in words]


def _row(told):
    created_at = AS_OF - timedelta(days=told.days)
    return {
        "sale_id": told.sale_id,
        "client_id": told.client_id,
        "utility_group": told.group,
        "is_client_financial_responsible": told.payer,
        "partner": told.partner,
        "created_at": created_at,
        "completed_at": created_at + timedelta(hours=2) if told.completed else None,
    }


def written(result, out, *formats):
    write_report(Report(result, formats=formats or DEFAULT_FORMATS), out)
    return out


def csv_rows(out):
    return read_csv(out / "missing-evidence.csv", ",")


def sheet_rows(out, name):
    book = openpyxl.load_workbook(out / "missing-evidence.xlsx")
    return list(book[name].iter_rows(values_only=True))
