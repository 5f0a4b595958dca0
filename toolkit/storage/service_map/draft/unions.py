"""Put the files of sales together that stand in several tables, such as one of documents and one of recordings."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from toolkit.storage.service_map.catalog import CatalogTable, Column, Reference
from toolkit.storage.service_map.draft import codes
from toolkit.storage.service_map.draft.derived import key_of
from toolkit.storage.service_map.draft.filters import rows_that_belong, settled
from toolkit.storage.service_map.draft.matching import Match, matched
from toolkit.storage.service_map.draft.references import references_of
from toolkit.storage.service_map.draft.samples import Field, Samples
from toolkit.storage.service_map.draft.vocabulary import TABLE_WORDS, tokens, words
from toolkit.storage.service_map.expressions import THIS, literal, quoted


@dataclass(frozen=True)
class _Part:
    table: CatalogTable
    sale: Reference
    fields: Mapping[str, Field]
    key: Column


def union_of_files(matches: Mapping[str, Match], samples: Samples) -> Match | None:
    """Return a query for all files of sales, matched; ``None`` where one table holds them."""
    parts: list[_Part] = []
    for part in sorted(_parts(matches, samples), key=lambda part: len(words(part.table.plain_name))):
        said = set(words(part.table.plain_name))
        if not any(said >= set(words(other.table.plain_name)) for other in parts):  # no copy, archive or tenant
            parts.append(part)
    if len(parts) < _FEWEST:
        return None
    kinds = [_kind(part, samples) for part in parts]
    own = replace(parts[0].table.columns[parts[0].sale.column], name="sale_id", key=False, unique=False)
    uuids = all(part.key.family == "uuid" for part in parts)
    fields = {name: [part.fields.get(name) for part in parts] for name in _SHOWN}
    shared = [
        _column(name, found)
        for name, found in fields.items()
        if None not in found or (name in _SOMETIMES and any(found))
    ]
    columns = [
        replace(parts[0].key, name="id") if uuids else Column("id", key=True),
        own,
        Column("evidence_type", comment="; ".join(comment for _, comment in kinds if comment)),
        *shared,
    ]
    reasons = [f"the files of {' and '.join(part.table.name for part in parts)}, one after the other"]
    queries = []
    for part, (kind, _) in zip(parts, kinds, strict=True):
        table, where = part.table, rows_that_belong("evidences", part.table, samples)
        key = f"{THIS}.{quoted(part.key.name)}"
        key = key if uuids else f"{literal(table.plain_name + '/')} || {key}::text"
        listed = [key, _sale(part, parts[0].sale), kind]
        listed += [_shown(part.fields.get(each.name), each) for each in shared]
        used = {field.column.name for field in part.fields.values()} | {part.sale.column}
        asked_already = "" if where is None else str(where.source)
        unused = [each for each in table.columns if each not in used and quoted(each) not in asked_already]
        counted, note = settled("evidences", table, where, unused, samples)
        named = ", ".join(f"{sql} AS {quoted(column.name)}" for sql, column in zip(listed, columns, strict=True))
        rows = f"FROM {table.name} AS {THIS}" + (f" WHERE {counted.source}" if counted is not None else "")
        queries.append(f"SELECT {named} {rows}")
        reasons += [f"{table.name} {where.why}"] if where is not None else []
        reasons += [f"of {table.name}, {note.rstrip(';')}"] if note else []
    union = CatalogTable(f"({' UNION ALL '.join(queries)})", "evidences")
    union = replace(union, made="; ".join(reasons), parts=tuple(part.table.name for part in parts))
    union.columns.update({column.name: column for column in columns})
    union.references.append(Reference("sale_id", parts[0].sale.table, parts[0].sale.key))
    return Match(union, {column.name: Field(union, column) for column in columns}, 0)


def _parts(matches: Mapping[str, Match], samples: Samples) -> Iterator[_Part]:
    """Yield the tables that name sales and hold keys of files, and whose names or codes speak of evidence."""
    sales = matches["sales"].table.name if "sales" in matches else ""
    taken = {match.table.name for name, match in matches.items() if name != "evidences"}
    for table in samples.catalog.values():
        if not table.readable or table.kind not in "rpf" or table.name in taken:
            continue
        sale = next((each for each in references_of(table, samples) if each.table == sales), None)
        fields, key = matched("evidences", table, samples).fields, key_of(table)
        named = set().union(*TABLE_WORDS["evidences"]) & set(tokens(table.says)) or codes.evidence_type(table.says)
        if sale and key and "object_key" in fields and (named or "evidence_type" in fields):
            yield _Part(table, sale, fields, key)


def _sale(part: _Part, wanted: Reference) -> str:
    """Return SQL for the sale of a file, by the column of the sale that the first part names."""
    own = f"{THIS}.{quoted(part.sale.column)}"
    if part.sale.key == wanted.key:
        return own
    same = f"sale.{quoted(part.sale.key)} = {own}"
    return f"(SELECT sale.{quoted(wanted.key)} FROM {wanted.table} AS sale WHERE {same})"  # noqa: S608


def _kind(part: _Part, samples: Samples) -> tuple[str, str]:
    """Return SQL for the type of a file, with the table in front where its codes need it, and their comment."""
    table, found, said = part.table, part.fields.get("evidence_type"), part.table.plain_name
    if found is None and codes.evidence_type(said) is not None:
        return literal(said), ""
    others = [Field(table, each) for each in table.columns.values() if each.family in {"text", "enum"}]
    for field in [found] if found is not None else others:
        values, stated = samples.values(field), codes.stated(field.column.comment)
        if found is not None and not stated and not codes.decoded("evidence_type", values, "")[1]:
            return found.expression, ""
        named = [codes.evidence_type(f"{said}.{stated.get(value, value)}") for value in values]
        if found is not None or (named and all(named)):
            comment = ", ".join(f"{said}.{code} = {meaning}" for code, meaning in stated.items())
            return f"{literal(said + '.')} || {field.expression}", comment
    for reference in references_of(table, samples):
        other = samples.catalog[reference.table]
        label = next((each for each in other.columns.values() if each.family == "text" and not each.key), None)
        if label is not None and "type" in tokens(reference.column) + tokens(other.says):
            of = f"kind.{quoted(reference.key)} = {THIS}.{quoted(reference.column)}"
            kind = f"(SELECT kind.{quoted(label.name)} FROM {other.name} AS kind WHERE {of})"  # noqa: S608
            return f"{literal(said + '.')} || {kind}", ""
    return literal(said), ""


def _shown(field: Field | None, column: Column) -> str:
    """Return SQL for a field as the column of all parts has it."""
    if field is None:
        return "NULL::text"
    return field.expression if column.family == "text" else f"{THIS}.{quoted(field.column.name)}"


def _column(name: str, found: list[Field | None]) -> Column:
    """Return the column for the fields of all parts: of their type where it is one, else a text."""
    kinds = {None if field is None else (field.column.cast, field.path) for field in found}
    first = found[0]
    return replace(first.column, name=name) if len(kinds) == 1 and first and not first.path else Column(name)


_SHOWN: Final = ("object_key", "file_name", "file_format", "requested_by", "requested_at")
_SOMETIMES: Final = ("requested_by", "requested_at")
"""Columns that are shown although not every part has them."""

_FEWEST: Final = 2
