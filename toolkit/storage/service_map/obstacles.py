"""Tell what stands in the way of writing a relation to the service's table."""

from typing import Final

from toolkit.storage.service_map.catalog import CatalogTable, Tables
from toolkit.storage.service_map.inverse import NotInvertible, assignments
from toolkit.storage.service_map.model import ServiceMap

INSERT: Final = "insert"
UPDATE: Final = "update"
COMPLETE: Final = "complete"
"""Setting ``completed_at`` alone."""

IN_ONE_ROW: Final = {"clients": "addresses", "addresses": "clients"}
"""The relations that may stand in one row, each with the other."""

_UUID_LENGTH: Final = 36


def obstacles(mapping: ServiceMap, name: str, tables: Tables) -> dict[str, str]:
    """Return the obstacles to each kind of writing, as sentences; none where it can be done."""
    relation, works = mapping.relations[name], (INSERT, UPDATE, COMPLETE)
    if mapping.read_only:
        return dict.fromkeys(
            works, f"The service's data are read only: so says read_only in the mapping ({name})."
        )
    table = None if relation.is_query or relation.absent else tables(relation.from_)
    if table is None or table.kind not in "rp":
        is_foreign = table is not None and table.kind == "f"  # what is rolled back here may stay there
        kind = "a table of another database" if is_foreign else "no table"
        read = f"it is read from {'a query' if relation.is_query else relation.from_}, which is {kind}"
        why = "the service has no such table" if relation.absent else read
        return dict.fromkeys(works, f"{name} cannot be written: {why}.")
    sharing = [
        other for other, each in mapping.relations.items() if other != name and each.from_ == relation.from_
    ]
    given, refused = given_values(mapping, name, table, tables)
    inserted = {**given, **relation.insert}
    if mapping.has_one_row_for_both and name in IN_ONE_ROW:
        theirs, also = given_values(mapping, IN_ONE_ROW[name], table, tables)
        inserted |= {**theirs, **mapping.relations[IN_ONE_ROW[name]].insert}
        refused, sharing = {**also, **refused}, []
    found = {}
    lacking = [
        column.name
        for column in table.columns.values()
        if column.required and not column.filled and column.name not in inserted
    ]
    key = table.columns.get(relation.columns["id"].column or "")
    if key is not None and name != "sales":
        if key.family in {"integer", "number"} and key.sequence is None:
            refused = {**refused, "id": f"is {key.name}, a number that no sequence gives"}
        if key.family == "text" and (key.length or _UUID_LENGTH) < _UUID_LENGTH:
            refused = {**refused, "id": f"is {key.name}, which takes {key.length} characters and no UUID"}
    if refused:
        column, why = next(iter(refused.items()))
        found[INSERT] = found[UPDATE] = f"{name} cannot be written: {column} {why}, which cannot be turned round."
        if "completed_at" in refused:
            found[COMPLETE] = f"{name} cannot be written: completed_at {refused['completed_at']}."
    if sharing and INSERT not in found:
        theirs, _ = given_values(mapping, sharing[0], table, tables)
        other = next((column for column in theirs if column not in given), table.name)
        found[INSERT] = (
            f"{name} cannot be written: a row of {table.name} also holds {' and '.join(sharing)}, such as "
            f"{other}, and they are written one after the other."
        )
    elif lacking and INSERT not in found:
        found[INSERT] = (
            f"{name} cannot be written: {table.name}.{lacking[0]} must have a value, and the mapping gives none; "
            f"add it to insert of [{name}]."
        )
    if name == "sales" and relation.columns["completed_at"].absent:
        found[COMPLETE] = "sales cannot be completed: completed_at is absent from the service."
    return found


def every_obstacle(mapping: ServiceMap, tables: Tables) -> dict[str, str]:
    """Return the obstacles of all relations, by work as ``require_writable`` names it."""
    return {
        f"{name}.{work}": reason
        for name in mapping.relations
        for work, reason in obstacles(mapping, name, tables).items()
    }


def given_values(
    mapping: ServiceMap, name: str, table: CatalogTable, tables: Tables, row: str = "NEW"
) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    """Return each table column's value with the contract's column behind it, and those that cannot be inverted.

    The values are taken of ``row``, a record of the relation.
    """
    given: dict[str, tuple[str, str]] = {}
    refused: dict[str, str] = {}
    for column, source in mapping.relations[name].columns.items():
        try:
            for target, value in assignments(source, f"{row}.{column}", table, mapping.timezone, tables).items():
                if target not in given or column == "type":
                    given[target] = (column, value)
        except NotInvertible as reason:
            refused[column] = str(reason)
    return given, refused
