"""Write audit folders by hand: the Parquet tables that an audit writes, and its facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from toolkit.audit.folder import FACTS, Audit, AuditFacts, open_audit, part_of
from toolkit.audit.judge import FILES, VERDICTS

_MOMENT: Final = pa.timestamp("us", "UTC")


def _schema(texts: str = "", numbers: str = "", moments: str = "", **others: pa.DataType) -> pa.Schema:
    columns: dict[str, pa.DataType] = dict.fromkeys(texts.split(), pa.string())
    columns |= dict.fromkeys(numbers.split(), pa.int64()) | dict.fromkeys(moments.split(), _MOMENT) | others
    return pa.schema(columns)


SCHEMAS: Final = {
    "verdicts": VERDICTS.to_pyarrow(),
    "findings": _schema(
        "id sale_id partner utility_group code evidence_type reason severity status owner waiver_id change",
        "age_days age_business_days due_in_business_days",
        "first_seen last_seen opened_at due_at closed_at",
        overdue=pa.bool_(),
    ),
    "files": FILES.to_pyarrow(),
    "events": _schema("sale_id evidence_id kind", "", "happened_at"),
    "withdrawals": _schema(
        "sale_id partner evidence_id evidence_type reason withdrawn_by approved_by", "", "withdrawn_at"
    ),
    "clients": _schema("client_id cpf"),
    "trend": _schema("partner", "present came went", day=pa.date32()),
    "waivers": _schema(
        "id sale_id partner code reason owner approved_by revoked_by revoked_reason",
        "",
        "added_at revoked_at",
        start=pa.date32(),
        end=pa.date32(),
    ),
    "file_findings": _schema(
        "problem detail",
        "number",
        **dict.fromkeys(("sale_ids", "evidence_ids", "folders", "finding_ids"), pa.list_(pa.string())),
    ),
}


def audit_folder(place: Path, facts: AuditFacts, tables: Mapping[str, Iterable[Mapping[str, Any]]]) -> Audit:
    """Write the tables of an audit folder; one that is not given is empty."""
    place.mkdir(parents=True, exist_ok=True)
    for name, schema in SCHEMAS.items():
        pq.write_table(pa.Table.from_pylist([*tables.get(name, ())], schema), place / f"{name}.parquet")
    parts = {name: part_of(place, name) for name in SCHEMAS}
    (place / FACTS).write_bytes(replace(facts, parts=parts).written())
    return open_audit(place)
