"""Read tables that share a parent, as inheriting classes do, with the columns that stand in the parent's rows."""

from dataclasses import replace
from typing import Final

from toolkit.storage.service_map.catalog import QUERY, CatalogTable, Reference
from toolkit.storage.service_map.draft.samples import Samples
from toolkit.storage.service_map.draft.vocabulary import TABLE_WORDS, tokens
from toolkit.storage.service_map.expressions import quoted

_OF_RELATIONS: Final = frozenset().union(*(words for both in TABLE_WORDS.values() for words in both))
_FEWEST: Final = 2


def read_with_parents(samples: Samples) -> None:
    """Put a query over both in place of each table whose key is that of a row which several tables continue."""
    for parent in list(samples.catalog.values()):
        heirs = [(table, reference) for table in samples.catalog.values() for reference in _above(table, parent)]
        if len(heirs) >= _FEWEST and not _OF_RELATIONS & set(tokens(parent.says)):
            for table, reference in heirs:
                _put(samples, table, _with_parent(table, parent, reference))


def _above(table: CatalogTable, parent: CatalogTable) -> list[Reference]:
    """Return the foreign key by which each row of a table continues one of the parent."""
    keys = ((each, table.columns[each.column].key) for each in table.references if each.table == parent.name)
    return [each for each, is_own_key in keys if is_own_key and parent.columns[each.key].key]


def _with_parent(table: CatalogTable, parent: CatalogTable, above: Reference) -> CatalogTable:
    added = {name: each for name, each in parent.columns.items() if name not in table.columns and not each.key}
    shown = ", ".join(["own.*", *(f"parent.{quoted(name)}" for name in added)])
    same = f"parent.{quoted(above.key)} = own.{quoted(above.column)}"
    return replace(
        table,
        name=f"(SELECT {shown} FROM {table.name} AS own JOIN {parent.name} AS parent ON {same})",  # noqa: S608
        kind=QUERY,
        columns={**table.columns, **added},
        references=[
            *(each for each in table.references if each is not above),
            *(each for each in parent.references if each.column in added),
        ],
        made=f"with the columns that {parent.name} holds of its rows",
        parts=(table.name,),
    )


def _put(samples: Samples, table: CatalogTable, whole: CatalogTable) -> None:
    """Put one table in place of another, also where others refer to it."""
    del samples.catalog[table.name]
    samples.catalog[whole.name] = whole
    for other in samples.catalog.values():
        other.references[:] = [
            replace(each, table=whole.name) if each.table == table.name else each for each in other.references
        ]
