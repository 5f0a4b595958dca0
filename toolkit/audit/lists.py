"""Write what reports list beside an audit: withdrawals, waivers, findings about files, clients, events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.audit.duckdb_session import copy_to
from toolkit.audit.extract import Observed
from toolkit.audit.folder import CASES
from toolkit.audit.reviews import AS_WRITTEN
from toolkit.contract.contents import IntegrityFinding
from toolkit.contract.findings import Problem, Status, file_finding_ids
from toolkit.contract.people import mask_cpf
from toolkit.contract.waivers import Waiver
from toolkit.database.observations import valid_at
from toolkit.database.service import clients
from toolkit.database.tables import evidence_observations
from toolkit.evidence.records import by_indexes, time_line, withdrawals_at

_AT_ONCE: Final = 2_000  # sales whose time lines are read at once


def write_lists(
    snapshot: Connection, observed: Observed, folder: Path, of_files: list[IntegrityFinding], waivers: list[Waiver]
) -> None:
    """Write the tables that reports list beside the outputs.

    They name the sales of the relations ``listed``, ``concerned`` and ``unproven``.
    """
    session, moment = observed.session, observed.moment
    session.execute(_TOLD)
    withdrawn = [
        each._asdict() | {"evidence_id": str(each.evidence_id)} for each in withdrawals_at(snapshot, moment)
    ]
    asked = [
        asdict(each.request) | asdict(each) | {"id": str(each.id)}
        for each in sorted(waivers, key=lambda each: (each.added_at, each.id))
    ]
    odd = [
        {
            "number": number,
            "problem": str(each.problem),
            "sale_ids": list(each.sale_ids),
            "evidence_ids": [str(evidence_id) for evidence_id in each.evidence_ids],
            "folders": list(each.folders),
            "detail": each.detail,
            "finding_ids": [finding_id for finding_id, _ in file_finding_ids(each)],
        }
        for number, each in enumerate(of_files)
    ]
    rows = {"withdrawals": withdrawn, "waivers": asked, "file_findings": odd}
    rows["clients"] = _masked(snapshot, session)
    by_indexes(snapshot)
    rows["events"] = list(_events(snapshot, session, moment))
    session.execute(copy_to(AS_WRITTEN, folder / "reviews.parquet"))
    for name, each in rows.items():
        table = pa.Table.from_pylist(each, _LISTS[name])
        pq.write_table(table, folder / f"{name}.parquet", compression="zstd")


def _masked(snapshot: Connection, session: Any) -> list[dict[str, str]]:
    """Return the masked CPF of each client of the sales that reports list."""
    ids = [
        each for (each,) in session.execute("SELECT DISTINCT client_id FROM told ORDER BY 1").fetchall() if each
    ]
    found: dict[str, str] = {}
    for start in range(0, len(ids), 100_000):
        wanted = sa.any_(sa.cast(ids[start : start + 100_000], sa.ARRAY(sa.Uuid)))
        rows = snapshot.execute(sa.select(clients.c.id, clients.c.cpf).where(clients.c.id == wanted))
        found |= {str(client_id): mask_cpf(cpf) for client_id, cpf in rows if cpf is not None}
    return [{"client_id": client_id, "cpf": found[client_id]} for client_id in sorted(found)]


def _events(snapshot: Connection, session: Any, moment: datetime) -> Iterator[dict[str, Any]]:
    """Yield the events of the records of the first sales that reports list, by sale and in their order."""
    sales, record = [sale_id for (sale_id,) in session.execute(_CASES).fetchall()], evidence_observations
    for start in range(0, len(sales), _AT_ONCE):
        some = sales[start : start + _AT_ONCE]
        wanted = sa.any_(sa.cast(some, sa.ARRAY(sa.Text)))
        query = sa.select(*record.c["evidence_id", "object_key", "sale_id"])
        records = snapshot.execute(query.where(record.c.sale_id == wanted, valid_at(record, moment))).all()
        sale_of = {each.evidence_id: each.sale_id for each in records}
        line = time_line(snapshot, some, {each.evidence_id: each.object_key for each in records}, moment)
        for event, evidence_id in sorted(line, key=lambda pair: sale_of[pair[1]]):
            yield {
                "sale_id": sale_of[evidence_id],
                "evidence_id": str(evidence_id),
                "happened_at": event.happened_at,
                "kind": event.kind,
            }


_TOLD: Final = """
    CREATE OR REPLACE TEMP TABLE told AS
    WITH other AS (SELECT sale_id FROM concerned UNION SELECT sale_id FROM unproven)
    SELECT sale_id, client_id, 0 AS rank, status, problems, created_at FROM listed
    UNION ALL
    SELECT sale_id, CAST(client_id AS VARCHAR), 1, NULL, NULL, NULL
    FROM sale SEMI JOIN other USING (sale_id) ANTI JOIN listed USING (sale_id)
"""

_CASES: Final = f"""
    FROM (
        SELECT sale_id FROM told
        ORDER BY rank, status = '{Status.COMPLIANT}',
                 NOT starts_with(problems, '{Problem.COMPLETED_WITHOUT_EVIDENCE}'), created_at, sale_id
        LIMIT {CASES}
    )
    ORDER BY sale_id
"""

_TIME: Final = pa.timestamp("us", "UTC")


def _texts(*names: str) -> dict[str, pa.DataType]:
    return dict.fromkeys(names, pa.string())


_LISTS: Final[Mapping[str, pa.Schema]] = {
    "withdrawals": pa.schema(
        _texts("sale_id", "partner", "evidence_id", "evidence_type", "reason", "withdrawn_by", "approved_by")
        | {"withdrawn_at": _TIME}
    ),
    "waivers": pa.schema(
        _texts("id", "sale_id", "partner", "code", "reason", "owner", "approved_by")
        | {"start": pa.date32(), "end": pa.date32(), "added_at": _TIME, "revoked_at": _TIME}
        | _texts("revoked_by", "revoked_reason")
    ),
    "file_findings": pa.schema(
        {"number": pa.int64(), "problem": pa.string()}
        | dict.fromkeys(("sale_ids", "evidence_ids", "folders"), pa.list_(pa.string()))
        | {"detail": pa.string(), "finding_ids": pa.list_(pa.string())}
    ),
    "clients": pa.schema(_texts("client_id", "cpf")),
    "events": pa.schema(_texts("sale_id", "evidence_id") | {"happened_at": _TIME, "kind": pa.string()}),
}
