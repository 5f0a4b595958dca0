"""Find the rows of a mapped service that the audit could not read or would misread.

Rows are counted and up to three are named by their ids; no other value of a row is shown, except codes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

import psycopg
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from toolkit.domain.evidence import EvidenceType, UtilityGroup
from toolkit.storage.service_map.expressions import quoted
from toolkit.storage.service_map.model import DEMANDED, NEEDED, ServiceMap
from toolkit.storage.tables import SERVICE

_TRIED_KEYS: Final = 20


@dataclass(frozen=True)
class Deviation:
    """Something about the data that the audit cannot work with; ``column`` is the contract's.

    ``rows`` is ``None`` where nobody can count them, and ``column`` ``from`` where the whole relation is meant.
    """

    relation: str
    column: str
    problem: str
    rows: int | None
    examples: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The deviation in a line."""
        more = self.rows is not None and self.rows > len(self.examples)
        named = f" ({', '.join(self.examples)}{', ...' if more else ''})" if self.examples else ""
        counted = "" if self.rows is None else f"{self.rows} rows: "
        return f"{self.relation}.{self.column}: {counted}{self.problem}{named}"


def unreadable_values(connection: Connection, mapping: ServiceMap) -> tuple[dict[str, int], list[Deviation]]:
    """Return the rows of each relation, and the columns in which some value cannot be read."""
    counts: dict[str, int] = {}
    unreadable: list[Deviation] = []
    for name in mapping.relations:
        counts[name] = connection.execute(sa.text(f"SELECT count(*) FROM {SERVICE}.{name}")).scalar_one()  # noqa: S608
        for column in NEEDED[name].columns:
            is_text = isinstance(column.type, sa.Text)
            read = f"convert_to({column.name}, 'UTF8')" if is_text else column.name
            try:
                with connection.begin_nested():
                    connection.execute(sa.text(f"SELECT count({read}) FROM {SERVICE}.{name}"))  # noqa: S608
            except DBAPIError as error:
                if not isinstance(error.orig, psycopg.DataError):
                    raise
                kind = "text in UTF-8" if is_text else column.type.compile().lower()
                problem = f"some value is no {kind} [{error.orig.sqlstate}]"
                unreadable.append(Deviation(name, column.name, problem, counts[name]))
    return counts, unreadable


def deviations_of(
    connection: Connection, mapping: ServiceMap, holds: Callable[[str], bool] | None
) -> Iterator[Deviation]:
    """Yield what deviates in the values, all of which can be read."""
    for look in (_nulls, _repeated, _codes, _times, _orphans):
        yield from look(connection, mapping)
    if holds is not None:
        yield from _keys(connection, holds)


def _nulls(connection: Connection, mapping: ServiceMap) -> Iterator[Deviation]:
    """Yield rows without what the audit needs of them."""
    for name, relation in mapping.relations.items():
        for column in () if relation.absent else DEMANDED[name]:
            source = relation.columns[column]
            empty = "no value, or a code that means none" if source.codes else "no value"
            if column == "sale_id" and source.key and source.by and source.table and source.table[0] != "(":
                same = f"there.{quoted(source.key)} = this.{quoted(source.by)}"
                exists = f"EXISTS (SELECT FROM {source.table} AS there WHERE {same})"
                empty = f"no value, so that no audit can be made; to leave such rows out, add to where: {exists}"
            yield from _counted(connection, name, column, f"{column} IS NULL", empty)


def _repeated(connection: Connection, mapping: ServiceMap) -> Iterator[Deviation]:
    for name, column in (*((each, "id") for each in NEEDED), ("evidences", "object_key")):
        if mapping.relations[name].absent:
            continue
        query = f"""
            SELECT count(*), (array_agg(value ORDER BY value))[1:3]
            FROM (SELECT {column}::text AS value FROM {SERVICE}.{name} WHERE {column} IS NOT NULL
                  GROUP BY 1 HAVING count(*) > 1) AS repeated
        """  # noqa: S608  # names of our relations
        count, examples = connection.execute(sa.text(query)).one()
        if count:
            shown = tuple(examples) if column == "id" else ()
            yield Deviation(name, column, "the same value stands in more than one row", count, shown)


def _codes(connection: Connection, mapping: ServiceMap) -> Iterator[Deviation]:
    for name, column, known in (
        ("sales", "utility_group", list(UtilityGroup)),
        ("evidences", "evidence_type", list(EvidenceType)),
    ):
        if mapping.relations[name].absent:
            continue
        query = f"SELECT {column}, count(*) FROM {SERVICE}.{name} WHERE {column} <> ALL(:known) GROUP BY 1 ORDER BY 2 DESC, 1"  # noqa: S608, E501
        found = connection.execute(sa.text(query), {"known": [str(each) for each in known]}).all()
        if found:
            shown = ", ".join(repr(value) for value, _ in found[:5]) + (", ..." if len(found) > 5 else "")
            rows = sum(count for _, count in found)
            yield Deviation(name, column, f"the contract does not know {shown}; codes can say what it means", rows)


def _times(connection: Connection, mapping: ServiceMap) -> Iterator[Deviation]:
    for name in mapping.relations:
        for column in NEEDED[name].columns:
            if not isinstance(column.type, sa.DateTime) or not mapping.reads(name, column.name):
                continue
            yield from _counted(connection, name, column.name, f"NOT isfinite({column.name})", "an infinite time")
            if column.name == "expires_at":
                continue
            future = f"isfinite({column.name}) AND {column.name} > now() + interval '5 minutes'"
            yield from _counted(connection, name, column.name, future, "lies in the future: is its zone right?")
    if not mapping.sales.columns["completed_at"].absent:
        before = "completed_at < created_at"
        yield from _counted(
            connection, "sales", "completed_at", before, "lies before created_at: is its zone right?"
        )
    if not (mapping.sales.absent or mapping.evidences.absent):
        query = f"""
            SELECT count(*), count(*) FILTER (WHERE requested_at < sale.created_at)
            FROM {SERVICE}.evidences JOIN {SERVICE}.sales AS sale ON sale.id = sale_id
        """  # noqa: S608
        rows, early = connection.execute(sa.text(query)).one()
        if early > rows / 2:
            yield Deviation("evidences", "requested_at", "lies before its sale: are the zones right?", early)


def _orphans(connection: Connection, mapping: ServiceMap) -> Iterator[Deviation]:
    for name, column, other in (
        ("addresses", "client_id", "clients"),
        ("sales", "client_id", "clients"),
        ("evidences", "sale_id", "sales"),
    ):
        if not mapping.reads(name, column) or mapping.relations[other].absent:
            continue
        # As the audit compares, whatever the service does.
        as_it_is = ' COLLATE "C"' if column == "sale_id" else ""
        same = f"SELECT FROM {SERVICE}.{other} AS there WHERE there.id = {column}{as_it_is}"
        missing = f"{column} IS NOT NULL AND NOT EXISTS ({same})"
        yield from _counted(connection, name, column, missing, f"names none of the {other} that are read")


def _counted(connection: Connection, name: str, column: str, condition: str, problem: str) -> Iterator[Deviation]:
    query = f"SELECT count(*), (array_agg(id::text ORDER BY id))[1:3] FROM {SERVICE}.{name} WHERE {condition}"  # noqa: S608
    count, examples = connection.execute(sa.text(query)).one()
    if count:
        yield Deviation(name, column, problem, count, tuple(example for example in examples if example))


def _keys(connection: Connection, holds: Callable[[str], bool]) -> Iterator[Deviation]:
    """Compare the keys of the newest records with the objects in the bucket."""
    query = f"""
        SELECT id::text, object_key FROM {SERVICE}.evidences WHERE object_key IS NOT NULL
        ORDER BY requested_at DESC, id LIMIT {_TRIED_KEYS}
    """  # noqa: S608
    rows = connection.execute(sa.text(query)).all()
    lacking = [row for row in rows if not holds(row.object_key)]
    if rows and len(lacking) == len(rows):
        problem = f"none of the {len(rows)} newest lies in the bucket"
        yield Deviation("evidences", "object_key", problem, len(rows), tuple(row.id for row in rows[:3]))
    is_own = sa.text(f"SELECT EXISTS (SELECT FROM {SERVICE}.evidences WHERE object_key = :key)")  # noqa: S608
    for form, advice, written in _FORMS:
        others = {row.id: written(row.object_key) for row in lacking if written(row.object_key) != row.object_key}
        ids = [
            each
            for each, key in others.items()
            if key and holds(key) and not connection.scalar(is_own, {"key": key})
        ]
        if ids:
            problem = f"of the {len(rows)} newest, the bucket knows these {form} only: {advice}"
            yield Deviation("evidences", "object_key", problem, len(ids), tuple(ids[:3]))


_FORMS: Final[tuple[tuple[str, str, Callable[[str], str]], ...]] = (
    ("without the slash in front", 'strip = "/+"', lambda key: key.lstrip("/")),
    ("without the first folder", 'strip = "/*[^/]+/"', lambda key: key.lstrip("/").partition("/")[2]),
    ("with %20 and the like decoded", "url = true", lambda key: unquote(key.partition("?")[0])),
    ("with a blank for each +", "sql = \"replace(..., '+', ' ')\"", lambda key: key.replace("+", " ")),
)
"""Other forms in which a bucket may know a key, and how the mapping gives them."""
