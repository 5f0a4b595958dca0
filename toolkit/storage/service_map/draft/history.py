"""Find the rows that keep the states of a sale or of a file, where its own table does not hold the last one."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from toolkit.storage.service_map.catalog import CatalogTable, Column
from toolkit.storage.service_map.draft.references import meanings_of, references_of
from toolkit.storage.service_map.draft.samples import Field, Samples
from toolkit.storage.service_map.draft.vocabulary import tokens, words
from toolkit.storage.service_map.expressions import THIS, literal, quoted

_HISTORY: Final = {"history", "status"}
_STATE: Final = {"status", "event", "evento", "action", "acao", "type"}
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
        """Return when one of these was last reached, where the rows have times."""
        if not self.field.table.columns[self.order].family.startswith("timestamp"):
            return None
        reached = f"{self.rows} AND {self._state} IN ({', '.join(map(literal, states))})"
        return f"(SELECT max(past.{quoted(self.order)}) {reached})"

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
            if said & _STATE and not said & _BEFORE and column.family != "boolean" and column.name != owner.column:
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
