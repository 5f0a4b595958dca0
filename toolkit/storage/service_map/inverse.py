"""Invert a column of the mapping: SQL that gives the table's columns from a row of the contract's."""

import re
from collections.abc import Mapping
from itertools import count
from typing import Final

from toolkit.storage.service_map.catalog import CatalogTable, Column, Tables
from toolkit.storage.service_map.expressions import literal, quoted
from toolkit.storage.service_map.model import Source

NOTHING_TO_WRITE: Final = ("absent", "value", "media_type_of")
"""Forms of a source without a column of the table."""


class NotInvertible(Exception):
    """The column cannot be inverted; the text says why, as the end of a sentence."""


def assignments(source: Source, new: str, table: CatalogTable, timezone: str, tables: Tables) -> dict[str, str]:
    """Return the columns of the table with their values, where ``new`` is the value of the contract's column.

    Raises:
        NotInvertible: there is no way back.
    """
    if any(getattr(source, form) not in (None, False) for form in NOTHING_TO_WRITE):
        return {}
    if source.sql is not None:
        raise NotInvertible("is an SQL expression")
    if source.json_path:
        raise NotInvertible("stands inside a JSON column")
    if source.strip is not None or source.url:
        raise NotInvertible("is read from an address, or without its beginning")
    if source.date is not None and source.time is not None:
        if _known(table, source.date).family == "text":
            raise NotInvertible(f"is kept as a text in {source.date}")
        local = f"({new} AT TIME ZONE {literal(source.zone or timezone)})"
        return {source.date: f"{local}::date", source.time: f"{local}::time"}
    if source.folder is not None and source.name is not None:
        folder = f"coalesce(substring({new} FROM '^(.*)/[^/]*$'), '')"
        return {source.folder: folder, source.name: f"substring({new} FROM '[^/]*$')"}
    if source.table is not None:
        return {source.by or "": _looked_up(source, new, timezone, tables)}
    column = _known(table, source.column or "")
    return {column.name: _value(source, new, column, timezone)}


def _known(table: CatalogTable, name: str) -> Column:
    if name not in table.columns:
        raise NotInvertible(f"names {name}, which {table.name} does not have")
    return table.columns[name]


def _looked_up(source: Source, new: str, timezone: str, tables: Tables) -> str:
    other = tables(source.table or "")
    if other is None:
        raise NotInvertible("is looked up in a query")
    wanted = _known(other, source.column or "")
    value = _value(source, new, wanted, timezone)
    return (
        f"(SELECT {quoted(source.key or '')} FROM {source.table} "  # noqa: S608  # the mapping is the operator's own
        f"WHERE {quoted(wanted.name)} = {value})"
    )


def _value(source: Source, new: str, column: Column, timezone: str) -> str:
    """Return the value as the column takes it; a text that is too long for it is refused, not cut."""
    if source.codes:
        new = _encoded(new, source.codes)
    elif source.mask:
        new = _masked(new, source.mask)
    elif new.endswith("_at"):
        return _moment(new, column, source.zone or timezone)
    elif new.endswith("id") and column.family in {"integer", "number"} and not new.endswith("external_id"):
        # Only ids are UUIDs made of a number; a sale's id is a text.
        return f"trim(leading '0' FROM replace({new}::text, '-', ''))::{column.cast}"
    by_text = "::text" * (column.family in {"enum", "integer", "uuid"})
    return f"({new}){by_text}::{column.cast}"


def _moment(new: str, column: Column, zone: str) -> str:
    if column.family == "timestamptz":
        return new
    if column.family == "timestamp":
        return f"({new} AT TIME ZONE {literal(zone)})"
    raise NotInvertible(f"is kept as {column.type}, which is not a full time")


def _encoded(new: str, codes: Mapping[str, str | bool]) -> str:
    first = {meaning: code for code, meaning in reversed(list(codes.items()))}
    cases = " ".join(
        f"WHEN {literal(str(meaning).lower() if isinstance(meaning, bool) else meaning)} THEN {literal(code)}"
        for meaning, code in first.items()
    )
    return f"CASE {new}::text {cases} ELSE {new}::text END"


def _masked(new: str, mask: str) -> str:
    """Return the digits with the characters of the mask between them, where there are as many as it has places."""
    runs = re.split("(#+)", mask)
    digits = "".join(f"(.{{{len(run)}}})" for run in runs if "#" in run)
    places = count(1)
    written = "".join(f"\\{next(places)}" if "#" in run else run for run in runs)
    return f"regexp_replace({new}, {literal(f'^{digits}$')}, {literal(written)})"
