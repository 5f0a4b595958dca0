"""Judge the rows of a sales file by whole columns; each row that is not surely valid meets the contract's rule.

What is sure here may be less than the contract accepts, and must never be more.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from typing import Any, Final
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from toolkit.domain.evidence import SALE_ID_MAX
from toolkit.domain.fields import TRIMMED
from toolkit.domain.requests import parse
from toolkit.domain.sales import DAY_FIRST, SaleRecord
from toolkit.errors import InvalidField, InvalidFields
from toolkit.operations.register.bulk_load.shapes import storable
from toolkit.operations.spreadsheets.text_bytes import Bytes, Mask, mask_of, may_have_outer_space, offsets, values
from toolkit.storage.binary_copy import ids_column

_MOMENT: Final = pa.timestamp("us", "UTC")

Cells = Mapping[str, pa.StringArray]
"""The columns of the file by the contract's names of their fields."""

Judged = tuple[pa.Array, Mask]
"""The values of a column as they are stored, and which of them are sure."""


def judge_sales(
    cells: Cells, timezone: tzinfo
) -> tuple[dict[str, pa.Array], Mask, dict[int, tuple[InvalidField, ...]]]:
    """Return the columns by the names of ``SaleRecord``, which rows are valid, and why the others are not.

    A time without an offset is in ``timezone``.
    """
    count = len(cells["saleId"])
    absent = pa.repeat("", count)
    columns, sure = {}, np.ones(count, dtype=bool)
    for name in SaleRecord.model_fields:
        columns[name], fits = _JUDGES.get(name, _by_rule)(name, cells.get(to_camel(name), absent), timezone)
        sure &= fits
    accepted, invalid, taken = sure.copy(), {}, list[SaleRecord]()
    for row in np.flatnonzero(~sure).tolist():
        try:
            taken.append(parse(SaleRecord, {name: column[row].as_py() or None for name, column in cells.items()}))
            accepted[row] = True
        except InvalidFields as error:
            invalid[row] = error.invalid
    if taken:
        here = pa.array(accepted & ~sure)
        for name, column in columns.items():
            told = pa.array([_stored(getattr(sale, name), timezone) for sale in taken], column.type)
            columns[name] = pc.replace_with_mask(column, here, told)
    return columns, accepted, invalid


def _stored(value: Any, timezone: tzinfo) -> Any:
    """Return a value of ``SaleRecord`` as COPY takes it."""
    if isinstance(value, bool):
        return bytes([value])
    if isinstance(value, UUID):
        return value.bytes
    return value.replace(tzinfo=timezone) if isinstance(value, datetime) and value.tzinfo is None else value


def _sale_id(_name: str, column: pa.StringArray, _timezone: tzinfo) -> Judged:
    lengths = np.diff(offsets(column))  # in bytes: no fewer than characters
    sure = storable(column) & (lengths > 0) & (lengths <= SALE_ID_MAX)
    if may_have_outer_space(column):
        sure &= mask_of(pc.equal(column, pc.utf8_trim(column, characters=TRIMMED)))
    return column, sure


_HEX: Final = np.full(256, 0xFF, np.uint8)
_HEX[[ord(digit) for digit in "0123456789abcdef"]] = range(16)
_HEX[[ord(digit) for digit in "ABCDEF"]] = range(10, 16)
_HYPHENS: Final = np.array([8, 13, 18, 23])
_DIGITS: Final = np.delete(np.arange(36), _HYPHENS)


def _client_id(_name: str, column: pa.StringArray, _timezone: tzinfo) -> Judged:
    """Read UUIDs with hyphens; a blank cell is an absent client."""
    starts = offsets(column)
    lengths = np.diff(starts)
    long = lengths == _DIGITS[-1] + 1
    found: Bytes = np.zeros((len(column), 16), np.uint8)
    sure = lengths == 0
    if long.any():
        written = values(column)[starts[:-1][long][:, None] + np.arange(_DIGITS[-1] + 1)]
        digits = _HEX[written[:, _DIGITS]]
        found[long] = digits[:, ::2] << 4 | digits[:, 1::2]
        sure[long] = (digits < 16).all(axis=1) & (written[:, _HYPHENS] == ord("-")).all(axis=1)
    return pc.if_else(pa.array(lengths == 0), pa.scalar(None, pa.binary(16)), ids_column(found)), sure


_TIME: Final = (
    "^(19|20)[0-9]{2}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)"
    "[T ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
)
_OFFSET: Final = "(Z|[+-](0[0-9]|1[0-3]):[0-5][0-9])$"


def _time(_name: str, column: pa.StringArray, timezone: tzinfo) -> Judged:
    """Read times to the second, day first or as in ISO 8601; a blank cell is absent."""
    iso = pc.replace_substring_regex(column, DAY_FIRST.pattern, r"\3-\2-\1")
    offset, local = (pc.match_substring_regex(iso, f"{_TIME}{end}") for end in (_OFFSET, "$"))
    none = pa.scalar(None, pa.string())
    naive = pc.if_else(local, iso, none).cast(pa.timestamp("us")).to_pylist()
    placed = pa.array([each and each.replace(tzinfo=timezone) for each in naive], _MOMENT)
    told = pc.coalesce(pc.if_else(offset, iso, none).cast(_MOMENT), placed)
    return told, mask_of(pc.or_(offset, local))


def _optional_time(name: str, column: pa.StringArray, timezone: tzinfo) -> Judged:
    told, sure = _time(name, column, timezone)
    return told, sure | (np.diff(offsets(column)) == 0)


_RULES: Final = {
    name: TypeAdapter[Any](info.rebuild_annotation()) for name, info in SaleRecord.model_fields.items()
}


def _by_rule(name: str, column: pa.StringArray, timezone: tzinfo) -> Judged:
    """Have the contract's rule judge each distinct cell once, where few are distinct."""
    distinct = column.dictionary_encode()
    told, fits = [], []
    for cell in distinct.dictionary.to_pylist():
        try:
            told.append(_stored(_RULES[name].validate_python(cell or None), timezone))
            fits.append(True)
        except ValidationError:
            told.append(None)
            fits.append(False)
    kind = pa.binary(1) if SaleRecord.model_fields[name].annotation is bool else pa.string()
    return pa.array(told, kind).take(distinct.indices), np.array(fits, dtype=bool)[distinct.indices.to_numpy()]


_JUDGES: Final[Mapping[str, Callable[[str, pa.StringArray, tzinfo], Judged]]] = {
    "sale_id": _sale_id,
    "client_id": _client_id,
    "created_at": _time,
    "completed_at": _optional_time,
}
"""The fields whose cells are mostly distinct."""
