"""Pack the rows of a report into a page: columns as JSON, deflated, in letters that need no escaping.

::

    {"name": "saleId",    "kind": "text",   "cells": ["S-1", null, ...]}
    {"name": "clientId",  "kind": "id",     "digits": "0199c2d40000..."}    32 of each UUID, or as many spaces
    {"name": "partner",   "kind": "named",  "values": ["Norte", ...], "at": [0, -1, ...]}    -1: nothing
    {"name": "ageDays",   "kind": "number", "cells": [3, null, ...]}
    {"name": "createdAt", "kind": "time",   "cells": [seconds of the local time, null, ...],
                          "offsets": ["-03:00", ...], "at": [0, ...]}
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Final
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.operations.spreadsheets.text_bytes import values
from toolkit.reports.report import ROWS_AT_ONCE, Report

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
