"""Collect everything about one sale: rule, records with files, missing pieces, findings and time line."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import pandas as pd
import sqlalchemy as sa
from sqlalchemy import Connection, Row

from toolkit.audit.changes import audits_until
from toolkit.audit.duckdb_session import duckdb_session
from toolkit.audit.extract import history_of_sale
from toolkit.audit.findings import as_listed, findings_query, tell_present
from toolkit.audit.source import LastSync, last_sync
from toolkit.audit.waivers import waivers_at
from toolkit.contract.codes import CODES, EndReason, SaleWarning, Subject, missing_code
from toolkit.contract.deadlines import Clock, Deadlines
from toolkit.contract.events import CustodyEvent
from toolkit.contract.findings import Problem, Reason, Verdict, finding_id
from toolkit.contract.people import Unmasking
from toolkit.contract.rules import Evidence, Requirement, Sale, evaluate, requirements
from toolkit.contract.waivers import Waiver
from toolkit.database.connection import Database
from toolkit.database.observation_clock import TICK
from toolkit.database.tables import evidence_openings, sale_observations
from toolkit.errors import SaleNotFound
from toolkit.evidence.records import EvidenceRecord, TimeLine, records_at, records_seen, sale_row, time_line

_OF_THE_SERVICE: Final = (Problem.GROUP_UNKNOWN, Problem.PAYER_UNKNOWN)
"""Problems that no evidence record can mend."""


@dataclass(frozen=True, slots=True)
class NextStep:
    """A code that keeps a sale from being compliant, and the remedy.

    ``reason`` is how far a missing piece got; ``in_records`` tells that its evidence records say more.
    """

    code: str
    remedy: str
    reason: Reason | None = None
    in_records: bool = True


@dataclass(frozen=True, slots=True)
class Opening:
    """A link to the file of an evidence record that was handed out: to whom, and why."""

    id: UUID
    evidence_id: UUID
    opened_by: str
    account: str | None
    """The signed-in identity behind ``opened_by``; ``None`` where it was not noted."""
    reason: str
    opened_at: datetime
    expires_at: datetime


@dataclass(frozen=True, eq=False)
class SaleCase:
    """One sale as it stands now, by what was last seen of the service and the bucket.

    A sale that is ``gone`` from the service stands as it was last observed there.
    """

    sale_id: str
    utility_group: str
    is_client_financial_responsible: bool | None
    partner: str | None
    client_id: str | None
    created_at: datetime
    completed_at: datetime | None
    last_sync: LastSync | None
    """The last reading of the bucket, ``None`` where it was never read."""
    verdict: Verdict
    rule: tuple[Requirement, ...]
    """The requirements of its utility group, empty where the group is unknown."""
    records: tuple[EvidenceRecord, ...]
    findings: pd.DataFrame
    """Its findings with their lives, see ``toolkit.audit.findings.as_listed``; also resolved ones."""
    waivers: tuple[Waiver, ...]
    """Those that hold today and waive one of its findings."""
    timeline: TimeLine
    openings: tuple[Opening, ...]
    """The links of the time line's ``OPENED``, oldest first."""
    gone: bool
    gone_at: datetime | None
    """When it was seen to be gone; ``None`` while the service holds it, or nobody has looked since."""

    @property
    def next_steps(self) -> list[NextStep]:
        """Each code that keeps the sale from being compliant, with its remedy."""
        if self.gone:
            return [NextStep(EndReason.SALE_GONE, CODES[EndReason.SALE_GONE].remedy, in_records=False)]
        steps = [
            NextStep(problem, CODES[problem].remedy, in_records=problem not in _OF_THE_SERVICE)
            for problem in self.verdict.problems
        ]
        for piece in self.verdict.missing:
            requested = piece.reason is not Reason.NEVER_REQUESTED
            code = missing_code(piece.evidence_type)
            steps.append(NextStep(code, CODES[piece.reason].remedy, piece.reason, requested))
        if self.client_id is None:
            code = SaleWarning.WITHOUT_CLIENT
            steps.append(NextStep(code, CODES[code].remedy, in_records=False))
        return steps


def sale_case(
    database: Database,
    sale_id: str,
    *,
    clock: Clock,
    deadlines: Deadlines,
    unmasking: Unmasking | None = None,
) -> SaleCase:
    """Collect everything that is known of one sale; neither the service nor the bucket is observed again.

    With ``unmasking``, which the custody log is told of, the records have the names of their files.

    Raises:
        SaleNotFound: the service has no sale with this id, and none was ever observed.
    """
    now = clock()
    with database.snapshot() as connection:
        sale, gone = _sale(connection, sale_id)
        gone_at = sale.gone_at if gone else None
        if gone:
            moment = now if gone_at is None else gone_at - TICK
            with database.snapshot() as past:
                records = list(records_at(past, [sale_id], moment))
        else:
            records = records_seen(connection, sale_id, now, unmasking)
        judged = Sale(sale.utility_group, sale.is_client_financial_responsible, sale.completed_at is not None)
        verdict = evaluate(judged, [Evidence(record.evidence_type, record.state) for record in records])
        waivers = [each for each in waivers_at(connection, now) if each.holds(deadlines.day_of(now))]
        standing = (sale_id, sale, verdict if gone_at is None else None)
        findings = _findings(connection, standing, waivers, now, deadlines)
        timeline = time_line(connection, [sale_id], {each.id: each.object_key for each in records})
        opened = tuple(_openings(connection, timeline))
        synced = last_sync(connection, now)
    waived = set(findings["waiverId"].dropna())
    return SaleCase(
        sale_id,
        sale.utility_group,
        sale.is_client_financial_responsible,
        sale.partner,
        None if sale.client_id is None else str(sale.client_id),
        sale.created_at,
        sale.completed_at,
        synced,
        verdict,
        requirements(judged),
        tuple(records),
        findings,
        tuple(each for each in waivers if str(each.id) in waived),
        timeline,
        opened,
        gone,
        gone_at,
    )


def _sale(connection: Connection, sale_id: str) -> tuple[Row[Any], bool]:
    """Return the row of a sale, or its last observation where the service holds it no more; tell which it is."""
    try:
        return sale_row(connection, sale_id), False
    except SaleNotFound:
        seen = sale_observations
        query = sa.select(seen).where(seen.c.sale_id == sale_id)
        last = connection.execute(query.order_by(seen.c.id.desc()).limit(1)).one_or_none()
        if last is None:
            raise
        return last, True


def _findings(
    connection: Connection,
    case: tuple[str, Any, Verdict | None],
    waivers: Sequence[Waiver],
    now: datetime,
    deadlines: Deadlines,
) -> pd.DataFrame:
    """Return the findings of a sale, which has no verdict once it is seen to be gone.

    Those about its files stand as the last audit noted them.
    """
    sale_id, sale, verdict = case
    with duckdb_session() as session:
        observed = history_of_sale(connection, sale_id, now, session)
        rows = []
        if verdict is not None:
            codes: list[tuple[str, str | None]] = [(str(problem), None) for problem in verdict.problems]
            codes += [(missing_code(piece.evidence_type), str(piece.reason)) for piece in verdict.missing]
            codes += [(str(SaleWarning.WITHOUT_CLIENT), None)] * (sale.client_id is None)
            about = (sale_id, sale.partner, sale.utility_group)
            rows = [(finding_id(code, sale_id), code, *about, reason) for code, reason in codes]
            noted = session.execute("SELECT finding_id, code FROM episode WHERE gone_at IS NULL").fetchall()
            rows += [(each, code, *about, None) for each, code in noted if CODES[code].subject is Subject.FILE]
        tell_present(session, rows)
        audits = audits_until(connection, now)
        query = findings_query(observed, audits=audits, waivers=waivers, deadlines=deadlines)
        return as_listed(session.sql(query).to_arrow_table().to_pandas())


def _openings(connection: Connection, timeline: TimeLine) -> list[Opening]:
    ids = [UUID(event.detail["opening"]) for event, _ in timeline if event.kind == CustodyEvent.OPENED]
    told = evidence_openings.c
    query = sa.select(*(told[each.name] for each in fields(Opening))).where(told.id.in_(ids))
    query = query.order_by(told.opened_at, told.id)
    return [Opening(*row) for row in connection.execute(query)]
