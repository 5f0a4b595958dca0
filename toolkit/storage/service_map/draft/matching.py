"""Find the table of each of the contract's relations, and the field for each of its columns."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from toolkit.storage.service_map.catalog import QUERY, CatalogTable
from toolkit.storage.service_map.draft import codes
from toolkit.storage.service_map.draft.samples import (
    CPF,
    DAY,
    ENDING,
    EPOCH,
    FILE,
    KEY,
    MEDIA,
    OPAQUE,
    PLACE,
    Field,
    Samples,
    fields_of,
    share,
)
from toolkit.storage.service_map.draft.vocabulary import (
    COLUMN_WORDS,
    FAMILIES,
    TABLE_WORDS,
    WEIGHTS,
    tokens,
    words,
)

_MOMENTS: Final = ("created_at", "completed_at", "requested_at", "expires_at")
_SHARED: Final = ({"file_format", "type"}, {"file_name", "object_key"})
"""Columns that may come from one field."""

GOOD: Final = 0.35
"""The lowest score at which a field is taken for a column."""


@dataclass(frozen=True)
class Match:
    """The table of a relation and the fields found for its columns."""

    table: CatalogTable
    fields: Mapping[str, Field]
    score: float
    rivals: tuple[CatalogTable, ...] = ()
    """Other tables that fit nearly as well."""
    is_named: bool = False
    """True if files, or for clients the sales, name this table by a key, and no rival."""


def match_tables(tables: Collection[CatalogTable], samples: Samples) -> dict[str, Match]:
    """Return the best table for each relation; address columns may stand in the table of the clients."""
    found: dict[str, Match] = {}
    for relation, match in _ranked(tables, samples):
        taken = {other: each.table.name for other, each in found.items()}
        if relation in found:
            continue
        alone = {other for other, name in taken.items() if name == match.table.name}
        if not alone or alone | {relation} in ({"clients", "addresses"}, {"sales", "addresses"}):
            found[relation] = match
    for match in (match for relation, match in _ranked(tables, samples) if relation == "sales"):
        if "sales" not in found and "sale" in tokens(match.table.says):  # with its client in one row
            found["sales"] = match
    clients, addresses = found.get("clients"), found.get("addresses")
    if clients and addresses and clients.table is addresses.table:  # the number of the house is no client's
        own = {column: field for column, field in clients.fields.items() if field not in addresses.fields.values()}
        found["clients"] = replace(clients, fields=own)
    return found


def _ranked(tables: Collection[CatalogTable], samples: Samples) -> list[tuple[str, Match]]:
    """Return what fits a relation, the best first; of tables that fit alike the one that other rows name."""
    fitting = {
        relation: [
            match
            for table in tables
            if not any(_stands_for(other, table, samples) for other in samples.alike(table))
            and not any(_is_copied(other, table) for other in tables)
            if (match := matched(relation, table, samples)).score >= _FITS
        ]
        for relation in TABLE_WORDS
    }
    fitting["sales"] = [match for match in fitting["sales"] if not _stands_beside(match, fitting["sales"])]
    naming = fitting["evidences"]
    for relation in ("sales", "clients"):
        named = {reference.table for match in naming for reference in match.table.references}
        fitting[relation] = [_among(match, fitting[relation], named, samples) for match in fitting[relation]]
        naming = sorted(fitting[relation], key=lambda match: -match.score)[:1]
    ranked = [(relation, match) for relation, matches in fitting.items() for match in matches]
    return sorted(ranked, key=lambda each: -each[1].score)


def _among(match: Match, others: list[Match], named: Collection[str], samples: Samples) -> Match:
    """Return the match with its rivals, and a higher score where its table is named by a key."""
    alike = [match.table, *samples.alike(match.table)]
    rivals = [
        other.table
        for other in others
        if other.table not in alike
        and other.table.kind == match.table.kind
        and abs(other.score - match.score) < _NEAR
    ]
    is_named = match.table.name in named
    alone = is_named and not any(rival.name in named for rival in rivals)
    return replace(match, rivals=tuple(rivals), is_named=alone, score=match.score + _NEAR * is_named)


def _stands_beside(match: Match, others: list[Match]) -> bool:
    """Tell whether a key joins a table without the name of sales to one of that name: its lines, or its place."""
    named = [other.table for other in others if _named_for("sales", other.table) == _BY_NAME]
    ways = [(one, other) for table in named for one, other in ((table, match.table), (match.table, table))]
    joined = any(reference.table == other.name for one, other in ways for reference in one.references)
    return joined and match.table not in named


_FITS: Final = 2
_NEAR: Final = 1
"""The difference in scores up to which two tables may both be meant."""


def _stands_for(one: CatalogTable, other: CatalogTable, samples: Samples) -> bool:
    """Tell whether the first of two tables built alike and named alike, in two schemas, is the one to look at."""
    return one.plain_name == other.plain_name and samples.weight(one) > samples.weight(other)


def _is_copied(one: CatalogTable, other: CatalogTable) -> bool:
    """Tell whether each change of rows of the first table is kept in the second: with more columns, and no key."""
    key = next((column.name for column in one.columns.values() if column.key), None)
    named_alike = set(words(one.plain_name)) & set(words(other.plain_name))
    if key is None or other.kind == QUERY or not named_alike or not one.columns.keys() < other.columns.keys():
        return False
    return not (other.columns[key].key or other.columns[key].unique)


def matched(relation: str, table: CatalogTable, samples: Samples) -> Match:
    """Return the best field of a table for each column of a relation."""
    fields = list(fields_of(table, samples))
    scores = {
        (column, field): fits
        for column in COLUMN_WORDS[relation]
        for field in fields
        if (fits := score(relation, column, field, samples)) >= GOOD
    }
    chosen: dict[str, Field] = {}
    for column, field in sorted(scores, key=lambda pair: -scores[pair]):
        users = {other for other, taken in chosen.items() if taken == field}
        if column not in chosen and all({column, other} in _SHARED for other in users):
            chosen[column] = field
    total = sum(WEIGHTS[relation].get(column, 0.3) * scores[column, field] for column, field in chosen.items())
    return Match(table, chosen, total + _named_for(relation, table) + _belonging(relation, table))


def _belonging(relation: str, table: CatalogTable) -> float:
    """Tell how likely a table holds a relation's rows: evidence names its sale, and a view repeats its tables."""
    named = relation == "evidences" and any("sale" in tokens(column) for column in table.columns)
    return 3.0 * named - (1.0 if table.kind in "vmq" else 0.0)


def _named_for(relation: str, table: CatalogTable) -> float:
    sure, perhaps = TABLE_WORDS[relation]
    said = tokens(table.says)
    if not said:
        return 0
    described = said[0] in {"type", "status"}  # as in tipo_documento
    if said[-1] in sure and not (described or (relation == "clients" and "payer" in said)):
        return _BY_NAME
    if described or said[-1] in _DESCRIPTIONS or (relation == "clients" and "payer" in said):
        return -2.5
    if said[-1] in perhaps:
        return 1.5
    return 0.5 if set(said) & sure else -0.5


_BY_NAME: Final = 2.5
_DESCRIPTIONS: Final = {"group", "dealership", "tariff", "type", "status", "partner"}
"""Tokens that name tables of what a sale or a record refers to."""

_OWN: Final = {"clients": "client", "addresses": "address", "sales": "sale", "evidences": "evidence"}
"""The token that a column of the relation may carry without saying more."""


def named(relation: str, column: str, field: Field) -> float:
    """Return how well the name of a field fits a column, from 0 to 1."""
    inside = {token for part in field.path for token in tokens(part)}
    spelled = [set(tokens(field.says)), inside, inside | set(tokens(field.column.name))]
    if relation == "addresses" and spelled[0] == {"number"} and "installation" in tokens(field.table.says):
        spelled[0].add("installation")
    return max(_fits(relation, column, said) for said in spelled if said) if any(spelled) else 0.0


def _fits(relation: str, column: str, said: set[str]) -> float:
    own = {_OWN[relation]}
    best = 0.0
    for place, pattern in enumerate(COLUMN_WORDS[relation][column]):
        wanted = set(pattern.split())
        if not (wanted <= said or (wanted - own and wanted - own <= said)):
            continue
        extra = said - wanted - own - {"flag", "code", "at"}
        best = max(best, (1 - 0.03 * place) / (1 + 0.5 * len(extra)))
    return best


def score(relation: str, column: str, field: Field, samples: Samples) -> float:
    """Return how well a field fits a column, by its type, its name and its values."""
    if field.family not in FAMILIES.get(column, ("text", "enum")):
        return 0
    if field.table.reference(field.column.name) is not None and not field.path:
        return 0  # a reference says which row, not what stands in it
    if column in _MOMENTS and "planned" in tokens(field.says):
        return 0  # a day that was meant, not one on which something was done
    spelled = named(relation, column, field)
    looks = _looks(column, field, samples)
    if looks is None or (not spelled and looks < _SURE):
        return spelled
    return max(0.0, spelled + looks)


_SURE: Final = 0.8
"""The certainty from which on values alone decide about a column whose name says nothing."""


def _looks(column: str, field: Field, samples: Samples) -> float | None:
    """Return how well the values fit the column, from -1 to 1; ``None`` where they tell nothing."""
    if column in _MOMENTS:
        return _as_moment(field, samples)
    if column not in _SEEN:
        return None
    if field.family == "boolean":
        return 0.3 if column == "is_client_financial_responsible" else -1
    values = samples.values(field)
    if not values:
        return _EMPTY if column == "object_key" else None
    if column == "cpf":
        if field.family != "text":
            values = [value.zfill(11) if len(value) > 8 else value for value in values]  # without zeros in front
        return 0.8 if share(values, CPF) > 0.8 else -1
    if column in codes.MEANINGS:
        if "status" in tokens(field.says):
            return -1
        _, unknown = codes.decoded(column, values, field.column.comment)
        known = len(values) - len(unknown)
        enough = known / len(values) > 0.5 and (column == "evidence_type" or len(values) <= 12)
        looks_coded = field.column.labels or all(len(value) <= 12 for value in values)
        return 0.8 if enough else 0.0 if looks_coded and not _is_media(values) else -1
    if column in {"file_format", "type"}:
        return 0.6 if _is_media(values) else -1
    if column == "object_key":
        if share(values, KEY) > _MOST:
            return 1.0  # a folder, a name and an ending, whatever the column is called
        if share(values, PLACE) > _MOST and not _is_media(values):
            return 0.3 + 0.3 * any("/" in value for value in values)
        return 0.3 if "key" in tokens(field.says) and share(values, OPAQUE) > _MOST else -1
    if column in _NUMBERED:
        return 0.0 if share(values, _DIGITS) > _MOST else -1
    if column == "file_name":
        return 0.4 if share(values, FILE) > 0.8 else -0.5
    if field.family != "text" and {"id", "uuid"} & set(tokens(field.says)) and "0" not in values:
        return -1  # a key of another row
    if codes.flags(values):
        return 0.4
    understood = sum(codes.payer(value) is not None for value in values)
    coded = field.column.labels or all(len(value) <= _CODE for value in values)
    return 0.2 if understood >= len(values) / 2 else -0.2 if coded and len(values) <= _FEW else -1


_MOST: Final = 0.8
_EMPTY: Final = -0.2
"""The judgement of a column without values, which is taken where no other one has any."""
_CODE: Final = 3
_FEW: Final = 6
_NUMBERED: Final = {"number_on_dealership", "enrollment", "installation_number"}
_DIGITS: Final = re.compile(".*[0-9].*")
_SEEN: Final = {
    *_NUMBERED,
    *("cpf", "utility_group", "evidence_type", "file_format", "type", "object_key", "file_name"),
    "is_client_financial_responsible",
}
"""The columns about which values say something."""


def _as_moment(field: Field, samples: Samples) -> float | None:
    """Judge a number, which has to count the seconds or milliseconds since 1970, and a text, which is no flag."""
    values = samples.values(field) if field.family in {"integer", "number", "text"} else []
    if field.family in {"integer", "number"}:
        counted = [value for value in values if value != "0"]
        return 0.0 if 1 in (share(counted, EPOCH), share(counted, DAY)) else -1
    return -1 if codes.flags(values) else None


def _is_media(values: list[str]) -> bool:
    return max(share(values, MEDIA), share(values, ENDING)) > 0.5
