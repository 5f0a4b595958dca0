"""Tables that queries make: evidence inside a row of the sale, apart from its file, or among rows of all kinds.

They are looked at only where no table of the catalog holds the records and the keys of their files.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from toolkit.storage.service_map.catalog import QUERY, CatalogTable, Column, Reference
from toolkit.storage.service_map.draft import codes
from toolkit.storage.service_map.draft.matching import GOOD, Match, score
from toolkit.storage.service_map.draft.pivots import pivots_of
from toolkit.storage.service_map.draft.references import kinds_and_keys, meanings_of, references_of
from toolkit.storage.service_map.draft.samples import (
    ENDING,
    KEY,
    PLACE,
    Field,
    Samples,
    fields_of,
    json_path,
    share,
)
from toolkit.storage.service_map.draft.vocabulary import TABLE_WORDS, tokens, words
from toolkit.storage.service_map.expressions import literal, quoted


def derived_tables(matches: Mapping[str, Match], samples: Samples) -> list[CatalogTable]:
    """Return the queries that may stand for relations of which no table was found, or none that is whole."""
    tables = [table for table in samples.catalog.values() if table.readable]
    found: list[CatalogTable] = []
    evidences = matches.get("evidences")
    whole = (
        evidences is not None
        and "object_key" in evidences.fields
        and _names_its_sale(evidences.table, matches)
        and not any(_columns_of_files(evidences.table, samples))
    )
    made = [] if whole and "sales" in matches else [each for table in tables for each in pivots_of(table, samples)]
    told = [table for table in tables if table.name not in {part for each in made for part in each.parts}]
    found += made
    if "sales" not in matches or evidences is None:
        found += [each for table in told for each in _of_one_kind(table, samples)]
    if not whole:
        for table in told:
            found += _elements(table, samples)
            found += _arrays(table, samples)
            found += _columns_of_files(table, samples)
        found += _with_their_files(tables, samples)
    return found


def _names_its_sale(table: CatalogTable, matches: Mapping[str, Match]) -> bool:
    sales = matches["sales"].table.name if "sales" in matches else ""
    return (
        any("sale" in tokens(column) for column in table.columns)
        or any(reference.table == sales for reference in table.references)
        or any(kinds_and_keys(table))
    )


def _of_one_kind(table: CatalogTable, samples: Samples) -> Iterator[CatalogTable]:
    """Yield a table for each kind of rows, where one table holds sales and evidence alike."""
    for kind in table.columns.values():
        if kind.family not in {"text", "enum"}:
            continue
        values = [value for value in samples.values(Field(table, kind)) if len(value) <= _LONGEST_KIND]
        said = {value: set(tokens(value)) for value in values}
        names = [set().union(*TABLE_WORDS[name]) for name in ("sales", "evidences")]
        if not all(any(words & each for words in said.values()) for each in names):
            continue
        for value in values:
            rows = f"(SELECT * FROM {table.name} WHERE {quoted(kind.name)}::text = {literal(value)})"  # noqa: S608
            whole = replace(table, name=rows, plain_name=value, kind=QUERY)
            rest = [column for column in table.columns.values() if column is not kind and column.family != "json"]
            members = [
                (f"row.{quoted(column.name)} #>> {json_path(path)}", Column("_".join(path)))
                for column in table.columns.values()
                if column.family == "json"
                for path in samples.members(whole, column)
            ]
            shown = [(f"row.{quoted(column.name)}", column) for column in rest]
            kinds = ", ".join(each for each in values if each != value)
            made = f"one kind of rows of {table.name}; the others are {kinds}"
            found = _query(value, shown + members, f"{rows} AS row", table.references, made)
            ended = [each for each in values if said[each] & {"deleted", "cancelled"} and said[each] & said[value]]
            question = f"which rows do those of {', '.join(ended)} end? a query without them, from {found.name}"
            yield replace(found, parts=(table.name,), question=question if ended else "")


def _elements(table: CatalogTable, samples: Samples) -> Iterator[CatalogTable]:
    """Yield the elements of lists and of objects by type that stand in JSON columns; lists of files as one."""
    key = key_of(table)
    lists: dict[str, str] = {}
    documents = [column for column in table.columns.values() if column.family == "json"]
    for column in documents if key is not None else ():
        for path, is_list in samples.collections(table, column):
            value = f"owner.{quoted(column.name)}::jsonb" + (f" #> {json_path(path)}" if path else "")
            expected = "array" if is_list else "object"
            inside = f"CASE jsonb_typeof({value}) WHEN '{expected}' THEN {value} END"
            if is_list:
                each = f"jsonb_array_elements({inside}) WITH ORDINALITY AS item(value, place)"
                lists[each] = "/".join(path if path and len(documents) == 1 else (column.name, *path))
                continue
            each = f"jsonb_each({inside}) AS item(place, value)"
            keys = samples.values(Field(_items(table, each), Column("place")))
            if any(codes.evidence_type(each) for each in keys):
                yield _elements_of(table, each, column.name, samples, kind="place")
    deeper = [
        path
        for column in documents
        for path, texts in (samples.texts_deeper(table, column).items() if lists else ())
        if share([text.rpartition(".")[2] for text in texts], ENDING) > _MOST
    ]
    lying = f"files lie in lists of lists, too, in {', '.join(deeper)}: name a query of them all, in place of"
    files = [each for each in lists if _holds_files(_items(table, each), samples)]
    kind = "list" if len(files) > 1 else ""
    if kind:
        parts = " UNION ALL ".join(f"SELECT {literal(lists[each])}, item.* FROM {each}" for each in files)  # noqa: S608
        names = " and ".join(map(lists.pop, files))
        lists = {f"LATERAL ({parts}) AS item(list, value, place)": names} | lists
    for each, name in lists.items():
        found = _elements_of(table, each, name, samples, kind=kind if each.startswith("LATERAL") else "")
        yield replace(found, question=f"{lying} {name}" if deeper else "")


def _items(table: CatalogTable, each: str) -> CatalogTable:
    """Return the bare elements of JSON in the rows of a table."""
    query = f"(SELECT item.* FROM {table.name} AS owner, {each})"  # noqa: S608
    return CatalogTable(query, "item", columns={"value": replace(Column("value"), family="json")})


def _holds_files(items: CatalogTable, samples: Samples) -> bool:
    return any(score("evidences", "object_key", each, samples) >= GOOD for each in fields_of(items, samples))


def _elements_of(table: CatalogTable, each: str, name: str, samples: Samples, *, kind: str = "") -> CatalogTable:
    """Return a row for each element; ``kind`` is the column, if any, that tells the kind of an element."""
    key, items = table.columns[table.whole_key[0]], _items(table, each)
    members = samples.members(items, items.columns["value"])
    owner, shown = _owner(table, key)
    unnamed = not any(len(path) == 1 and tokens(path[0])[-1:] in (("id",), ("uuid",)) for path in members)
    if unnamed or kind == "place":
        place = "item.list || '/' || item.place" if kind == "list" else "item.place"
        shown.append((f"owner.{quoted(key.name)}::text || '/' || {place}", Column("id", key=True)))
    if kind:
        shown.append((f"item.{kind}", Column("type" if kind == "place" else kind)))
    if not members and kind == "place":
        shown.append(("item.value #>> '{}'", Column("path")))
    shown += [(f"item.value #>> {json_path(path)}", Column("_".join(path))) for path in members]
    shown += _own_times(table, {column.name for _, column in shown})
    source = f"{table.name} AS owner, {each}"
    return _query(name, shown, source, [owner], f"a row for each element of {name}")


def _arrays(table: CatalogTable, samples: Samples) -> Iterator[CatalogTable]:
    """Yield a row for each place in the arrays of a row, where one of them holds the places of files."""
    key = key_of(table)
    arrays = [quoted(name) for name, column in table.columns.items() if column.cast in _ARRAYS]
    if key is None or not arrays:
        return
    inside = f"unnest({', '.join(f'owner.{name}::text[]' for name in arrays)}) WITH ORDINALITY"
    source = f"{table.name} AS owner, {inside} AS item({', '.join(arrays)}, place)"
    items = CatalogTable(f"(SELECT item.* FROM {source})", "items")  # noqa: S608
    columns = [Column(name) for name, column in table.columns.items() if column.cast in _ARRAYS]
    if any(share(samples.values(Field(items, column)), PLACE) > _MOST for column in columns):
        owner, shown = _owner(table, key)
        shown.append((f"owner.{quoted(key.name)}::text || '/' || item.place", Column("id", key=True)))
        shown += [(f"item.{quoted(column.name)}", column) for column in columns]
        shown += _own_times(table, set())
        made = f"a row for each place in {' and '.join(column.name for column in columns)}"
        yield _query("evidences", shown, source, [owner], made)


_ARRAYS: Final = {"text[]", "character varying[]"}


def _columns_of_files(table: CatalogTable, samples: Samples) -> Iterator[CatalogTable]:
    """Yield a row for each column that names a type of evidence and holds the place of its file."""
    key = key_of(table)
    values = {
        each.name: samples.values(Field(table, each)) for each in table.columns.values() if each.family == "text"
    }
    known = {name for name, held in values.items() if codes.evidence_type(name) and _holds_places(held)}
    unknown = {name for name, held in values.items() if held and _holds_places(held) and share(held, KEY) > _MOST}
    if key is None or not known or len(known | unknown) < _FEWEST or not any(values[name] for name in known):
        return
    named = [table.columns[name] for name in values if name in known | unknown]
    moments = [_moment_beside(column, table) for column in named]
    timed = all(moments)
    pairs = ", ".join(
        f"({literal(column.name)}, owner.{quoted(column.name)}::text"
        + (f", owner.{quoted(moment.name)})" if timed and moment else ")")
        for column, moment in zip(named, moments, strict=True)
    )
    listed = "type, path, sent_at" if timed else "type, path"
    source = f"{table.name} AS owner CROSS JOIN LATERAL (VALUES {pairs}) AS file({listed}) WHERE file.path <> ''"
    owner, shown = _owner(table, key)
    to_sale = [each for each in table.references if "sale" in tokens(samples.catalog[each.table].says)]
    for reference in to_sale:
        named_row = replace(table.columns[reference.column], key=False, unique=False)
        shown.append((f"owner.{quoted(reference.column)}", named_row))
    shown += [
        (f"owner.{quoted(key.name)}::text || '/' || file.type", Column("id", key=True)),
        ("file.type", Column("type", labels=tuple(column.name for column in named))),
        ("file.path", Column("path")),
        *([("file.sent_at", replace(moments[0], name="sent_at"))] if timed and moments[0] else ()),
        *(() if timed else _own_times(table, set())),
    ]
    made = "a row for each column that holds the place of a file"
    yield _query("evidences", shown, source, [*to_sale, owner], made)


def _moment_beside(column: Column, table: CatalogTable) -> Column | None:
    """Return the column with the time of a file whose place stands in another one named alike."""
    own = words(column.name)[:-1]
    times = (each for each in table.columns.values() if own and each.family.startswith("time"))
    return next((each for each in times if words(each.name)[: len(own)] == own), None)


def _with_their_files(tables: list[CatalogTable], samples: Samples) -> Iterator[CatalogTable]:
    """Yield records beside the files that they name, or that name them."""
    for file in tables:
        places = {
            column.name
            for column in file.columns.values()
            if score("evidences", "object_key", Field(file, column), samples) >= GOOD
        }
        if not places:
            continue
        for record in tables:
            if record is file:
                continue
            for reference in references_of(record, samples):
                if reference.table == file.name:
                    on = f"file.{quoted(reference.key)} = record.{quoted(reference.column)}"
                    yield _beside(record, file, f"{record.name} AS record JOIN {file.name} AS file ON {on}")
                    yield from _owned(record, file, on, samples)
            for reference in references_of(file, samples):
                if reference.table == record.name:
                    on = f"file.{quoted(reference.column)} = record.{quoted(reference.key)}"
                    source = f"{record.name} AS record JOIN {file.name} AS file ON {on}"
                    yield _beside(record, file, source, many=True)


def _owned(link: CatalogTable, file: CatalogTable, on: str, samples: Samples) -> Iterator[CatalogTable]:
    """Yield records whose files are joined by rows that name a record by a kind and a key."""
    for kind, key in kinds_and_keys(link):
        for value, meaning in meanings_of(Field(link, kind), samples).items():
            of_kind = f"{quoted(kind.name)}::text = {literal(value)}"
            shown = _shown_of_link(link, kind, of_kind, samples)
            for record in samples.catalog.values():
                own = key_of(record)
                if own is None or tokens(meaning)[-1:] != tokens(record.says)[-1:] or not tokens(meaning):
                    continue
                source = (
                    f"{record.name} AS record JOIN {link.name} AS link ON link.{of_kind} "
                    f"AND link.{quoted(key.name)}::text = record.{quoted(own.name)}::text "
                    f"JOIN {file.name} AS file ON {on.replace('record.', 'link.')}"
                )
                yield _beside(record, file, source, many=True, link=shown)


def _shown_of_link(link: CatalogTable, kind: Column, of_kind: str, samples: Samples) -> list[tuple[str, Column]]:
    """Return the key of the rows of a kind, and the text by which they tell the files of one record apart."""
    key, found = key_of(link), []
    if key is not None:
        found.append((f"link.{quoted(key.name)}", replace(key, name="link_id", key=True)))
    for column in link.columns.values():
        if column.family in {"text", "enum"} and column is not kind and not column.unique:
            told = set(samples.texts(link, f"CASE WHEN {of_kind} THEN {quoted(column.name)}::text END")) - {None}
            if _FEWEST <= len(told) <= _MOST_ROLES:
                found.append((f"link.{quoted(column.name)}", replace(column, name=ATTACHED_AS)))
                break
    return found


def _beside(
    record: CatalogTable,
    file: CatalogTable,
    source: str,
    *,
    many: bool = False,
    link: Collection[tuple[str, Column]] = (),
) -> CatalogTable:
    """Return the columns of both; where ``many`` rows may share a record, theirs or the link's is the key."""
    shown = [
        (f"record.{quoted(column.name)}", replace(column, key=False, unique=False) if many else column)
        for column in record.columns.values()
    ]
    taken = {column.name for column in record.columns.values()}
    for column in file.columns.values():
        if (column.key and (not many or link)) or tokens(column.says)[-1:] == ("updated",):
            continue
        name = f"file_{column.name}" if column.name in taken else column.name
        shown.append((f"file.{quoted(column.name)}", replace(column, name=name, unique=False)))
    shown += link
    made = "a row for each file; a record without one is left out"
    return _query(record.plain_name, shown, source, record.references, made)


def _query(
    plain_name: str, shown: Iterable[tuple[str, Column]], source: str, references: Iterable[Reference], made: str
) -> CatalogTable:
    columns = {column.name: (sql, column) for sql, column in reversed(list(shown))}
    listed = ", ".join(
        sql if sql.endswith(f".{quoted(name)}") else f"{sql} AS {quoted(name)}"
        for name, (sql, _) in reversed(columns.items())
    )
    named = {name: column for name, (_, column) in reversed(columns.items())}
    query = f"(SELECT {listed} FROM {source})"  # noqa: S608
    return CatalogTable(query, plain_name, columns=named, references=list(references), made=made)


def _owner(table: CatalogTable, key: Column) -> tuple[Reference, list[tuple[str, Column]]]:
    """Return the reference to the row that holds what becomes a row of its own, and the column for it."""
    own = f"{table.plain_name}_{key.name}"
    shown = (f"owner.{quoted(key.name)}", replace(key, name=own, key=False, unique=False))
    return Reference(own, table.name, key.name), [shown]


def _own_times(table: CatalogTable, taken: set[str]) -> list[tuple[str, Column]]:
    """Return when the sale was created, for what carries no time of its own."""
    if any(tokens(name)[-1:] in (("at",), ("date",), ("sent",), ("created",)) for name in taken):
        return []
    return [
        (f"owner.{quoted(column.name)}", column)
        for column in table.columns.values()
        if column.family.startswith(("time", "date")) and {"created", "sale"} & set(tokens(column.says))
    ]


def key_of(table: CatalogTable) -> Column | None:
    """Return the column that is the whole primary key."""
    return next((column for column in table.columns.values() if column.key), None)


def _holds_places(values: list[str]) -> bool:
    return not values or share([value for value in values if value.strip()], PLACE) > _MOST


ATTACHED_AS: Final = "attached_as"
"""The column that a query shows the role of a file under, where one record has files of several."""
_MOST_ROLES: Final = 12
_LONGEST_KIND: Final = 40
_FEWEST: Final = 2
_MOST: Final = 0.8
