"""Tables that queries make of events, or of attributes: a row for each stream or entity, a column for each kind.

Only a person knows which events make a sale, so that such a query is shown beside a question and not taken.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Final

from toolkit.storage.service_map.catalog import QUERY, CatalogTable, Column, Reference
from toolkit.storage.service_map.draft.references import references_of
from toolkit.storage.service_map.draft.samples import Field, Samples, json_path
from toolkit.storage.service_map.draft.vocabulary import TABLE_WORDS, tokens, words
from toolkit.storage.service_map.expressions import literal, quoted


@dataclass(frozen=True)
class _Tall:
    """A table with a row for each event or attribute: of which owner, of which kind, with which value and when."""

    table: CatalogTable
    owner: Column
    kind: Column
    value: Column
    moment: Column | None
    groups: list[set[str]]
    """The kinds that owners of one sort have."""


def pivots_of(table: CatalogTable, samples: Samples) -> Iterator[CatalogTable]:
    """Yield the tables that such a table stands for; none where it is no such table."""
    tall = _tall(table, samples)
    for kinds in tall.groups if tall is not None else ():
        assert tall is not None
        inside = {
            path: samples.values(Field(_rows_of(tall, kinds, path), tall.kind))
            for path in _keys(tall, kinds, samples)
        }
        stream = _pivot(tall, samples, kinds.difference(*inside.values()) or kinds)
        yield stream
        for path, told in inside.items():
            yield _pivot(tall, samples, set(told), path, stream)


def _keys(tall: _Tall, kinds: set[str], samples: Samples) -> list[tuple[str, ...]]:
    """Return the members that tell the files of one owner apart."""
    if tall.value.family != "json":
        return []
    members = samples.members(_rows_of(tall, kinds), tall.value)
    said = {path: set(tokens(path[-1])) for path in members}
    return [path for path in members if "id" in said[path] and said[path] & {"evidence", "file", "document"}]


def _tall(table: CatalogTable, samples: Samples) -> _Tall | None:
    columns = [(each, set(words(each.name))) for each in table.columns.values()]
    values = [each for each, said in columns if each.family == "json" or said & VALUE]
    texts = [(each, said) for each, said in columns if each.family in {"text", "enum"}]
    kinds = [each for each, said in texts if said & _KIND and each not in values]
    required = [(each, said) for each, said in columns if each.required]
    owners = [each for each, said in required if said & _OWNER and not each.unique and each not in kinds]
    named = {each.column: samples.catalog[each.table] for each in references_of(table, samples)}
    owners = [each for each in owners if each.name not in named or not _tells(named[each.name])]
    moment = next((each for each, _ in required if each.family.startswith("timestamp")), None)
    for kind in kinds:
        if not 1 < len(samples.values(Field(table, kind))) <= _MOST_KINDS:
            continue
        for owner in owners:
            groups = _alike(samples.kinds_by_owner(table, kind, owner))
            if values and any(len(each) > 1 for each in groups):
                return _Tall(table, owner, kind, values[0], moment, groups)
    return None


def _tells(table: CatalogTable) -> bool:
    """Tell whether a table is one of sales or of evidence, of which other rows only hold more."""
    return any(set().union(*TABLE_WORDS[name]) & set(tokens(table.says)) for name in ("sales", "evidences"))


def _alike(kinds: list[set[str]]) -> list[set[str]]:
    """Put the kinds together that owners of one sort have: those of which they share at least half."""
    groups: list[set[str]] = []
    for each in sorted(kinds, key=len, reverse=True):
        found = next((group for group in groups if 2 * len(group & each) >= len(each)), None)
        if found is None:
            groups.append(set(each))
        else:
            found |= each
    return groups


def _rows_of(tall: _Tall, kinds: Collection[str], path: tuple[str, ...] | None = None) -> CatalogTable:
    """Return the rows of these kinds, and with a value for this member."""
    listed = ", ".join(map(literal, sorted(kinds)))
    given = "" if path is None else f" AND {_read(tall.value, path)} IS NOT NULL"
    named = quoted(tall.kind.name)
    rows = f"(SELECT * FROM {tall.table.name} AS row WHERE row.{named}::text IN ({listed}){given})"  # noqa: S608
    return replace(tall.table, name=rows, kind=QUERY)


def _read(value: Column, path: tuple[str, ...]) -> str:
    """Return the member of a row's JSON as SQL."""
    name = f"row.{quoted(value.name)}" + ("" if value.cast == "jsonb" else "::jsonb")
    return f"{name} ->> {literal(path[0])}" if len(path) == 1 else f"{name} #>> {json_path(path)}"


def _pivot(
    tall: _Tall,
    samples: Samples,
    kinds: set[str],
    path: tuple[str, ...] | None = None,
    stream: CatalogTable | None = None,
) -> CatalogTable:
    """Return a row for each owner, or for each value of a member, with the last value of every other member."""
    owner, kind = (f"row.{quoted(each.name)}" for each in (tall.owner, tall.kind))
    rows = _rows_of(tall, kinds, path)
    one = owner if path is None else _read(tall.value, path)
    shown = [(one, replace(tall.owner, key=True) if path is None else Column("_".join(path), key=True))]
    if stream is not None:
        shown.append((f"max({owner}::text)", Column(tall.owner.name)))
    moment = None if tall.moment is None else f"row.{quoted(tall.moment.name)}"
    for member in samples.members(rows, tall.value) if tall.value.family == "json" else ():
        if member != path:
            read = _read(tall.value, member)
            last = f"array_agg({read}" + (f" ORDER BY {moment} DESC)" if moment else ")")
            shown.append((f"({last} FILTER (WHERE {read} IS NOT NULL))[1]", Column("_".join(member))))
    for each in sorted(kinds):
        said = f"FILTER (WHERE {kind}::text = {literal(each)})"
        if tall.value.family != "json":
            shown.append((f"max(row.{quoted(tall.value.name)}) {said}", Column(each)))
        elif tall.moment is not None:
            column = replace(tall.moment, name=f"{each} at", required=False, key=False, default="")
            shown.append((f"min({moment}) {said}", column))
    named = tall.table.reference(tall.owner.name) if path is None else None
    for column in samples.catalog[named.table].columns.values() if named is not None else ():
        if named is not None and column.family.startswith("timestamp"):
            same = f"there.{quoted(named.key)} = {owner}"
            read = f"(SELECT there.{quoted(column.name)} FROM {named.table} AS there WHERE {same})"  # noqa: S608
            shown.append((read, column))
    columns = {column.name: (sql, column) for sql, column in reversed(shown)}
    listed = ",\n    ".join(f"{sql} AS {quoted(name)}" for name, (sql, _) in reversed(columns.items()))
    query = f"(SELECT\n    {listed}\nFROM {rows.name} AS row\nGROUP BY {one})"
    listed = ", ".join(sorted(kinds)[:_SHOWN]) + (", ..." if len(kinds) > _SHOWN else "")
    question = (
        f"{tall.table.name} holds a row for each of {listed}: a query has to make one row of them, and only "
        f"somebody who knows the service can say which. The one below, a row for each {shown[0][1].name}, is an "
        "example: take it or mend it"
    )
    found = CatalogTable(query, " ".join(sorted(kinds)), question=question, parts=(tall.table.name,))
    found.columns.update({name: column for name, (_, column) in reversed(columns.items())})
    if stream is not None:
        found.references.append(Reference(tall.owner.name, stream.name, tall.owner.name))
    return found


VALUE: Final = {"value", "valor", "val"}
_KIND: Final = {
    *("type", "event", "name", "action", "kind", "attribute", "attr", "key", "field", "property"),
    *("tipo", "evento", "nome", "acao", "atributo", "chave", "campo", "propriedade"),
}
_OWNER: Final = {"id", "uuid", "entity", "stream", "aggregate", "owner", "entidade", "objeto", "agregado"}
_MOST_KINDS: Final = 40
_SHOWN: Final = 8
