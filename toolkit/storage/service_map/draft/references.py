"""The tables that a row names: by foreign keys, by the names of its columns, or by a kind and a key.

A kind and a key are columns such as ``model_type`` and ``model_id``.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from toolkit.storage.service_map.catalog import CatalogTable, Column, Reference
from toolkit.storage.service_map.draft.choices import Choice
from toolkit.storage.service_map.draft.codes import stated
from toolkit.storage.service_map.draft.samples import Field, Samples, share
from toolkit.storage.service_map.draft.vocabulary import TABLE_WORDS, tokens, words
from toolkit.storage.service_map.expressions import THIS, literal, quoted

KEY_WORDS: Final = {"id", "code", "uuid", "number", "key"}
"""Tokens that make the name of something the name of its key."""


def references_of(table: CatalogTable, samples: Samples) -> Iterator[Reference]:
    """Yield the foreign keys of the table, then what its columns say by their names."""
    yield from table.references
    own = set(tokens(table.says))
    for column in table.columns.values():
        said = set(tokens(column.says))
        wanted = said - KEY_WORDS
        if column.key or not wanted or not said & KEY_WORDS or table.reference(column.name) is not None:
            continue
        for other in samples.catalog.values():
            named = set(tokens(other.says))
            if other is table or not wanted <= named or named - wanted - own - KEY_WORDS:
                continue
            key = key_like(Field(table, column), other, samples)
            if key is not None:
                yield Reference(column.name, other.name, key.name)


def names_of_rows(table: CatalogTable) -> list[Column]:
    """Return the columns that name a row although nothing keeps them unique, an id first."""
    own = set(tokens(table.says)) | KEY_WORDS
    named = [
        column
        for column in table.columns.values()
        if set(tokens(column.says)) & KEY_WORDS and set(tokens(column.says)) <= own
    ]
    free = [column for column in named if not (column.key or column.unique or table.reference(column.name))]
    return sorted(free, key=lambda column: tokens(column.says) not in (("id",), ("uuid",)))


def named_by_values(table: CatalogTable, other: CatalogTable, samples: Samples) -> Reference | None:
    """Return the column all of whose values are keys of another table, too long to agree by chance."""
    for column in table.columns.values():
        for key in other.columns.values():
            if column.key or not (key.key or key.unique) or not {column.family, key.family} <= {"text", "uuid"}:
                continue
            own = Field(table, column)
            values = samples.values(own)
            long = bool(values) and all(len(value) >= _LONG for value in values)
            if long and _all_stand_in(own, other, key, samples):
                return Reference(column.name, other.name, key.name)
    return None


def _all_stand_in(field: Field, other: CatalogTable, key: Column, samples: Samples) -> bool:
    """Tell whether each of the first rows has a value, which is one of this column of the other table."""
    same = f"FROM {other.name} AS other WHERE other.{quoted(key.name)}::text = {field.expression}"
    return other.readable and samples.texts(field.table, f"EXISTS (SELECT {same})::text") == ["true"]


_LONG: Final = 12
"""The fewest characters of a key that names a row by its values alone."""


def reference_to(
    other: CatalogTable, target: str, references: Iterable[Reference], table: CatalogTable
) -> Reference | None:
    """Return the reference of a table to another one that names a row's own client or sale, and nobody else's."""
    wanted = TABLE_WORDS[target][0]

    def fits(reference: Reference) -> tuple[bool, int]:
        said = set(tokens(table.columns[reference.column].says)) - KEY_WORDS
        return bool(said & wanted) or not said, -len(said - wanted)

    found = [each for each in references if each.table == other.name]
    return max(found, key=fits, default=None)


def meanings_of(found: Field, samples: Samples) -> dict[str, str]:
    """Return the values of a column with what they mean: by its comment, a table that it names, or as they are."""
    values = {value.rstrip(): value for value in samples.values(found)}
    for reference in references_of(found.table, samples):
        if reference.column == found.column.name and not found.path:
            other = samples.catalog[reference.table]
            labels = [
                Field(other, each)
                for each in other.columns.values()
                if each.family == "text" and each.name != reference.key
            ]
            values |= samples.labelled(Field(other, other.columns[reference.key]), labels)
    return values | stated(found.column.comment)


def key_like(field: Field, other: CatalogTable, samples: Samples) -> Column | None:
    """Return the column of the other table whose values these are; never one that repeats a value."""
    column, values = field.column, samples.values(field)
    has_key = any(each.key or each.unique for each in other.columns.values())
    named = (
        [] if has_key else [each for each in names_of_rows(other) if _all_stand_in(field, other, each, samples)]
    )
    candidates = [
        each
        for each in other.columns.values()
        if (each.name == column.name or each.key or each.unique or tokens(each.says) == ("id",) or each in named)
        and (
            each.family == column.family
            or {each.family, column.family} <= _NUMBERS
            or (column.family == "text" and each.family in _SHAPES and share(values, _SHAPES[each.family]) == 1)
        )
        and (each.key or each.unique or not samples.repeats(Field(other, each)))
    ]
    held = {each.name for each in candidates if len(candidates) > 1 and samples.holds(Field(other, each), values)}
    return min(
        candidates,
        key=lambda each: (
            each.name not in held,
            each.family != column.family,
            each.name != column.name,
            not each.key,
        ),
        default=None,
    )


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
        said = meanings_of(Field(table, kind), samples).items()
        wanted = [value for value, meaning in said if {*tokens(meaning)[-1:]} & TABLE_WORDS[target][0]]
        if wanted:
            return Owner(key, kind, wanted)
    return None


def kinds_and_keys(table: CatalogTable) -> Iterator[tuple[Column, Column]]:
    """Yield the pairs of columns that hold the kind and the key of an owner: named alike but for such words."""
    named = [(each, set(words(each.name))) for each in table.columns.values() if not each.key]
    keys = [(each, said) for each, said in named if len(said) > 1 and "id" in said]
    for kind, said in named:
        if said & _KINDS and (kind.family in {"text", "enum"} or table.reference(kind.name) is not None):
            whose = said - _KINDS - _ANY_ROW
            yield from ((kind, key) for key, told in keys if key is not kind and told - _ANY_ROW == whose)


_KINDS: Final = {"type", "tipo", "kind", "model", "class", "classe", "clase", "table", "tabela", "tabla"}
_ANY_ROW: Final = {"id", "content", "object", "record", "row", "model", "name"}
"""Words that name no table, as in ``content_type_id`` and ``object_id``."""
_NUMBERS: Final = {"integer", "number"}
_SHAPES: Final = {
    "uuid": re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    "integer": re.compile(r"[1-9][0-9]{0,17}"),
}
"""The pattern of a text that names a row by a key of another type."""
