"""Find the clients that the service's own columns do not take, with the reason against each."""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.operations.spreadsheets.text_bytes import Mask, mask_of, values
from toolkit.storage.database import Database
from toolkit.storage.service_map.limits import Limit, broken, can_write, limits

_RELATIONS = ("clients", "addresses")

REFUSALS: Final = (psycopg.IntegrityError, psycopg.DataError, psycopg.errors.RaiseException)
"""Errors by which the service's own rules refuse a row."""


REFUSAL_TEXTS: Final = {
    "absent": "The service demands a value here ({1})",
    "long": "Has more than the {1} characters that the service takes ({2})",
    "number": "Is no number that the service takes ({1})",
    "list": "Is none of the values that the service lists ({1})",
    "rule": "Breaks a rule of the service ({1})",
    "encoding": "Holds a character that the database cannot write ({1})",
    "repeated": "Repeats what may stand only once in the service ({1})",
}
"""Reasons for which the service refuses a value or a row; the last value names the column or the rule."""


def refusal(error: psycopg.Error) -> str:
    """Return why the service refused a row; a value that it names in its details is not shown."""
    repeated = isinstance(error, psycopg.errors.UniqueViolation)
    return _text("repeated" if repeated else "rule", error.diag.constraint_name or error.sqlstate)


def _text(reason: str, *values: object) -> str:
    return REFUSAL_TEXTS[reason].format(None, *values)


def read_limits(database: Database, *, age: float = 0.0) -> None:
    """Read limits that are older than ``age`` seconds: the service may have altered its tables.

    Call it while nothing else holds a connection: a pooler may have few.
    """
    for name in _RELATIONS:
        limits(database, name, age=age)


def misfits(database: Database, columns: Mapping[str, pa.StringArray]) -> Iterator[tuple[str, Mask, str]]:
    """Yield each column in which the service does not take some values, which rows, and why."""
    for name in _RELATIONS:
        found = limits(database, name)
        for limit in found.columns:
            if limit.column in columns:
                for mask, reason in _refused(database, limit, found.encoding, columns[limit.column]):
                    if mask.any():
                        yield limit.column, mask, reason
    if found.encoding is not None:
        for column, texts in columns.items():
            wrong = _unwritable(found.encoding, texts)
            if wrong.any():
                yield column, wrong, _text("encoding", found.encoding)


def _refused(
    database: Database, limit: Limit, encoding: str | None, column: pa.StringArray
) -> Iterator[tuple[Mask, str]]:
    absent = mask_of(pc.is_null(column))
    if limit.required:
        yield absent, _text("absent", limit.place)
    if limit.length is not None:
        long = mask_of(pc.greater(pc.utf8_length(column), limit.length))
        yield long, _text("long", limit.length, limit.place)
    if limit.largest is not None:
        texts = [text or "0" for text in column.to_pylist()]
        fits = [text.isdecimal() and int(text) <= limit.largest for text in texts]
        yield ~np.array(fits, dtype=bool), _text("number", limit.place)
    if limit.values is not None:
        listed = mask_of(pc.is_in(column, value_set=pa.array(sorted(limit.values), pa.string())))
        yield ~listed & ~absent, _text("list", limit.place)
    if limit.rules and limit.largest is None:
        texts = [text for text in pc.unique(column).to_pylist() if text is not None]
        askable = [text for text in texts if encoding is None or can_write(encoding, text)]
        wrong = broken(database, limit, askable) if askable else set()
        if wrong:
            listed = pc.is_in(column, value_set=pa.array(sorted(wrong), pa.string()))
            yield mask_of(listed), _text("rule", limit.place)


def _unwritable(encoding: str, column: pa.StringArray) -> Mask:
    """Mark the values that hold a character that the database cannot write."""
    if can_write(encoding, values(column).tobytes().decode()):
        return np.zeros(len(column), dtype=bool)
    return np.array([not can_write(encoding, text or "") for text in column.to_pylist()], dtype=bool)
