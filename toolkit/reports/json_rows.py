"""Write the rows of a table as JSON objects, column by column: each distinct value is encoded once."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pandas as pd

from toolkit.reports.report import ROWS_AT_ONCE, known

_encode: Final = json.JSONEncoder(ensure_ascii=False).encode


def json_rows(table: pd.DataFrame, told: Mapping[str, Callable[[Any], Any]]) -> Iterator[str]:
    """Yield each row as a JSON object; ``told`` maps, by column, a value to its JSON value."""
    for start in range(0, len(table), ROWS_AT_ONCE):
        part = known(table.iloc[start : start + ROWS_AT_ONCE])
        template = ", ".join(f"{_encode(name).replace('%', '%%')}: %s" for name in part.columns)
        columns = [_encoded(part[name].tolist(), told.get(str(name))) for name in part.columns]
        yield from (f"{{{template}}}" % row for row in zip(*columns, strict=True))


def _encoded(values: list[Any], told: Callable[[Any], Any] | None) -> list[str]:
    texts = {each: _encode(each if each is None or told is None else told(each)) for each in set(values)}
    return [texts[each] for each in values]
