"""Pack the rows of a report into a page, and the cases of its sales, as deflated JSON in harmless letters.

Columns::

    {"name": "saleId",    "kind": "text",   "cells": ["S-1", null, ...]}
    {"name": "clientId",  "kind": "id",     "digits": "0199c2d40000..."}    32 of each UUID, or as many spaces
    {"name": "partner",   "kind": "named",  "values": ["Norte", ...], "at": [0, -1, ...]}    -1: nothing
    {"name": "ageDays",   "kind": "number", "cells": [3, null, ...]}
    {"name": "createdAt", "kind": "time",   "cells": [seconds of the local time, null, ...],
                          "offsets": ["-03:00", ...], "at": [0, ...]}

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
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.contract.fields import named
from toolkit.contract.waivers import WaiverRequest
from toolkit.intake.cells import values
from toolkit.reports.report import ROWS_AT_ONCE, Report, iso_texts

_UUID: Final = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
_NO_UUID: Final = " " * 32
_LEVEL: Final = 4
"""The level of compression: 6 takes twice as long for 3 % less."""
_WHOLE: Final = 3
"""The number of bytes that base64 writes without a rest."""
_OFTEN: Final = 4
"""The number of cells from which on a text is stored once and referred to, by the first rows."""


def packed(document: Mapping[str, Any], rows: pd.DataFrame, report: Report) -> Iterator[str]:
    """Yield a document with the rows as its ``columns``: base64 of deflated JSON, which means nothing in HTML."""
    deflate, rest = zlib.compressobj(level=_LEVEL, wbits=-zlib.MAX_WBITS), b""
    for piece in _pieces(document, rows, report):
        rest += deflate.compress(piece)
        whole = len(rest) // _WHOLE * _WHOLE
        yield base64.b64encode(rest[:whole]).decode()
        rest = rest[whole:]
    yield base64.b64encode(rest + deflate.flush()).decode()


def _pieces(document: Mapping[str, Any], rows: pd.DataFrame, report: Report) -> Iterator[bytes]:
    """Yield the JSON text, one column after the other, each in the form that takes the least room."""
    yield _json(document).removesuffix(b"}") + b',"columns":['
    for place, name in enumerate(rows.columns):
        report.tell(place / len(rows.columns))
        yield b"," * (place > 0) + b'{"name":' + _json(name)
        for part, value in _column(rows[name], report.timezone).items():
            yield b"," + _json(part) + b":"
            yield from value if isinstance(value, Iterator) else [_json(value)]
        yield b"}"
        pa.default_memory_pool().release_unused()
    yield b"]}"


def _cells(cells: pa.Array) -> Iterator[bytes]:
    """Yield the cells of a column as a JSON list, some at a time."""
    for start in range(0, len(cells), ROWS_AT_ONCE):
        yield (b"," if start else b"[") + _json(cells.slice(start, ROWS_AT_ONCE).to_pylist())[1:-1]
    yield b"]" if len(cells) else b"[]"


def _digits(cells: pa.Array) -> Iterator[bytes]:
    """Yield the digits of UUIDs as a JSON text, some at a time."""
    yield b'"'
    for start in range(0, len(cells), ROWS_AT_ONCE):
        bare = pc.replace_substring(cells.slice(start, ROWS_AT_ONCE), "-", "")
        yield values(pc.fill_null(bare, _NO_UUID)).tobytes()
    yield b'"'


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _column(column: pd.Series[Any], timezone: ZoneInfo) -> dict[str, Any]:
    if pd.api.types.is_datetime64_any_dtype(column):
        return _times(column, timezone)
    if pd.api.types.infer_dtype(column, skipna=True) == "boolean":
        column = column.astype(object).map({True: "true", False: "false"})
    if pd.api.types.is_numeric_dtype(column):
        return {"kind": "number", "cells": _cells(pa.Array.from_pandas(column))}
    table = pa.Table.from_pandas(column.to_frame("cells"), preserve_index=False)
    cells = table["cells"].cast(pa.string()).combine_chunks()
    first = cells.slice(0, ROWS_AT_ONCE)
    if pc.count_distinct(first).as_py() * _OFTEN <= len(first) or len(cells) <= _OFTEN:
        names = cells.dictionary_encode()
        return {"kind": "named", "values": names.dictionary.to_pylist(), "at": _places(names)}
    if pc.all(pc.match_substring_regex(cells, _UUID)).as_py():
        return {"kind": "id", "digits": _digits(cells)}
    return {"kind": "text", "cells": _cells(cells)}


def _times(column: pd.Series[Any], timezone: ZoneInfo) -> dict[str, Any]:
    local = column.dt.tz_convert(timezone).dt.tz_localize(None)
    offsets = local - column.dt.tz_localize(None)
    names = pa.Array.from_pandas(offsets.dt.total_seconds(), type=pa.int64()).dictionary_encode()
    seconds = pa.Array.from_pandas(local.dt.floor("s")).cast(pa.timestamp("s")).cast(pa.int64())
    return {
        "kind": "time",
        "cells": _cells(seconds),
        "offsets": [_offset(each) for each in names.dictionary.to_pylist()],
        "at": _places(names),
    }


def _offset(seconds: int) -> str:
    """``-03:00``."""
    minutes = abs(seconds) // 60
    return f"{'-' if seconds < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"


def _places(names: pa.DictionaryArray) -> Iterator[bytes]:
    return _cells(pc.fill_null(names.indices, -1))


CASES: Final = 20_000
"""The sales that have a case, the gravest and oldest ones: each takes some 225 bytes of the page."""

AT_ONCE: Final = 250
"""The sales of a block."""

_OF_FINDING: Final = ["saleId", "code", "status", "firstSeen", "dueAt", "overdue", "waiverId"]

_DIGITS: Final = 16
"""The digits of a SHA-256 that the page has; ``toolkit sale show`` has all 64."""


def blocks(report: Report, tell: Callable[[float], None]) -> Iterator[str]:
    """Yield the cases of the first sales of ``Audited.told``, in its order: base64 of deflated JSON."""
    result, zone = report.result, report.timezone
    sale_ids = pa.array(result.told["saleId"].head(CASES), pa.large_string())
    records = _own(result.records, sale_ids)
    waivers = {str(each.id): each.request for each in result.waivers}
    found = pa.Table.from_pandas(result.findings[_OF_FINDING], preserve_index=False)
    own: dict[str, tuple[pa.Table, Callable[[pa.Table], Iterator[Any]]]] = {
        "records": (records, partial(_records, zone)),
        "events": (_own(result.events, sale_ids), partial(_events, zone, records)),
        "findings": (
            _own(found.rename_columns({"saleId": "sale_id"}), sale_ids),
            partial(_findings, zone, waivers),
        ),
    }
    for start in range(0, len(sale_ids), AT_ONCE):
        tell(start / len(sale_ids))
        sales = range(start, min(start + AT_ONCE, len(sale_ids)))
        parts = [_of_each(sales, *each) for each in own.values()]
        some = [dict(zip(own, case, strict=True)) for case in zip(*parts, strict=True)]
        text = _json(some)
        deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        yield base64.b64encode(deflate.compress(text) + deflate.flush()).decode()


def _own(table: pa.Table, sale_ids: pa.Array) -> pa.Table:
    """Return the rows of these sales in their order, each with the place ``at`` of its sale."""
    at = pc.index_in(table["sale_id"].cast(pa.large_string()), sale_ids)
    own = table.append_column("at", at).filter(pc.is_valid(at))
    return own.take(pa.array(np.argsort(own["at"].to_numpy(), kind="stable"))).combine_chunks()


def _of_each(sales: range, own: pa.Table, made: Callable[[pa.Table], Iterator[Any]]) -> Iterator[list[Any]]:
    """Yield what is made of the rows of each of these sales."""
    starts = np.searchsorted(own["at"].to_numpy(), range(sales.start, sales.stop + 1)).tolist()
    rows = list(made(own.slice(starts[0], starts[-1] - starts[0])))
    yield from (rows[first - starts[0] : last - starts[0]] for first, last in pairwise(starts))


def _records(zone: ZoneInfo, own: pa.Table) -> Iterator[dict[str, Any]]:
    texts = (own[name].to_pylist() for name in ("evidence_id", "evidence_type", "state"))
    files = ("size", "seconds", "pages", "sha256", "coverage", "fault")
    people = ("reason", "withdrawn_by", "approved_by")
    for *told, requested, file, seen, taken, at in zip(
        *texts,
        iso_texts(own["requested_at"], zone),
        zip(*(own[name].to_pylist() for name in files), strict=True),
        iso_texts(own["seen_at"], zone),
        zip(*(own[name].to_pylist() for name in people), strict=True),
        iso_texts(own["withdrawn_at"], zone),
        strict=True,
    ):
        size, seconds, pages, sha256, coverage, fault = file
        yield {
            **dict(zip(("id", "type", "state"), told, strict=True)),
            "requested": requested,
            "file": None
            if size is None
            else {
                "size": size,
                "seconds": seconds,
                "pages": pages,
                "sha256": sha256 and sha256[:_DIGITS],
                "coverage": coverage,
                "fault": fault,
                "seen": seen,
            },
            "withdrawal": None
            if at is None
            else dict(zip(("reason", "withdrawnBy", "approvedBy"), taken, strict=True)) | {"at": at},
        }


def _events(zone: ZoneInfo, records: pa.Table, own: pa.Table) -> Iterator[list[Any]]:
    """Yield moment, kind and the place of the record among those of its sale."""
    first = np.searchsorted(records["at"].to_numpy(), own["at"].to_numpy())
    places = pc.index_in(own["evidence_id"], records["evidence_id"].combine_chunks()).to_numpy() - first
    return map(
        list, zip(iso_texts(own["happened_at"], zone), own["kind"].to_pylist(), places.tolist(), strict=True)
    )


def _findings(zone: ZoneInfo, waivers: Mapping[str, WaiverRequest], own: pa.Table) -> Iterator[dict[str, Any]]:
    names = ("code", "status", "first", "due", "overdue")
    moments = (iso_texts(own[name], zone) for name in ("firstSeen", "dueAt"))
    told = zip(
        *(own[name].to_pylist() for name in ("code", "status")), *moments, own["overdue"].to_pylist(), strict=True
    )
    for row, waiver in zip(told, map(waivers.get, own["waiverId"].to_pylist()), strict=True):
        yield dict(zip(names, row, strict=True)) | {
            "waiver": waiver and named(waiver, "owner", "approved_by", "reason") | {"end": waiver.end.isoformat()}
        }
