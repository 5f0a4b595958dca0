"""Read and write the tables of the sales service by one file of named SQL, ``service.sql``.

The statements ``sales``, ``records`` and ``clients`` yield the contract's columns. Statements of SQLAlchemy name
the relations ``sales``, ``evidences`` and ``clients`` of this module, which become those SELECTs when they are
compiled; texts ask ``service_of(connection)``. Names bind each time that a statement runs, nothing is stored in
the database. What writes reads new rows from a relation of a fixed name: a temporary table, or part of a WITH.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.ext.compiler import compiles

from toolkit.contract.evidence import EvidenceType, UtilityGroup
from toolkit.database import tables
from toolkit.errors import AlreadyThere, SettingsError, WriteRefused
from toolkit.message import Message

_TYPES: Final = {
    sa.Text: "text",
    sa.Uuid: "uuid",
    sa.Boolean: "boolean",
    sa.Date: "date",
    type(tables.moment): "timestamptz",
}

_YIELDED: Final[Mapping[str, Sequence[sa.Column[Any]]]] = {
    "sales": [*tables.sales.c],
    "records": [*tables.evidences.c],
    "clients": [*tables.clients.c, sa.Column("address_id", sa.Uuid), *list(tables.addresses.c)[2:]],
}

COLUMNS: Final[Mapping[str, Mapping[str, str]]] = {
    relation: {each.name: _TYPES[type(each.type)] for each in columns} for relation, columns in _YIELDED.items()
}
"""The columns that each SELECT yields, and their types after the conversions of ``read``."""

NEW: Final[Mapping[str, Mapping[str, str]]] = {
    **{f"new_{name}": columns for name, columns in COLUMNS.items()},
    "completed_sale": {"id": "text", "completed_at": "timestamptz"},
    "erased_sales": {"id": "text"},
    "erased_clients": {"id": "uuid"},
}
"""The relations that the statements which write read from, and their columns."""

WRITES: Final[Mapping[str, tuple[str, str]]] = {
    "add_clients": ("new_clients", "Clients cannot be registered"),
    "add_records": ("new_records", "Evidence credentials cannot be issued"),
    "add_sales": ("new_sales", "Sales cannot be written"),
    "complete_sale": ("completed_sale", "Sales cannot be completed"),
    "erase_sales": ("erased_sales", "Sales cannot be erased"),
    "erase_clients": ("erased_clients", "Clients cannot be erased"),
}
"""The statements that write: the relation that each reads, and what is impossible without it."""

REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "sales": ("id", "utility_group", "created_at"),
    "records": ("id", "sale_id", "evidence_type", "object_key", "requested_at"),
    "clients": tuple(each.name for each in _YIELDED["clients"] if not each.nullable and each.name != "created_at"),
}
"""The columns without which no audit can be made, and those of a client that the contract requires."""

OURS: Final = frozenset(
    {*NEW, "acting", "own_sale", "asked", "told", "known", "wanted", "different", "set_aside", "staged_clients"}
)
"""Temporary tables, and parts of WITH clauses, in sight of the statements: a table of such a name is hidden."""

PARTNER: Final = "nullif(btrim(partner), '')"  # blanks around a name are none of it

IDS: Final[Mapping[str, tuple[str, ...]]] = {"sales": ("id",), "records": ("id", "sale_id")}
"""The columns by which one row is looked up, see ``same``."""

_CODES: Final = {
    ("records", "evidence_type"): [*EvidenceType],
    ("sales", "utility_group"): [*UtilityGroup],
    ("sales", "is_client_financial_responsible"): [],
}


class Relation(sa.TableClause):
    """A relation of the service, to select from: it becomes the SELECT of the database's ``service.sql``."""

    inherit_cache = True


sales, evidences, clients = (
    Relation(relation, *(sa.Column(each.name, each.type) for each in columns))
    for relation, columns in _YIELDED.items()
)


@compiles(Relation)
def _compile_relation(element: Relation, compiler: Any, **given: Any) -> str:
    linter = given.get("from_linter")
    if linter is not None:
        linter.froms[element] = element.name
    alias = given.get("enclosing_alias")  # that of a subquery around this one is handed down, too
    name = "" if alias is not None and alias.element is element else f" AS {element.name}"
    return _service_for(compiler.dialect).sql(element.name).replace("%", "%%") + name


@dataclass(frozen=True, eq=False)
class Service:
    """The statements of one ``service.sql``; ``source`` names the file, ``None`` the packaged one.

    ``read`` holds, by relation and column, the expression that converts what the statement yields to the
    contract's type, ``stored`` the one that converts an id back, and ``origin`` the number of the table that has
    the ids, where they are a column of one; they are filled when the statements are tried on the database.
    """

    statements: Mapping[str, str]
    sha256: str
    source: Path | None = None
    read: dict[str, dict[str, str]] = field(default_factory=dict)
    stored: dict[str, dict[str, str]] = field(default_factory=dict)
    origin: dict[str, int] = field(default_factory=dict)

    @property
    def is_own(self) -> bool:
        """Tell whether these are the contract's own tables."""
        return self.source is None

    def sql(self, name: str) -> str:
        """Return a SELECT in parentheses, as PostgreSQL takes it; beside parameters a % in it is to be doubled."""
        converted = self.read.get(name)
        if converted is None:
            return f"({self.statements[name]})"
        columns = ", ".join(f"{expression} AS {column}" for column, expression in converted.items())
        columns += "".join(f", {column} AS {column}_stored" for column in self.stored[name])
        return f"(SELECT {columns} FROM ({self.statements[name]}) AS given)"  # the operator's own file

    def text(self, name: str) -> str:
        """Return the same as part of a ``sqlalchemy.text``, where a colon would begin a parameter."""
        return _escaped(self.sql(name))

    def same(self, relation: str, column: str, value: str) -> str:
        """Return the condition that an id, one of ``IDS``, is a parameter.

        A uuid or a number is read as a text, and no index holds that: it is compared as the table stores it, too.
        """
        back = self.stored.get(relation, {}).get(column)
        return f"{column} = {value}" + (f" AND {column}_stored = {back.replace('{}', value)}" if back else "")

    def one(self, relation: str, column: str, value: str) -> str:
        """Return the SELECT of ``text`` with the rows alone whose id, one of ``IDS``, is a parameter."""
        return f"(SELECT * FROM {self.text(relation)} AS read WHERE {self.same(relation, column, value)})"

    def require(self, *names: str) -> None:
        """Make sure that all these statements that write are there.

        Raises:
            WriteRefused: one is missing.
        """
        for name in names:
            if name not in self.statements:
                raise WriteRefused(
                    "{}: {} has no statement {}. It would INSERT, UPDATE or DELETE by the relation {}; see "
                    "toolkit db map.",
                    *(Message(WRITES[name][1]), self.source, name, WRITES[name][0]),
                )
            required = REQUIRED.get(WRITES[name][0].removeprefix("new_"), ())
            if dropped := [each for each in required if not mentions(self.statements[name], each)]:
                raise WriteRefused(
                    "{}: {} in {} does not store {}, which the contract requires.",
                    *(Message(WRITES[name][1]), name, self.source, ", ".join(dropped)),
                )

    def over(self, name: str, parts: str) -> sa.TextClause:
        """Return a statement that writes, with parts of a WITH clause in front that yield its new rows.

        The parts may write themselves and have parameters. The number of rows of the whole is the statement's.
        """
        self.require(name)
        statement = _escaped(self.statements[name])
        if (found := _WITH.match(statement)) is None:
            return sa.text(f"WITH {parts} {statement}")
        return sa.text(f"WITH {found[1] or ''} {parts}, {statement[found.end() :]}")

    def run(self, connection: Connection, name: str) -> int:
        """Run a statement that writes, on rows in the temporary table of ``create_new``; return their number.

        Raises:
            AlreadyThere: see ``check_stored``.
        """
        self.require(name)
        relation = WRITES[name][0]
        changed = connection.execute(sa.text(_escaped(self.statements[name]))).rowcount
        is_unsure = name == "add_records" and not self.is_own
        count = sa.text(f"SELECT count(*) FROM {relation}")
        if is_unsure or (name.startswith("add_") and changed < connection.scalar(count)):
            self.check_stored(connection, name, relation)
        return changed

    def check_stored(
        self, connection: Connection, name: str, rows: str, given: Mapping[str, object] | None = None
    ) -> None:
        """Make sure that rows are read back as they were given; ``rows`` is a table of them, or a query.

        A trigger that moves rows to another table leaves them uncounted, and so does one that drops them. A
        record under another id, or with another key, would leave its file without a record.

        Raises:
            AlreadyThere: one is not stored, as with ``ON CONFLICT DO NOTHING``.
        """
        read = self.text(WRITES[name][0].removeprefix("new_"))
        names = ("id", "sale_id", "evidence_type", "object_key") if name == "add_records" else ("id",)
        alike = " AND ".join(f"read.{each} = written.{each}" for each in names)
        stored = f"SELECT FROM {read} AS read WHERE {alike}"
        lacking = sa.text(f"SELECT EXISTS (SELECT FROM {rows} AS written WHERE NOT EXISTS ({stored}))")
        if connection.scalar(lacking, given):
            raise AlreadyThere(
                "The service did not store it as given, perhaps because it is there already ({})", name
            )


def create_new(connection: Connection, relation: str) -> None:
    """Create the temporary table that a statement which writes reads, such as ``new_clients``."""
    columns = ", ".join(f"{name} {kind}" for name, kind in NEW[relation].items())
    connection.execute(sa.text(f"CREATE TEMPORARY TABLE {relation} ({columns}) ON COMMIT DROP"))


def one_row(relation: str, condition: str = "") -> str:
    """Return a part of a WITH clause: the relation with one row, of parameters named as its columns."""
    values = ", ".join(f"CAST(:{name} AS {kind}) AS {name}" for name, kind in NEW[relation].items())
    return f"{relation} AS (SELECT {values} {condition})"


SERVICES: Final = WeakKeyDictionary[sa.Dialect, Service]()
"""The service that all connections of an engine read, by its dialect."""


def service_of(connection: Connection) -> Service:
    """Return the service that the connection's database reads."""
    return _service_for(connection.dialect)


def same(connection: Connection, relation: Relation, column: str, value: object) -> sa.TextClause:
    """Return ``Service.same`` for a statement of SQLAlchemy, which has no other column of that name."""
    return sa.text(service_of(connection).same(relation.name, column, ":same")).bindparams(
        sa.bindparam("same", value, unique=True)
    )


def _service_for(dialect: sa.Dialect) -> Service:
    return SERVICES.get(dialect) or packaged_service()


@cache
def packaged_service() -> Service:
    """Return the statements for the contract's own tables."""
    text = files("toolkit.database").joinpath("service.sql").read_text("utf-8")
    return _service(text, None)


def load_service(path: Path | None) -> Service:
    """Read a file of statements; ``None`` stands for the contract's own tables.

    Raises:
        SettingsError: it cannot be read, lacks a statement, or names a code that the contract does not know.
    """
    if path is None:
        return packaged_service()
    try:
        text = path.read_text("utf-8-sig")  # editors of Windows write a mark in front
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError("TOOLKIT_SERVICE_SQL: {} cannot be read: {}", path, error) from None
    return _service(text, path)


def _service(text: str, source: Path | None) -> Service:
    parts = re.split(r"^--[ \t]*name:[ \t]*(.*?)[ \t]*$", text, flags=re.MULTILINE)
    statements: dict[str, str] = {}
    place = source or "service.sql"
    if _without_comments(parts[0]).strip():
        raise SettingsError("{}: a statement stands before the first line: -- name: sales", place)
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        if name not in (*COLUMNS, *WRITES):
            known = ", ".join((*COLUMNS, *WRITES))
            raise SettingsError("{}: no statement is called {!r}; there are {}.", place, name, known)
        if name in statements:
            raise SettingsError("{}: the statement {} stands there twice.", place, name)
        statements[name] = _statement(f"{place}, {name}", name, body)
    if missing := [name for name in COLUMNS if name not in statements]:
        raise SettingsError(
            "{}: the statement {} is missing; it is needed to read the service.", place, missing[0]
        )
    for name in ("sales", "records"):
        if absent := [column for column in REQUIRED[name] if is_null(statements[name], column)]:
            raise SettingsError("{}, {}: {} is NULL, and no audit can be made without it.", place, name, absent[0])
    for name in COLUMNS:
        if made := _found(_CHANCE, statements[name], "id"):
            raise SettingsError(
                "{}, {}: id is made by {}, and would be another one at the next reading. Make it of columns that "
                "stay, such as CAST(md5(...) AS uuid).",
                *(place, name, made[0]),
            )
    for (name, column), codes in _CODES.items():
        if rest := _found(_REST, statements[name], column):
            raise SettingsError(
                "{}, {}: every code that is not listed would become {} as {}. Leave ELSE out: then it is told.",
                *(place, name, rest[0], column),
            )
        if unknown := [each for each in constants(statements[name], column) if codes and each not in codes]:
            raise SettingsError(
                "{}, {}: {} would become {!r}, which the contract does not know; it knows {}.",
                *(place, name, column, unknown[0], ", ".join(codes)),
            )
    return Service(statements, sha256(text.encode()).hexdigest(), source)


def _statement(place: str, name: str, body: str) -> str:
    """Return the one statement of a body, without comments and the semicolon behind it."""
    statement = _without_comments(body).strip(" \t\r\n;")
    if not statement:
        raise SettingsError("{}: there is no statement.", place)
    if ";" in _QUOTED.sub("", statement):
        raise SettingsError("{}: there is more than one statement.", place)
    used = {each.lower() for each in (*tables_in(statement), *_PART_OF_WITH.findall(statement))}
    if taken := sorted(used & OURS - ({WRITES[name][0]} if name in WRITES else set())):
        raise SettingsError(
            "{}: {} is a name that the toolkit uses beside the statement: write a table with its schema, and call "
            "a part of a WITH clause otherwise.",
            place,
            taken[0],
        )
    if name in COLUMNS and (cut := cut_off(statement)) is not None:
        raise SettingsError("{}: {} would leave rows out that nobody judges.", place, cut)
    if posix := _POSIX_ZONE.search(statement):
        raise SettingsError(
            "{}: AT TIME ZONE {!r} counts hours to the west, as POSIX does. Name a zone, such as "
            "'America/Sao_Paulo'.",
            place,
            posix[1],
        )
    first = statement.lstrip("(").split(None, 1)[0].upper()
    allowed = ("SELECT", "WITH", "VALUES", "TABLE") if name in COLUMNS else ("INSERT", "UPDATE", "WITH", "MERGE")
    if first not in allowed:
        raise SettingsError("{}: begins with {}, and {} is expected.", place, first, " or ".join(allowed))
    return statement


_TEXT: Final = r"'((?:[^']|'')*)'"
_NAME: Final = r"""(?:"(?:[^"]|"")*"|\b[^\W\d][\w$]*)"""
_DOTTED: Final = rf"{_NAME}(?:\s*\.\s*{_NAME})?"
_QUOTED: Final = re.compile(rf"""{_TEXT}|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$|"(?:[^"]|"")*\"""", re.DOTALL)
_OR_COMMENT: Final = re.compile(rf"(?P<kept>{_QUOTED.pattern})|--[^\n]*|/\*.*?\*/", re.DOTALL)
_TEXTS: Final = re.compile(_TEXT)
_WITH: Final = re.compile(r"WITH\s+(RECURSIVE\s+)?", re.IGNORECASE)
_PART_OF_WITH: Final = re.compile(rf"({_NAME})\s+AS\s+(?:\(|MATERIALIZED\b|NOT\b)", re.IGNORECASE)
_WORDS: Final = re.compile(rf"{_DOTTED}|[(),]")
_BEFORE_TABLES: Final = frozenset(("FROM", "JOIN", "INTO", "UPDATE", "USING", "TABLE"))
_AFTER_TABLES: Final = frozenset(
    ("SELECT", "WITH", "VALUES", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "SET", "RETURNING")
)
_CALLED: Final = re.compile(
    rf"(?:\bAS|(?<=\bEND)|(?<=\bNULL)|(?<=['\)]))\s+({_NAME})\s*(?=,|\b(?:FROM|WHERE|UNION)\b|$)", re.IGNORECASE
)  # AS may be left out
_CAST: Final = r"""(?:\s*::\s*[\w."]+(?:\s+varying)?(?:\(\d+\))?)?\s*"""
_ALONE: Final = re.compile(rf"(?:^|,)\s*{_TEXT}{_CAST}$")
_SELECT: Final = re.compile(r"\bSELECT\b(?:\s+DISTINCT\b)?", re.IGNORECASE)
_CASE: Final = re.compile(rf"\bEND\b{_CAST}$", re.IGNORECASE)
_OUTCOME: Final = re.compile(rf"\b(?:THEN|ELSE)\s+{_TEXT}{_CAST}(?=\b(?:WHEN|ELSE|END)\b)", re.IGNORECASE)
_REST: Final = re.compile(
    rf"(?is)(?:^|,)\s*(?:\w*\s*\(\s*)*CASE\s+(?!WHEN\b).*"
    rf"\bELSE\s+\(*('(?:[^']|'')*'|TRUE){_CAST}\)*\s*\bEND\b(?!.*\bEND\b)"
)
_DEFAULT: Final = re.compile(
    rf"(?is)(?:\bELSE|\bCOALESCE\s*\(.*,)\s*\(*('(?:[^']|'')*'|TRUE){_CAST}(?=\)|\bEND\b)"
)
_CHANCE: Final = re.compile(
    r"\b(gen_random_uuid|uuid_generate_v[14]\w*|uuidv[47]|random|nextval|row_number(?=\s*\(\s*\)\s*OVER\s*\(\s*\)))\s*\(",
    re.IGNORECASE,
)
_CUT: Final = re.compile(r"\b(?:LIMIT|OFFSET|FETCH|TABLESAMPLE)\b", re.IGNORECASE)
_CUT_WITHIN: Final = re.compile(
    r"\b(?:LIMIT(?=\s+(?:[2-9]|1\d))|FETCH(?=\s+\w+\s+(?:[2-9]|1\d))|TABLESAMPLE)\b", re.IGNORECASE
)
_BEFORE_ROWS: Final = re.compile(r"(?:^|\b(?:FROM|JOIN|AS|MATERIALIZED|UNION|ALL))\s*$", re.IGNORECASE)
_NUMBERED: Final = re.compile(
    r"\bROW_NUMBER\s*\(\s*\)\s*OVER\s*\(\s*PARTITION\b(?:(?!\bORDER\b)[^()])*\)", re.IGNORECASE
)
_DISTINCT: Final = re.compile(r"\bDISTINCT\s+ON\s+_(\d+)(?:.*\bORDER\s+BY\b(.*))?", re.IGNORECASE | re.DOTALL)
_POSIX_ZONE: Final = re.compile(
    r"\bTIME(?:\s+ZONE\s+|ZONE\s*\(\s*)'((?:UTC|GMT)?\s*[+-]\d[^']*|[A-Z/]*-\d[^']*)'", re.IGNORECASE
)


def cut_off(statement: str) -> str | None:
    """Return the words, such as ``LIMIT``, by which a statement yields some of its rows alone, if there are some.

    Which rows ``DISTINCT ON`` and ``row_number()`` choose is left to chance where no order is given.
    """
    left = _QUOTED.sub("", statement)
    if _NUMBERED.search(left):
        return "row_number() without ORDER BY"
    levels, word = [], None  # what stands in parentheses, with the number of parts for those within, and outside
    while inner := re.search(r"\(([^()]*)\)", left):
        levels.append(inner[1])
        if _BEFORE_ROWS.search(left[: inner.start()]):
            word = word or _CUT_WITHIN.search(inner[1])
        left = f"{left[: inner.start()]} _{inner[1].count(',') + 1} {left[inner.end() :]}"
    for chosen in filter(None, map(_DISTINCT.search, (*levels, left))):
        if (chosen[2] or "").count(",") < int(chosen[1]):
            return "DISTINCT ON without ORDER BY of more columns"
    word = word or _CUT.search(left)
    return None if word is None else word[0].upper()


def _without_comments(text: str) -> str:
    return _OR_COMMENT.sub(lambda found: found["kept"] or " ", text)


def tables_in(statement: str) -> list[str]:
    """Return the names of the tables that a statement reads or writes, with the schema where one stands there.

    A name that a subquery, a function or a part of a WITH clause has may be among them.
    """
    found: list[str] = []
    lists, awaited, last = [False], False, ""  # for each open parenthesis: whether a comma leads to a table
    for word in _WORDS.findall(_TEXTS.sub("''", statement)):
        before, last = last, word.upper()
        if last in _BEFORE_TABLES:
            lists[-1] = awaited = True
        elif last in _AFTER_TABLES:
            lists[-1] = awaited = False
        elif word == "(":  # after FROM it may hold a join, after USING columns
            awaited = awaited and before != "USING"
            lists.append(awaited)
        elif word == ")":
            lists, awaited = lists[:-1] or [False], False
        elif word == ",":
            awaited = lists[-1]
        elif last not in ("ONLY", "LATERAL"):
            found += [word] * awaited
            awaited = False
    return list(dict.fromkeys(found))


def functions_in(statement: str) -> list[str]:
    """Return the names before parentheses, with the schema where one stands there; keywords are among them."""
    return re.findall(rf"({_DOTTED})\s*\(", _TEXTS.sub("''", statement))


def mentions(statement: str, name: str) -> bool:
    """Tell whether a name stands in a statement."""
    return re.search(rf"\b{name}\b", statement) is not None


def is_null(statement: str, column: str) -> bool:
    """Tell whether the statement says ``NULL AS column``."""
    return any(re.search(rf"\bNULL{_CAST}$", each, re.IGNORECASE) for each in _values_called(statement, column))


def constants(statement: str, column: str) -> list[str]:
    """Return the texts that a column can become, as far as they stand in the statement: alone, or in a CASE."""
    values = list(_values_called(statement, column))
    found = [text for value in values for text in (_ALONE if not _CASE.search(value) else _OUTCOME).findall(value)]
    return [text.replace("''", "'") for text in found]


def defaults(statement: str, column: str) -> list[str]:
    """Return what a column becomes where nothing else fits: a text, or TRUE, after ELSE or last in COALESCE."""
    return _found(_DEFAULT, statement, column)


def _found(pattern: re.Pattern[str], statement: str, column: str) -> list[str]:
    return [each for value in _values_called(statement, column) for each in pattern.findall(value)]


def _values_called(statement: str, column: str) -> Iterator[str]:
    """Yield what stands before each ``AS column``, from the SELECT or the column before on."""
    begin = 0
    for called in _CALLED.finditer(statement):
        if called[1].strip('"').lower() == column:
            yield _SELECT.split(statement[begin : called.start()])[-1].strip()
        begin = called.end()


def _escaped(sql: str) -> str:
    return re.sub(r"(?<![:\w\\]):(?=\w)", r"\\:", sql)
