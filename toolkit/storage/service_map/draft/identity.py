"""Find the key of a relation's rows, and the columns by which other rows refer to it."""

from collections.abc import Iterable, Mapping
from typing import Final

from toolkit.storage.service_map.catalog import CatalogTable, Column
from toolkit.storage.service_map.draft.choices import ABSENT, Choice
from toolkit.storage.service_map.draft.composed import named_in_key
from toolkit.storage.service_map.draft.derived import key_of
from toolkit.storage.service_map.draft.matching import Match
from toolkit.storage.service_map.draft.people import people_of
from toolkit.storage.service_map.draft.references import (
    KEY_WORDS,
    Owner,
    key_like,
    named_by_values,
    owner_of,
    reference_to,
    references_of,
)
from toolkit.storage.service_map.draft.samples import Field, Samples, fields_of
from toolkit.storage.service_map.draft.vocabulary import TABLE_WORDS, tokens
from toolkit.storage.service_map.expressions import THIS, quoted
from toolkit.storage.service_map.model import TODO

_SAID_BY_NAME: Final = "no foreign key says so"


class Identities:
    """The ids of all relations and the references between them."""

    def __init__(self, matches: Mapping[str, Match], samples: Samples) -> None:
        self._matches, self._samples = matches, samples
        self._ids = {name: self._id_of(name) for name in matches}
        if {"clients", "addresses"} <= set(matches) and matches["clients"].table is matches["addresses"].table:
            self._ids["addresses"] = self._ids["clients"]
        self.owners: dict[tuple[str, str], Owner] = {}
        """The owners that rows name by kind and key, by relation and target, as they are met."""
        both = {"sales", "clients"} <= set(matches)
        self.people = people_of(matches["sales"].table, matches["clients"].table, samples) if both else None

    def column(self, name: str) -> str | None:
        """Return the column that stands for a row of the relation wherever people or other rows name it."""
        found = self._ids[name]
        return None if found is None or found.path else found.name

    def id(self, name: str) -> Choice:
        """Return the choice for the relation's own id."""
        table, found = self._matches[name].table, self._ids[name]
        if found is None:
            if not table.whole_key:
                return Choice({"sql": TODO}, "what stands for one row of it?")
            return Choice({"sql": _parts(table.whole_key)}, "the parts of its key", review=name == "sales")
        kept = (found.column.key or found.column.unique) and not found.path
        why = "" if kept else "nothing in the database keeps it unique"
        if name == "sales" and found.family != "text":
            why = "the table's own key: reports name sales by it"
        return Choice(found.source, why, review=bool(why))

    def reference(self, name: str, target: str) -> Choice:
        """Return how a row names the client or the sale that it belongs to."""
        table, optional = self._matches[name].table, target == "clients" and name == "sales"
        if target not in self._matches:
            why = f"which of the {target} does it belong to?"
            return Choice(ABSENT) if optional else Choice({"sql": TODO}, why)
        other, wanted = self._matches[target].table, self._ids[target]
        if other is table:
            return Choice(TODO if wanted is None else wanted.source, "it stands in the same table")
        found = reference_to(other, target, table.references, table)
        if found is not None:
            also = self._also_named(table, other, found.column) if name == "evidences" else ""
            if also:
                return Choice({"sql": TODO}, f"rows without {found.column} name a sale by {also}: which one?")
            return self._looked_up(wanted, other, found.key, table.columns[found.column])
        wide = next((each for each in table.wide_references if each.table == other.name), None)
        name_there = None if wanted is None else wanted.name
        if wide is not None and name_there in {None, *wide.keys} and {*wide.keys} >= {*other.whole_key}:
            parts = _parts([wide.keys[each] for each in other.whole_key])
            return Choice(wide.keys[name_there] if name_there else {"sql": parts})
        if wide is not None and wanted is not None:
            same = " AND ".join(f"other.{quoted(key)} = {THIS}.{quoted(own)}" for key, own in wide.keys.items())
            return Choice({"sql": f"(SELECT {wanted.of('other')} FROM {other.name} AS other WHERE {same})"})  # noqa: S608
        back = next((each for each in other.references if each.table == table.name), None)
        if back is not None and wanted is not None:
            source = {**wanted.members, "table": other.name, "key": back.column, "by": back.key}
            return Choice(source, "the other table names this one")
        for column in table.columns.values():
            said = set(tokens(column.says))
            if said & TABLE_WORDS[target][0] and said <= TABLE_WORDS[target][0] | KEY_WORDS:
                key = key_like(Field(table, column), other, self._samples)
                if key is not None:
                    return self._looked_up(wanted, other, key.name, column, "by its name: " + _SAID_BY_NAME)
        if (owner := owner_of(table, target, self._samples)) is not None:
            self.owners[name, target] = owner
            self._samples.narrow(table, owner.condition)
            if (key := key_like(Field(table, owner.key), other, self._samples)) is not None:
                return self._looked_up(wanted, other, key.name, owner.key, _SAID_BY_NAME)
        if optional and self.people is not None and self.people.person_key == name_there:
            return self.people.client
        if name == "evidences" and (by := named_by_values(table, other, self._samples)) is not None:
            return self._looked_up(
                wanted, other, by.key, table.columns[by.column], f"by its values: {_SAID_BY_NAME}"
            )
        if name == "evidences" and wanted is not None:
            keys = other.whole_key[0] if len(other.whole_key) == 1 else wanted.column.name
            if (part := named_in_key(self._matches[name], other, wanted, keys, self._samples)) is not None:
                return part
        told = f" Their id is {_parts(other.whole_key)}" if wanted is None and other.whole_key else ""
        links = [] if optional else [each for each in self._samples.catalog.values() if each is not other]
        of_both = [
            each for each in links if any(to.table == table.name for to in references_of(each, self._samples))
        ]
        for link in of_both or links:
            if (by := named_by_values(link, other, self._samples)) is not None:
                told += f" {link.name} names them by {by.column}."
        named = [each for each in table.columns.values() if set(tokens(each.says)) & TABLE_WORDS[target][0]]
        if alike := next((each for each in named if each.name in other.columns), None):
            told += f" Several rows of {other.name} have the same {alike.name}: which one is meant,"
            told += " or are they one, for a query in from of [sales]?"
        elif named:
            names = " or ".join(each.name for each in named)
            told += f" Perhaps {names}, whose values are written in another way"
        why = f"which of the {target} does it belong to?{told}"
        return Choice(ABSENT) if optional else Choice({"sql": TODO}, why)

    def _also_named(self, table: CatalogTable, other: CatalogTable, column: str) -> str:
        """Return the column by which rows without this one name something that the other table names, too."""
        theirs = {each.table for each in other.references} - {match.table.name for match in self._matches.values()}
        for each in table.references:
            lacking = f"({THIS}.{quoted(column)} IS NULL AND {THIS}.{quoted(each.column)} IS NOT NULL)::text"
            if each.table in theirs and "true" in self._samples.texts(table, lacking):
                return each.column
        return ""

    def _looked_up(self, wanted: Field | None, other: CatalogTable, key: str, by: Column, why: str = "") -> Choice:
        if wanted is None:
            if not other.whole_key:
                return Choice({"sql": TODO}, "what stands for one row of the other table?")
            same = f"other.{quoted(key)} = {THIS}.{quoted(by.name)}"
            parts = f"(SELECT {_parts(other.whole_key, 'other')} FROM {other.name} AS other WHERE {same})"  # noqa: S608
            return Choice({"sql": parts}, why, review=bool(why))
        rows = other.name
        if not (other.columns[key].key or other.columns[key].unique):
            rows = self._samples.rows_of_key(Field(other, other.columns[key]))
        if by.family == "text" and other.columns[key].family != "text":
            rows = f"(SELECT {quoted(key)}::text, {quoted(wanted.column.name)} FROM {rows} AS other) AS other"  # noqa: S608
        elif rows.startswith("("):
            rows = f"{rows} AS other"
        row = {"table": rows, "key": key, "by": by.name}
        source = by.name if wanted.source == key and not by.loose else {**wanted.members, **row}
        return Choice(source, why, review=bool(why))

    def _id_of(self, name: str) -> Field | None:
        table = self._matches[name].table
        public = [each for each in fields_of(table, self._samples) if _is_public(each, self._samples)]
        key = key_of(table)
        spoken = key is not None and key.family == "text" and not set(tokens(key.says)) <= {"id", "sale"}
        if name == "sales" and public and not spoken:
            return max(public, key=_how_public)
        return self._key(name, table, key)

    def _key(self, name: str, table: CatalogTable, key: Column | None) -> Field | None:
        columns = list(table.columns.values())
        texts = [each for each in columns if each.family == "text" and each.unique and each.required]
        uuids = [each for each in columns if each.family == "uuid" and each.unique and each.required]
        if name == "sales" and len(texts) == 1:
            return Field(table, texts[0])
        if name != "sales" and uuids:
            return Field(table, uuids[0])
        if key is not None:
            return Field(table, key)
        if len([each for each in table.whole_key if table.columns[each].family not in _PARTITIONED_BY]) > 1:
            return None
        own = TABLE_WORDS[name][0] | TABLE_WORDS[name][1] | KEY_WORDS
        named = [each for each in columns if set(tokens(each.says)) & KEY_WORDS and set(tokens(each.says)) <= own]
        named.sort(key=lambda column: tokens(column.says) not in (("id",), ("uuid",)))
        fields = (Field(table, column) for column in named)
        return next((each for each in fields if not self._samples.repeats(each)), None)


_PARTITIONED_BY: Final = {"date", "timestamp", "timestamptz", "period"}
"""Families of columns that are part of a key only because a table is partitioned by them or keeps earlier rows."""


def _parts(columns: Iterable[str], row: str = THIS) -> str:
    """Return the SQL for a key of several columns as one text."""
    return " || '/' || ".join(f"{row}.{quoted(column)}::text" for column in columns)


def _is_public(found: Field, samples: Samples) -> bool:
    said = set(tokens("_".join((*found.path[:-1], found.says))))
    unique = found.column.unique and not found.path
    if found.family != "text" or (found.column.key and not found.path):
        return False
    values = samples.values(found)
    numbered = said == {"name"} and all(any(map(str.isdigit, value)) for value in values)
    keyed = said <= {"sale", "id", "key", "external"} and unique
    if not (said & {"code", "number"} or keyed or numbered):
        return False
    if {"client", "partner", "group", "dealership", "installation", "document", "zip", "phone", "address"} & said:
        return False
    return unique or (len(values) > 1 and not samples.repeats(found))


def _how_public(found: Field) -> tuple[bool, bool, bool, bool]:
    said = set(tokens(found.says))
    return found.column.unique and not found.path, not found.path, "code" in said, "number" in said
