"""Find the rows that keep the states of a sale or of a file, where its own table does not hold the last one.

A replication fills tables with a row for each time that it read a row of the service: of these the last holds.
So do rows whose time is not over, and the highest version of a file.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Final

from toolkit.storage.service_map.catalog import QUERY, CatalogTable, Column
from toolkit.storage.service_map.draft.references import meanings_of, names_of_rows, references_of
from toolkit.storage.service_map.draft.samples import Field, Samples
from toolkit.storage.service_map.draft.vocabulary import tokens, words
from toolkit.storage.service_map.expressions import THIS, literal, quoted

_MOMENTS: Final = {"timestamptz", "timestamp"}
_HISTORY: Final = {"history", "status"}
_STATE: Final = {
    "status",
    "event",
    "evento",
    "action",
    "acao",
    "type",
    "to",
    "new",
    "para",
    "novo",
    "nova",
    "nuevo",
}
_BEFORE: Final = {"from", "old", "previous", "anterior", "before", "antes"}


@dataclass(frozen=True)
class History:
    """The states of a relation's rows, a row for each; ``meanings`` holds what each state means."""

    field: Field
    order: str
    """The column with the time of a state, or a number that grows."""
    rows: str
    """Those of one row of the relation, as the end of a query."""
    meanings: dict[str, str]

    def states(self, meant: Collection[str]) -> list[str]:
        """Return the states that mean one of these."""
        return [state for state, meaning in self.meanings.items() if set(tokens(meaning)) & set(meant)]

    def not_last(self, states: list[str]) -> str:
        """Return the condition that the last state is none of these."""
        last = f"SELECT {self._state} {self.rows} ORDER BY past.{quoted(self.order)} DESC NULLS LAST"
        return f"coalesce(({last} LIMIT 1), '') NOT IN ({', '.join(map(literal, states))})"

    def moment(self, states: list[str]) -> str | None:
        """Return when one of these was last reached and not undone, where the rows have times."""
        if not self.field.table.columns[self.order].family.startswith("timestamp"):
            return None
        reached, undone = (
            f"max(past.{quoted(self.order)}) FILTER (WHERE {self._state} IN ({', '.join(map(literal, each))}))"
            for each in (states, self.states({"reopened"}))
        )
        later = f" HAVING coalesce({undone} < {reached}, true)" if self.states({"reopened"}) else ""
        return f"(SELECT {reached} {self.rows}{later})"

    @property
    def _state(self) -> str:
        return f"past.{quoted(self.field.column.name)}::text"


def histories_of(table: CatalogTable, samples: Samples, others: Collection[str] = ()) -> Iterator[History]:
    """Yield the histories of the rows of a table; ``others`` are tables whose rows have histories of their own."""
    for past in samples.catalog.values():
        if past is table or past.kind not in "rpf" or not set(tokens(past.says)) & _HISTORY:
            continue
        references = list(references_of(past, samples))
        owner = next((each for each in references if each.table == table.name), None)
        order = min(past.columns.values(), key=_how_ordered)
        if owner is None or _how_ordered(order) == _UNORDERED or any(each.table in others for each in references):
            continue
        for column in past.columns.values():
            said = set(words(column.name)) | set(tokens(column.says))
            other = said & _BEFORE or column.key or column.name == owner.column
            if said & _STATE and not other and column.family not in {"boolean", "date", "time", *_MOMENTS}:
                found = Field(past, column)
                one = f"past.{quoted(owner.column)} = {THIS}.{quoted(owner.key)}"
                rows = f"FROM {past.name} AS past WHERE {one}"
                yield History(found, order.name, rows, meanings_of(found, samples))
                break


def _how_ordered(column: Column) -> int:
    """Return how well a column tells which row is the last: by a flag, a time, or a key that grows."""
    if column.family == "boolean" and "active" in tokens(column.says):
        return 0
    return 1 if column.family.startswith("timestamp") else 2 if column.key and column.filled else _UNORDERED


_UNORDERED: Final = 3


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


def holds(end: str) -> str:
    """Return the condition that the time in which a row holds is not over."""
    return f"coalesce({end}, 'infinity') > now()"


def later_version(found: Field) -> str:
    """Return SQL for the later versions of a row, where the key is what it is a version of and this number."""
    of, column = [each for each in found.table.whole_key if each != found.column.name], quoted(found.column.name)
    if not of or found.family != "integer" or len(of) == len(found.table.whole_key):
        return ""
    same = " AND ".join(f"later.{quoted(each)} = {THIS}.{quoted(each)}" for each in of)
    return f"SELECT FROM {found.table.name} AS later WHERE {same} AND later.{column} > {THIS}.{column}"


def end_of(found: Field) -> tuple[str, str] | None:
    """Return SQL for the end of the time in which a row holds, and the column with its beginning.

    Both stand in one column, a range, or in two, as ``valid_from`` and ``valid_to``.
    """
    own = f"{THIS}.{quoted(found.column.name)}"
    if found.family == "period":
        return f"upper({own})", found.column.name
    if found.family in {"timestamptz", "timestamp", "date"}:
        name = "".join(words(found.name))
        beginnings = {
            name[: place.start()] + begin + name[place.end() :]
            for end, begin in _ENDS
            for place in re.finditer(end, name)
        }
        for column in found.table.columns:
            if "".join(words(column)) in beginnings:
                return own, column
    return None


_ENDS: Final = (
    *(("to", "from"), ("thru", "from"), ("until", "from"), ("end", "start"), ("end", "begin"), ("ate", "de")),
    *(("fim", "inicio"), ("fim", "ini"), ("termino", "inicio"), ("final", "inicial"), ("fin", "inicio")),
)
"""Words in the name of the end of a time, with those in the name of its beginning."""


def tells_versions(found: Field, samples: Samples) -> bool:
    """Tell whether rows that differ in this column alone are versions of one thing, and no changes of a row."""
    table, several = found.table, samples.several(found)
    if table.kind == QUERY:
        return several
    kinds = [each for each in table.columns.values() if "type" in tokens(each.says)]
    things = [[column] for column in names_of_rows(table)]
    things += [[table.columns[each.column], *kinds] for each in references_of(table, samples)] if kinds else []
    return several and any(
        samples.repeats_together([Field(table, column) for column in thing])
        and not samples.repeats_together([Field(table, column) for column in thing] + [found])
        for thing in things
    )
