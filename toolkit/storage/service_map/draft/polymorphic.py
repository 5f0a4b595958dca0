"""Find rows that name their owner by a kind and a key, as in ``model_type`` and ``model_id``."""

from collections.abc import Iterator
from dataclasses import dataclass

from toolkit.storage.service_map.catalog import CatalogTable, Column
from toolkit.storage.service_map.draft.choices import Choice
from toolkit.storage.service_map.draft.samples import Field, Samples
from toolkit.storage.service_map.draft.vocabulary import TABLE_WORDS, tokens
from toolkit.storage.service_map.expressions import THIS, literal, quoted


@dataclass(frozen=True)
class Owner:
    """The columns with the key and the kind of a row's owner, and how the wanted kind is written."""

    key: Column
    kind: Column
    values: list[str]

    @property
    def condition(self) -> str:
        """The condition for the rows that such an owner has."""
        return f"{THIS}.{quoted(self.kind.name)}::text IN ({', '.join(map(literal, self.values))})"

    def added_to(self, where: Choice | None) -> Choice:
        """Return the rows that belong to a relation and to such an owner."""
        if where is None:
            return Choice(self.condition, "rows of other owners are left out", review=True)
        return Choice(f"{self.condition} AND {where.source}", f"rows of other owners; {where.why}", review=True)


def owner_of(table: CatalogTable, target: str, samples: Samples) -> Owner | None:
    """Return how rows of the table name their sale or client, where no foreign key can say it."""
    for kind, key in kinds_and_keys(table):
        wanted = [value for value in samples.values(Field(table, kind)) if _is_named(target, value)]
        if wanted:
            return Owner(key, kind, wanted)
    return None


def kinds_and_keys(table: CatalogTable) -> Iterator[tuple[Column, Column]]:
    """Yield the pairs of columns that hold the kind and the key of an owner."""
    for kind in table.columns.values():
        key = next(
            (
                table.columns[kind.name.removesuffix(ending) + other]
                for ending, other in (("type", "id"), ("Type", "Id"), ("TYPE", "ID"), ("model", "id"))
                if kind.name.endswith(ending) and kind.name.removesuffix(ending) + other in table.columns
            ),
            None,
        )
        if kind.family in {"text", "enum"} and key is not None:
            yield kind, key


def _is_named(target: str, value: str) -> bool:
    return bool(set(tokens(value)[-1:]) & TABLE_WORDS[target][0])
