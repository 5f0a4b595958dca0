"""Read and write the tables of the sales service by one file of named SQL, ``service.sql``.

The statements ``sales``, ``records`` and ``clients`` yield the contract's columns. Statements of SQLAlchemy name
the relations ``sales``, ``evidences`` and ``clients`` of this module, which become those SELECTs when they are
compiled; texts ask ``service_of(connection)``. Names bind each time that a statement runs, nothing is stored in
the database. What writes reads new rows from a relation of a fixed name: a temporary table, or part of a WITH.
"""

import re
from collections.abc import Mapping, Sequence
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
from toolkit.database import statements as read
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

KNOWN_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "add_clients": ("cpf", "installation_number", "number_on_dealership"),
    "add_records": ("sale_id", "evidence_type", "object_key"),
}
"""By the statement that writes: the columns, beside the id, by which a row is known when it is read back."""

OURS: Final = frozenset(
    {*NEW, "acting", "own_sale", "asked", "told", "known", "wanted", "different", "set_aside", "staged_clients"}
)
"""Temporary tables, and parts of WITH clauses, in sight of the statements: a table of such a name is hidden."""

PARTNER: Final = "nullif(btrim(partner), '')"  # blanks around a name are none of it

IDS: Final[Mapping[str, tuple[str, ...]]] = {"sales": ("id",), "records": ("id", "sale_id")}
"""The columns by which one row is looked up, see ``same``."""

CODED: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "sales": {"utility_group": [*UtilityGroup], "is_client_financial_responsible": []},
    "records": {"evidence_type": [*EvidenceType]},
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
            AlreadyThere: a row is not stored, see ``check_stored``.
        """
        self.require(name)
        relation = WRITES[name][0]
        changed = connection.execute(sa.text(_escaped(self.statements[name]))).rowcount
        lacking = changed < connection.execute(sa.text(f"SELECT count(*) FROM {relation}")).scalar_one()
        if name.startswith("add_") and (lacking or not self.is_own):
            self.check_stored(connection, name)
        return changed

    def check_stored(self, connection: Connection, name: str, given: Mapping[str, object] | None = None) -> None:
        """Make sure that rows are read back as they were given: those of the statement's relation, or one.

        A trigger that moves rows to another table leaves them uncounted, and so does one that drops them. A
        record under another id, or with another key, would leave its file without a record, and a client that is
        read with another CPF would be registered again by each load.

        Raises:
            AlreadyThere: one is not stored, as with ``ON CONFLICT DO NOTHING``.
        """
        relation = WRITES[name][0]
        read = self.text(relation.removeprefix("new_"))
        rows = one_row(relation).removeprefix(f"{relation} AS ") if given else relation
        names = ("id", *KNOWN_BY.get(name, ()))
        alike = " AND ".join(f"read.{each} = written.{each}" for each in names)
        stored = f"SELECT FROM {read} AS read WHERE {alike}"
        lacking = sa.text(f"SELECT EXISTS (SELECT FROM {rows} AS written WHERE NOT EXISTS ({stored}))")
        if connection.scalar(lacking, given):
            columns = f"{name}: {', '.join(names)}"
            raise AlreadyThere(
                Message("The service did not store it as given, perhaps because it is there already ({})", columns)
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
        if source is not None:
            _check(f"{place}, {name}", name, statements[name])
    if missing := [name for name in COLUMNS if name not in statements]:
        raise SettingsError(
            "{}: the statement {} is missing; it is needed to read the service.", place, missing[0]
        )
    return Service(statements, sha256(text.encode()).hexdigest(), source)


def _statement(place: str, name: str, body: str) -> str:
    """Return the one statement of a body, without comments and the semicolon behind it."""
    statement = _without_comments(body).strip(" \t\r\n;")
    if not statement:
        raise SettingsError("{}: there is no statement.", place)
    if ";" in _QUOTED.sub("", statement):
        raise SettingsError("{}: there is more than one statement.", place)
    first = statement.lstrip("(").split(None, 1)[0].upper()
    reading, writing = ("SELECT", "WITH", "VALUES", "TABLE"), ("INSERT", "UPDATE", "DELETE", "WITH", "MERGE")
    allowed = reading if name in COLUMNS else writing
    if first not in allowed:
        raise SettingsError("{}: begins with {}, and {} is expected.", place, first, " or ".join(allowed))
    return statement


def _check(place: str, name: str, statement: str) -> None:
    """Refuse what would leave rows out, make ids by chance, or hide a code."""
    used = {*read.tables_in(statement), *(part.alias for part in read.nodes(statement, "cte"))}
    if taken := sorted(used & OURS - ({WRITES[name][0]} if name in WRITES else set())):
        raise SettingsError(
            "{}: {} is a name that the toolkit uses beside the statement: write a table with its schema, and call "
            "a part of a WITH clause otherwise.",
            *(place, taken[0]),
        )
    if zone := read.posix_zone(statement):
        raise SettingsError(
            "{}: AT TIME ZONE {!r} counts hours to the west, as POSIX does. Name a zone, such as "
            "'America/Sao_Paulo'.",
            *(place, zone),
        )
    if name not in COLUMNS:
        return
    if (cut := read.cut_off(statement)) is not None:
        raise SettingsError("{}: {} would leave rows out that nobody judges.", place, cut)
    if absent := [each for each in REQUIRED[name] if name != "clients" and read.is_null(statement, each)]:
        raise SettingsError("{}: {} is NULL, and no audit can be made without it.", place, absent[0])
    if made := read.chance(statement, "id"):
        raise SettingsError(
            "{}: id is made by {}, and would be another one at the next reading. Make it of columns that "
            "stay, such as CAST(md5(...) AS uuid).",
            *(place, made),
        )
    for column, codes in CODED.get(name, {}).items():
        if rest := read.defaults(statement, column, of_codes=True):
            raise SettingsError(
                "{}: every code that is not listed would become {} as {}. Leave ELSE out: then it is told.",
                *(place, rest[0], column),
            )
        if unknown := [each for each in read.constants(statement, column) if codes and each not in codes]:
            raise SettingsError(
                "{}: {} would become {!r}, which the contract does not know; it knows {}.",
                *(place, column, unknown[0], ", ".join(codes)),
            )


_QUOTED: Final = re.compile(r"""'(?:[^']|'')*'|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$|"(?:[^"]|"")*\"""", re.DOTALL)
_OR_COMMENT: Final = re.compile(rf"(?P<kept>{_QUOTED.pattern})|--[^\n]*|/\*.*?\*/", re.DOTALL)
_WITH: Final = re.compile(r"WITH\s+(RECURSIVE\s+)?", re.IGNORECASE)


def _without_comments(text: str) -> str:
    return _OR_COMMENT.sub(lambda found: found["kept"] or " ", text)


def mentions(statement: str, name: str) -> bool:
    """Tell whether a name stands in a statement."""
    return re.search(rf"\b{name}\b", statement) is not None


def _escaped(sql: str) -> str:
    return re.sub(r"(?<![:\w\\]):(?=\w)", r"\\:", sql)
