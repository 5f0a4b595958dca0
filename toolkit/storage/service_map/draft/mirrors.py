"""Tables that a replication fills, with a row for each time that it read a row of the service: the last holds."""

from dataclasses import replace
from typing import Final

from toolkit.storage.service_map.catalog import QUERY, CatalogTable
from toolkit.storage.service_map.draft.references import names_of_rows
from toolkit.storage.service_map.draft.samples import Field, Samples
from toolkit.storage.service_map.draft.vocabulary import tokens
from toolkit.storage.service_map.expressions import quoted

_MOMENTS: Final = {"timestamptz", "timestamp"}


def read_last_rows(samples: Samples) -> None:
    """Put a query for the last rows in place of each table that holds earlier ones beside them."""
    for name, table in list(samples.catalog.items()):
        if (last := _last_rows(table, samples)) is not None:
            del samples.catalog[name]
            samples.catalog[last.name] = last


def _last_rows(table: CatalogTable, samples: Samples) -> CatalogTable | None:
    moments = (each for each in table.columns.values() if each.family in _MOMENTS)
    synced = next((each for each in moments if "synced" in tokens(each.says)), None)
    key = next((each for each in names_of_rows(table) if samples.repeats(Field(table, each))), None)
    if synced is None or key is None:
        return None
    row, order = quoted(key.name), quoted(synced.name)
    query = f"(SELECT DISTINCT ON ({row}) * FROM {table.name} ORDER BY {row}, {order} DESC NULLS LAST)"  # noqa: S608
    made = f"of rows with the same {key.name} the last by {synced.name}"
    found = replace(table, name=query, kind=QUERY, made=made, parts=(table.name,), whole_key=(key.name,))
    columns = {name: replace(each, required=False) for name, each in table.columns.items()}
    return replace(found, columns=columns | {key.name: replace(columns[key.name], key=True)})
