"""Rows that name their owner by a kind and a key, as in ``model_type`` and ``model_id``."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.storage.service_map.catalog import CatalogTable, Column
from toolkit.storage.service_map.draft.choices import Choice
from toolkit.storage.service_map.draft.samples import Field, Samples
from toolkit.storage.service_map.draft.vocabulary import TABLE_WORDS, tokens
from toolkit.storage.service_map.expressions import THIS, literal, quoted


@dataclass(frozen=True)
class Owner:
    """The column with the key of a row's owner, and the condition that the owner is of the wanted kind."""

    key: Column
    condition: str

    def added_to(self, where: Choice | None) -> Choice:
        """Return the rows that belong to a relation and to such an owner."""
        if where is None:
            return Choice(self.condition, "rows of other owners are left out", review=True)
        return Choice(f"{self.condition} AND {where.source}", f"rows of other owners; {where.why}", review=True)


def owner_of(table: CatalogTable, target: str, samples: Samples) -> Owner | None:
    """Return how rows of the table name their sale or client, where no foreign key can say it."""
    for kind in table.columns.values():
        key = table.columns.get(kind.name.removesuffix("type") + "id") or table.columns.get(
            kind.name.removesuffix("Type") + "Id"
        )
        if kind.family not in {"text", "enum"} or key is None or key is kind:
            continue
        wanted = [value for value in samples.values(Field(table, kind)) if _is_named(target, value)]
        if wanted:
            values = ", ".join(map(literal, wanted))
            return Owner(key, f"{THIS}.{quoted(kind.name)}::text IN ({values})")
    return None


def _is_named(target: str, value: str) -> bool:
    return bool(set(tokens(value)[-1:]) & TABLE_WORDS[target][0])
