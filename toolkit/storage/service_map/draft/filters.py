"""Find the rows that belong to a relation, and the values that a new row needs beyond the contract's."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final

from toolkit.storage.service_map.catalog import CatalogTable, Column
from toolkit.storage.service_map.draft import codes
from toolkit.storage.service_map.draft.choices import Choice
from toolkit.storage.service_map.draft.history import histories_of
from toolkit.storage.service_map.draft.references import KEY_WORDS, meanings_of
from toolkit.storage.service_map.draft.samples import Field, Samples
from toolkit.storage.service_map.draft.vocabulary import NO, YES, tokens, words
from toolkit.storage.service_map.expressions import THIS, literal, quoted

if TYPE_CHECKING:
    from toolkit.storage.service_map.draft.times import Zones

_CODED: Final = {"text", "enum", "integer", "number", "uuid"}
_MAY_TELL: Final = {"status", "flag", "deleted", "cancelled", "active"}
_ENDED: Final = {
    "clients": {"deleted"},
    "addresses": {"deleted"},
    "sales": {"deleted", "cancelled"},
    "evidences": {"deleted", "cancelled"},
}


def rows_that_belong(
    name: str, table: CatalogTable, samples: Samples, others: Collection[str] = ()
) -> Choice | None:
    """Return the condition that leaves out what the service has deleted or cancelled.

    ``others`` are tables whose rows have histories of their own.
    """
    conditions, reasons = [], []
    for column in table.columns.values():
        condition = _not_ended(name, Field(table, column), samples)
        if condition:
            conditions.append(condition)
            reasons.append(column.name)
    for past in histories_of(table, samples, others) if name in {"sales", "evidences"} else ():
        if ended := past.states(_ENDED[name]):
            conditions.append(past.not_last(ended))
            reasons.append(f"the last row of {past.field.table.name}")
    if not conditions:
        return None
    return Choice(" AND ".join(conditions), f"left out by {', '.join(reasons)}: deleted or cancelled", review=True)


def _not_ended(name: str, found: Field, samples: Samples) -> str | None:
    said, column = set(tokens(found.name)), f"{THIS}.{quoted(found.column.name)}"
    to_itself = found.table.reference(found.column.name)
    if said & _ENDED[name] and to_itself is not None and to_itself.table == found.table.name:
        return f"{column} IS NULL"
    if said & _ENDED[name] and not said & {"by", "user"}:
        if found.family in {"timestamptz", "timestamp", "date"}:
            return f"{column} IS NULL"
        if found.family == "boolean":
            return f"{column} IS NOT TRUE"
        yes = _spelled(samples.values(found), YES)
        if yes is not None and found.family in {"text", "integer", "number"}:
            return f"coalesce({column}::text, '') <> {literal(yes)}"
    if name == "evidences" and "active" in said:
        if found.family == "boolean":
            return f"{column} IS NOT FALSE"
        no = _spelled(samples.values(found), NO)
        if no is not None:
            return f"coalesce({column}::text, '') <> {literal(no)}"
    if "status" in said and name in {"sales", "evidences"} and found.family in _CODED:
        ended = [
            value
            for value, meaning in meanings_of(found, samples).items()
            if set(tokens(meaning.partition(":")[0])) & _ENDED[name]  # where it is a sentence, the first word
        ]
        if ended:
            return f"coalesce({column}::text, '') NOT IN ({', '.join(map(literal, ended))})"
    return None


def _spelled(values: Iterable[str], meaning: set[str]) -> str | None:
    """Return how a flag of two values spells this one; by the usual pairs where no row has it yet."""
    seen = [value.strip() for value in values]
    if not codes.are_flags(seen):
        return None
    for value in seen:
        if value.lower() in meaning:
            return value
    pairs = (
        {"S": "N", "Y": "N", "1": "0", "T": "F", "true": "false"}
        if meaning is NO
        else {"N": "S", "0": "1", "F": "T", "false": "true"}
    )
    return next((pairs[value] for value in seen if value in pairs), None)


def undecided(
    name: str, table: CatalogTable, unused: Iterable[str], samples: Samples, others: Collection[str] = ()
) -> str:
    """Return the unused columns and histories that may say that a row does not count, with their codes."""
    if name not in {"sales", "evidences"}:
        return ""
    found = []
    for column in (table.columns[each] for each in unused):
        said, field = set(tokens(column.name)), Field(table, column)
        moment = column.family in {"timestamptz", "timestamp"} and not column.required
        values = samples.values(field) if column.family in {"text", "integer", "number", "enum"} else []
        tells = bool(said & _MAY_TELL) or (len(values) > 1 and codes.are_flags(values))
        if said & {"updated", "requested", "by"} or not (column.family in {"boolean", "enum"} or moment or tells):
            continue
        shown = len(values) <= _CODES and all(len(value) <= _CODE_LENGTH for value in values)
        found.append(f"{column.name} ({', '.join(values)})" if values and shown else column.name)
    for past in histories_of(table, samples, others):
        if not past.states(_ENDED[name]):
            found.append(f"{past.field.table.name} ({', '.join(past.meanings)})")
    return ", ".join(found)


def tenants(table: CatalogTable, samples: Samples) -> str:
    """Return the column that tells tenants apart, with their number; empty where one has all."""
    for column in table.columns.values():
        if _TENANT & set(words(column.name)) and set(tokens(column.name)) & KEY_WORDS:
            count = len(samples.values(Field(table, column)))
            if count > 1:
                return f"{column.name} ({count} values)"
    return ""


_TENANT: Final = {"tenant", "company", "empresa", "organization", "organizacao", "workspace", "account", "filial"}
_CODES: Final = 12
_CODE_LENGTH: Final = 24


def values_for_new_rows(rest: Iterable[Column], zones: Zones) -> tuple[dict[str, str], dict[str, str]]:
    """Return SQL for columns that nothing else fills and that must have a value, in a new and in a changed row."""
    insert: dict[str, str] = {}
    update: dict[str, str] = {}
    for column in rest:
        said = set(tokens(column.name))
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
