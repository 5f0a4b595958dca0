"""Find the rows that belong to a relation, and the values that a new row needs beyond the contract's."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from toolkit.storage.service_map.catalog import CatalogTable, Column
from toolkit.storage.service_map.draft import codes
from toolkit.storage.service_map.draft.choices import Choice
from toolkit.storage.service_map.draft.derived import ATTACHED_AS
from toolkit.storage.service_map.draft.history import end_of, histories_of, holds, later_version, tells_versions
from toolkit.storage.service_map.draft.references import KEY_WORDS, meanings_of, names_of_rows, references_of
from toolkit.storage.service_map.draft.samples import Field, Samples, fields_of
from toolkit.storage.service_map.draft.times import no_moment
from toolkit.storage.service_map.draft.vocabulary import LISTS, tokens, words
from toolkit.storage.service_map.expressions import THIS, literal, quoted
from toolkit.storage.service_map.model import TODO

if TYPE_CHECKING:
    from toolkit.storage.service_map.draft.times import Zones

_CODED: Final = {"text", "enum", "integer", "number", "uuid", "bit"}
_ENDED: Final = {
    "clients": {"deleted"},
    "addresses": {"deleted"},
    "sales": {"deleted", "cancelled"},
    "evidences": {"deleted", "cancelled"},
}
_MAY_TELL: Final = {"status", "flag", "deleted", "cancelled", "active", "approved", "test", "draft"}
_TELL: Final = {"approved", "test", "draft", "active"}
"""Tokens of columns that tell rows which count from others, although nobody knows which of their values."""
_JUDGE: Final = {"deleted", "cancelled", "approved", "faulty"}
"""Tokens of tables whose rows say that rows of other tables do not count."""
_NOTHING: Final = "^([0[:punct:][:space:]]*|n|nao|não|no|f|false|n/?a|null|none|nulo|nenhuma?)$"
"""The pattern of a text that says no, or that no day or reason is given."""


def rows_that_belong(
    name: str, table: CatalogTable, samples: Samples, others: Collection[str] = ()
) -> Choice | None:
    """Return the condition that leaves out what the service has deleted or cancelled.

    ``others`` are tables whose rows have histories of their own.
    """
    conditions, reasons = [], []
    for found in fields_of(table, samples):
        condition = _not_ended(name, found, samples)
        if condition:
            conditions.append(condition)
            reasons.append(found.name)
    for past in histories_of(table, samples, others) if name in {"sales", "evidences"} else ():
        if ended := past.states(_ENDED[name]):
            conditions.append(past.not_last(ended))
            reasons.append(f"the last row of {past.field.table.name}")
    if not conditions:
        return None
    return Choice(" AND ".join(conditions), f"left out by {', '.join(reasons)}: deleted or cancelled", review=True)


def _not_ended(name: str, found: Field, samples: Samples) -> str | None:
    said, column = set(tokens(found.says)), f"{THIS}.{quoted(found.column.name)}"
    to_itself = found.table.reference(found.column.name)
    if said & _ENDED[name] and to_itself is not None and to_itself.table == found.table.name:
        return f"{column} IS NULL"
    if said & {"version"} and (later := later_version(found)):
        return f"NOT EXISTS ({later})"
    if (end := end_of(found)) is not None:
        now = holds(end[0])
        repeated = [each for each in names_of_rows(found.table) if samples.repeats(Field(found.table, each))]
        if end[1] in found.table.whole_key or any(
            not samples.repeats(Field(found.table, each), now) for each in repeated
        ):
            return now
    if said & _ENDED[name] and not said & {"by", "user"}:
        if found.family in {"timestamptz", "timestamp", "date"}:
            return no_moment(found, samples) or f"{column} IS NULL"
        if found.family == "boolean":
            return f"{column} IS NOT TRUE"
        if found.family in _CODED:
            yes = _spelled(samples.values(found), True)
            return f"coalesce({found.expression}, '') " + (f"NOT IN ({yes})" if yes else f"~* {literal(_NOTHING)}")
    if name == "evidences" and "active" in said:
        if found.family == "boolean":
            return f"{column} IS NOT FALSE"
        if no := _spelled(samples.values(found), False):
            return f"coalesce({found.expression}, '') NOT IN ({no})"
    if "status" in said and name in {"sales", "evidences"} and found.family in _CODED:
        ended = [
            value
            for value, meaning in meanings_of(found, samples).items()
            if set(tokens(meaning.partition(":")[0])) & _ENDED[name]  # where it is a sentence, the first word
        ]
        if ended:
            return f"coalesce({found.expression}, '') NOT IN ({', '.join(map(literal, ended))})"
    return None


def _spelled(values: Iterable[str], meaning: bool) -> str:
    """Return how a flag spells one of its meanings, as a list in SQL; empty where the values are no flag's."""
    return ", ".join(literal(value) for value, said in codes.flags(values).items() if said is meaning)


def settled(
    name: str,
    table: CatalogTable,
    where: Choice | None,
    unused: Collection[str],
    samples: Samples,
    others: Collection[str] = (),
) -> tuple[Choice | None, str]:
    """Return the condition with a place for what a person has to say, and a note on what else may be said.

    Looked at are the columns and histories that may tell rows that do not count, although nothing uses them.
    """
    if name not in {"sales", "evidences"}:
        return where, ""
    told, asked = [], False
    for field in fields_of(table, samples):
        column, said = field.column, set(tokens(field.says))
        used = column.name not in unused and not field.path
        if used and not said & {"status", "version"}:
            continue
        moment = field.family in {"timestamptz", "timestamp"} and not column.required
        values = samples.values(field) if field.family in _CODED | {"boolean"} else []
        tells = bool(said & (_MAY_TELL | {"version"})) or (len(values) > 1 and bool(codes.flags(values)))
        end = end_of(field)
        former = end is not None and "true" in samples.texts(table, f"({end[0]}::timestamptz <= now())::text")
        coded = field.family in {"boolean", "enum"}
        of_sales = name == "sales" and "type" in said and said <= _OF_SALES
        kinds = len(values) > 1 and (of_sales or column.name == ATTACHED_AS)
        if said & {"updated", "requested", "by"} or not (coded or moment or tells or former or kinds):
            continue
        if field.path and not said & _MAY_TELL:
            continue
        meant = meanings_of(field, samples) if "status" in said and len(values) > 1 else {}
        states = [meant[value.rstrip()] for value in values if value.rstrip() in meant]
        unsure = any(_UNSURE & set(tokens(state)) for state in states)
        opaque = bool(states) and all(map(_OPAQUE.fullmatch, states))
        published = moment and "draft" in said and samples.values(field) != [] and samples.lacks(field)
        version = "version" in said and not later_version(field) and tells_versions(field, samples)
        asks = (
            former or unsure or opaque or published or version or kinds or (len(values) > 1 and bool(said & _TELL))
        )
        if asks or not used:
            shown = len(values) <= _CODES and all(len(value) <= _CODE_LENGTH for value in values)
            means = holds(end[0]) if former and end else ", ".join(values) if shown else ""
            told.append(f"{field.name} ({means})" if means else field.name)
        asked |= asks
    for past in histories_of(table, samples, others):
        if not past.states(_ENDED[name]):
            told.append(f"{past.field.table.name} ({', '.join(past.meanings)})")
    for judging in _judging(table, samples):
        told.append(f"the rows of {judging}")
        asked = True
    if not asked:
        return where, f"rows that do not count may be told by {', '.join(told)};" if told else ""
    if where is not None and where.open:
        return replace(where, why=f"{where.why}; others may not, by {', '.join(told)}"), ""
    known = "" if where is None else f"{where.source} AND "
    return Choice(known + TODO, f"which rows count? some may not, by {', '.join(told)}; true for all"), ""


def _judging(table: CatalogTable, samples: Samples) -> Iterator[str]:
    """Yield the tables whose rows delete, cancel, approve or reject rows of this one, which they name."""
    for other in samples.catalog.values():
        read = other is table or other.kind not in "rp" or not other.readable
        if read or not set(tokens(other.says)) & _JUDGE or set(tokens(other.says)) & {"history"}:
            continue
        names = {words(each) for each in (table.plain_name, table.plain_name.removesuffix("s"))}
        kinds = (Field(other, column) for column in other.columns.values() if column.family in {"text", "enum"})
        by_key = any(each.table == table.name for each in references_of(other, samples))
        by_kind = any(words(value) in names for kind in kinds for value in samples.values(kind))
        if (by_key or by_kind) and samples.texts(other, "true::text"):
            yield other.name


def tenants(table: CatalogTable, samples: Samples) -> str:
    """Return the column that tells tenants apart, with their number; empty where one has all."""
    for column in table.columns.values():
        if LISTS["tenant"] & set(words(column.name)) and set(tokens(column.says)) & KEY_WORDS:
            count = len(samples.values(Field(table, column)))
            if count > 1:
                return f"{column.name} ({count} values)"
    return ""


_OF_SALES: Final = {"sale", "type", "id", "code"}
"""The tokens of a column that tells kinds of sales apart, or sales from what else their table holds."""
_CODES: Final = 12
_CODE_LENGTH: Final = 24
_UNSURE: Final = {"test", "faulty"}
_OPAQUE: Final = re.compile(r"[0-9]+|\w{1,2}")
"""The pattern of a code that says nothing by itself."""


def values_for_new_rows(rest: Iterable[Column], zones: Zones) -> tuple[dict[str, str], dict[str, str]]:
    """Return SQL for columns that nothing else fills and that must have a value, in a new and in a changed row."""
    insert: dict[str, str] = {}
    update: dict[str, str] = {}
    for column in rest:
        said = set(tokens(column.says))
        now = _NOW.get(column.family, "").format(zone=zones.zone)
        if "updated" in said and now:
            update[column.name] = now
        if not column.required or column.filled:
            continue
        if now and said & {"updated", "created", "date", "at"}:
            insert[column.name] = now
        elif column.family == "boolean" and said & {"active", "deleted", "cancelled"}:
            insert[column.name] = "true" if "active" in said else "false"
        elif "status" in said:
            stated = codes.stated(column.comment)
            first = next((code for code, meaning in stated.items() if "active" in tokens(meaning)), None)
            if first is not None:
                insert[column.name] = literal(first)
    return insert, update


_NOW: Final = {"timestamptz": "now()", "timestamp": "now() AT TIME ZONE '{zone}'", "date": "CURRENT_DATE"}
