"""Types and sales that no column tells by itself: two columns together do, or a part of the file's key or name."""

from collections.abc import Iterator
from itertools import combinations
from typing import Final

from toolkit.storage.service_map.catalog import CatalogTable
from toolkit.storage.service_map.draft import codes
from toolkit.storage.service_map.draft.choices import Choice
from toolkit.storage.service_map.draft.matching import Match
from toolkit.storage.service_map.draft.references import meanings_of
from toolkit.storage.service_map.draft.samples import Field, Samples
from toolkit.storage.service_map.draft.vocabulary import PAYER, tokens
from toolkit.storage.service_map.expressions import quoted
from toolkit.storage.service_map.model import TODO

_CODED: Final = {"text", "enum", "integer", "number"}
_FEW: Final = 12
_OF_OTHERS: Final = {"by", "user", "sent", "requested", "status"}
"""Tokens of columns that tell who sent a file, or what became of it."""
_PARTS: Final = 6
"""The parts of a key that are looked at, from its beginning."""
_LAST_WORD: Final = "'([A-Za-z][A-Za-z_-]*)[^A-Za-z./]*[.][^./]*$'"
_FIRST_WORD: Final = "'([A-Za-z][A-Za-z_-]*)[^/]*$'"
"""The patterns of a file's name that find the word before its ending and the one at its beginning."""


def composed_type(match: Match, samples: Samples) -> Choice | None:
    """Return the type of a record by two of its columns, or by a part of its key or name; all values must tell."""
    for one, two in combinations(_coded(match.table, samples), 2):
        texts = [f"coalesce({each.expression}, '')" for each, _ in (one, two)]
        sql = f"{texts[0]} || '/' || {texts[1]}"
        told = {f"{code}/{other}": (said, also) for code, said in one[1].items() for other, also in two[1].items()}
        parts = {
            value: told.get(value, ("", "")) for each in samples.texts(match.table, sql) for value in [each or ""]
        }
        known = {value: kind for value, both in parts.items() if (kind := codes.evidence_type(" ".join(both)))}
        alone = (
            all(codes.evidence_type(both[place]) == known.get(value) for value, both in parts.items())
            for place in (0, 1)
        )
        if len(known) == len(parts) and len(set(known.values())) >= _KINDS and not any(alone):
            names = f"{one[0].name} and {two[0].name}"
            return Choice({"sql": sql, "codes": known}, f"by {names} together: {', '.join(known)}", review=True)
    for sql in _parts_of_files(match):
        values = [value or "" for value in samples.texts(match.table, sql)]
        known, unknown = codes.decoded("evidence_type", values, "")
        if not unknown and len(values) >= _KINDS:
            kinds = {value: known.get(value, value) for value in values}
            if (coded := _codes_by_files(match, sql, kinds, samples)) is not None:
                return None if coded.open else coded
            source = {"sql": sql} | ({"codes": known} if known else {})
            return Choice(source, f"by a part of its key or name: {', '.join(values)}", review=True)
    return None


def _codes_by_files(match: Match, sql: str, kinds: dict[str, str], samples: Samples) -> Choice | None:
    """Return what the codes of a column mean by the names of their files; open where these do not agree."""
    field = match.fields.get("evidence_type")
    values = [] if field is None else samples.values(field)
    if field is None or len(values) < len(set(kinds.values())):
        return None  # too few codes for these types
    pairs = samples.texts(match.table, f"{sql} || '/' || {field.expression}")
    named = {(code, kinds.get(part)) for part, _, code in (each.partition("/") for each in pairs if each)}
    meant = dict(sorted(named)) if len(named) == len(values) else dict.fromkeys(values, TODO)
    return Choice({**field.members, "codes": meant}, "by the names of their files", review=True)


def named_in_key(match: Match, other: CatalogTable, shown: Field, key: str, samples: Samples) -> Choice | None:
    """Return the sale that a part of the file's key names, if it does so in every row.

    ``shown`` is what the sale is called by, and ``key`` the column that rows of its service name it by.
    """
    for sql in _parts_of_files(match):
        for column in dict.fromkeys((shown.of("other"), f"other.{quoted(key)}::text")):
            of = f"FROM {other.name} AS other WHERE {column} = {sql}"
            if samples.texts(match.table, f"EXISTS (SELECT {of})::text") == ["true"]:
                same = column == shown.of("other")
                named = sql if same else f"(SELECT {shown.of('other')} {of})"
                return Choice({"sql": named}, "by a part of the key of its file", review=True)
    return None


def _coded(table: CatalogTable, samples: Samples) -> Iterator[tuple[Field, dict[str, str]]]:
    """Yield the columns with few values, each with what its values mean; no value means nothing."""
    for column in table.columns.values():
        field, said = Field(table, column), set(tokens(column.says))
        if column.family == "boolean" and said & PAYER:
            yield field, {"true": column.says, "false": "client", "": ""}
        elif column.family in _CODED and not (column.key or column.unique or said & _OF_OTHERS):
            values = samples.values(field)
            if 0 < len(values) <= _FEW:
                yield field, meanings_of(field, samples) | {"": ""}


def _parts_of_files(match: Match) -> Iterator[str]:
    """Yield SQL for the parts of a file's key, and for words of its name."""
    for name in ("object_key", "file_name"):
        if (field := match.fields.get(name)) is not None:
            yield from (f"split_part({field.expression}, '/', {place})" for place in range(1, _PARTS + 1))
            yield from (f"substring({field.expression} FROM {word})" for word in (_LAST_WORD, _FIRST_WORD))


_KINDS: Final = 2
"""The fewest types that records have to be told apart by."""
