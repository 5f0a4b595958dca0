"""Pack the rows of a report into a page, and the cases of its sales, as deflated JSON in harmless letters.

Columns; times are local ones with their offset::

    {"name": "saleId",  "cells": ["S-1", null, ...]}
    {"name": "partner", "values": ["Norte", ...], "at": [0, -1, ...]}    where few values repeat; -1: nothing

Cases, in blocks that the script unpacks when one of their sales is opened::

    {"records":  [{"id": "0199c2d4-...", "type": "POV", "state": "COUNTED", "requested": "...",
                   "file": {"size": 1, "seconds": 2.5, "pages": null, "sha256": "...", "coverage": "verified",
                            "fault": null, "seen": "..."} or null,
                   "withdrawal": {"at": "...", "reason": "...", "withdrawnBy": "...",
                                  "approvedBy": "..."} or null}, ...],
     "events":   [["2026-11-20T18:00:00-03:00", "UPLOADED", the place of its record], ...],
     "findings": [{"code": "MISSING_POV", "status": "open", "first": "...", "due": "...", "overdue": false,
                   "waiver": {"end": "2026-12-31", "owner": "...", "approvedBy": "...", "reason": "..."}
                             or null}, ...]}
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.contract.fields import pick_camel
from toolkit.contract.waivers import WaiverRequest
from toolkit.reports.report import Report, iso, iso_column

_LEVEL: Final = 4
"""The level of compression: 6 takes twice as long for 3 % less."""


def packed(document: Mapping[str, Any], rows: pd.DataFrame, report: Report) -> str:
    """Return a document with the rows as its ``columns``: base64 of deflated JSON, which means nothing in HTML."""
    return _harmless(_pieces(document, rows, report))


def _pieces(document: Mapping[str, Any], rows: pd.DataFrame, report: Report) -> Iterator[bytes]:
    """Yield the JSON text, one column after the other: all of it takes more memory than the page."""
    yield _json(document).removesuffix(b"}") + b',"columns":['
    for place, name in enumerate(rows.columns):
        yield b"," * (place > 0) + _json({"name": name} | _column(rows[name], report.timezone))
    yield b"]}"


def _harmless(pieces: Iterator[bytes]) -> str:
    deflate = zlib.compressobj(level=_LEVEL, wbits=-zlib.MAX_WBITS)
    return base64.b64encode(b"".join([*map(deflate.compress, pieces), deflate.flush()])).decode()


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _column(column: pd.Series[Any], timezone: ZoneInfo) -> dict[str, Any]:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return {"values": column.cat.categories.tolist(), "at": column.cat.codes.tolist()}
    if pd.api.types.is_datetime64_any_dtype(column):
        return {"cells": iso_column(column, timezone)}
    return {"cells": pa.array(column, from_pandas=True).to_pylist()}


CASES: Final = 20_000
"""The sales that have a case, the gravest and oldest ones: each takes some 225 bytes of the page."""

AT_ONCE: Final = 250
"""The sales of a block."""

_OF_FINDING: Final = ["saleId", "code", "status", "firstSeen", "dueAt", "overdue", "waiverId"]

_DIGITS: Final = 16
"""The digits of a SHA-256 that the page has; ``toolkit sale show`` has all 64."""


def blocks(report: Report) -> Iterator[str]:
    """Yield the cases of the first sales of ``Audited.told``, in its order: base64 of deflated JSON."""
    result, zone = report.result, report.timezone
    sale_ids = result.told["saleId"].head(CASES).tolist()
    waivers = {str(each.id): each.request for each in result.waivers}
    findings = pa.Table.from_pandas(result.findings[_OF_FINDING], preserve_index=False)
    for start in range(0, len(sale_ids), AT_ONCE):
        some = sale_ids[start : start + AT_ONCE]
        cases: dict[str, dict[str, list[Any]]] = {
            sale_id: {"records": [], "events": [], "findings": []} for sale_id in some
        }
        places: dict[str, int] = {}
        for row in _of(some, result.records, "sale_id"):
            records = cases[row["sale_id"]]["records"]
            places[row["evidence_id"]] = len(records)
            records.append(_record(row, zone))
        for row in _of(some, result.events, "sale_id"):
            event = [_at(row["happened_at"], zone), row["kind"], places[row["evidence_id"]]]
            cases[row["sale_id"]]["events"].append(event)
        for row in _of(some, findings, "saleId"):
            cases[row["saleId"]]["findings"].append(_finding(row, waivers, zone))
        yield _harmless(iter([_json(list(cases.values()))]))


def _of(sale_ids: list[str], table: pa.Table, name: str) -> list[dict[str, Any]]:
    """Return the rows of these sales in their order."""
    wanted = pa.array(sale_ids, pa.large_string())
    found: list[dict[str, Any]] = table.filter(pc.is_in(table[name].cast(pa.large_string()), wanted)).to_pylist()
    return found


def _at(moment: datetime | None, zone: ZoneInfo) -> str | None:
    return None if moment is None else iso(moment, zone)


def _record(row: Mapping[str, Any], zone: ZoneInfo) -> dict[str, Any]:
    file = {each: row[each] for each in ("size", "seconds", "pages", "sha256", "coverage", "fault")}
    file |= {"sha256": file["sha256"] and file["sha256"][:_DIGITS], "seen": _at(row["seen_at"], zone)}
    taken = {"withdrawnBy": row["withdrawn_by"], "approvedBy": row["approved_by"], "reason": row["reason"]}
    return {
        "id": row["evidence_id"],
        "type": row["evidence_type"],
        "state": row["state"],
        "requested": _at(row["requested_at"], zone),
        "file": None if row["size"] is None else file,
        "withdrawal": row["withdrawn_at"] and taken | {"at": _at(row["withdrawn_at"], zone)},
    }


def _finding(row: Mapping[str, Any], waivers: Mapping[str, WaiverRequest], zone: ZoneInfo) -> dict[str, Any]:
    waiver = waivers.get(row["waiverId"])
    return {
        **{each: row[each] for each in ("code", "status", "overdue")},
        "first": _at(row["firstSeen"], zone),
        "due": _at(row["dueAt"], zone),
        "waiver": waiver and pick_camel(waiver, "owner", "approved_by", "reason") | {"end": waiver.end.isoformat()},
    }
