"""The mapping file: a TOML document, checked as a whole before anything relies on it."""

import json
import re
import tomllib
from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PrivateAttr,
    StringConstraints,
    ValidationError,
    model_validator,
)

from toolkit.errors import SettingsError
from toolkit.storage.service_map.file_lines import NO_LINES, Lines, at_line, lines_of
from toolkit.storage.tables import OWN_TABLES, service

TODO: Final = "TODO"
"""Marks the places of a draft that a person has to fill in; a mapping that holds it is refused."""

GENERATION: Final = 7
"""A number that grows when the same file gives other views, so that an upgrade makes them again."""

NEEDED: Final = {table.name: table for table in service.sorted_tables}
"""The contract's relations."""

DEMANDED: Final = {
    "clients": ("id", "cpf"),
    "addresses": ("id", "client_id"),
    "sales": ("id", "utility_group", "is_client_financial_responsible", "created_at"),
    "evidences": ("id", "sale_id", "evidence_type", "object_key", "requested_at"),
}
"""Columns without which no audit can be made; any other may be absent, and is then unknown, not empty."""


def _zone(name: str) -> str:
    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{name!r} is not a known time zone; write one like America/Sao_Paulo or UTC") from None


Zone = Annotated[str, AfterValidator(_zone)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


_FORMS: Final = ("column", "date", "folder", "media_type_of", "value", "sql", "absent")


def _codes(value: Any) -> Any:
    """Return the codes of the table as texts, as PostgreSQL writes them."""
    return value if not isinstance(value, dict) else {str(code): meaning for code, meaning in value.items()}


class Source(_Part):
    """The source of a column: exactly one of ``column``, ``date``, ``folder``, ``media_type_of``, ``value``,
    ``sql`` and ``absent``; see the page "Your own database and bucket".
    """  # noqa: D205

    column: str | None = None
    table: str | None = None
    key: str | None = None
    by: str | None = None
    json_path: tuple[str, ...] = ()
    mask: str | None = None
    strip: str | None = None
    url: bool = False
    date: str | None = None
    time: str | None = None
    zone: Zone | None = None
    folder: str | None = None
    name: str | None = None
    media_type_of: str | None = None
    value: str | bool | None = None
    sql: str | None = None
    absent: bool = False
    codes: Annotated[dict[str, str | bool], BeforeValidator(_codes)] = {}

    @model_validator(mode="after")
    def _is_one_form(self) -> Self:
        given = [form for form in _FORMS if getattr(self, form) not in (None, False)]
        if self.value is False:
            given.append("value")
        if len(given) != 1:
            raise ValueError(f"give exactly one of {', '.join(_FORMS)}, not {' and '.join(given) or 'none'}")
        for one, other in (("date", "time"), ("folder", "name")):
            if (getattr(self, one) is None) != (getattr(self, other) is None):
                raise ValueError(f"{one} and {other} go together")
        if len({self.table is None, self.key is None, self.by is None}) > 1 or (self.table and not self.column):
            raise ValueError(
                "column, table, key and by go together: the column of the row of table whose key is by"
            )
        return self

    @property
    def is_lookup(self) -> bool:
        """Tell whether the value stands in a row of another table."""
        return self.table is not None


def _source(value: Any) -> Any:
    return {"column": value} if isinstance(value, str) else value


class Relation(_Part):
    """One of the contract's relations: its table or query, its columns, and which rows belong to it.

    ``insert`` and ``update`` hold SQL for columns of the table that the contract does not know. One that the
    service does not keep at all is ``absent``.
    """

    from_: Annotated[str, StringConstraints(strip_whitespace=True)] = ""
    where: Annotated[str, StringConstraints(strip_whitespace=True)] | None = None
    columns: dict[str, Annotated[Source, BeforeValidator(_source)]] = {}
    absent: bool = False
    insert: dict[str, str] = {}
    update: dict[str, str] = {}

    @property
    def is_query(self) -> bool:
        """Tell whether ``from`` is a query, which nothing can be written through."""
        return self.from_.startswith("(")


class ServiceMap(_Part):
    """The mapping of the service's tables. ``timezone`` is the zone of times that carry none."""

    timezone: Zone
    read_only: bool = False
    clients: Relation
    addresses: Relation
    sales: Relation
    evidences: Relation
    _lines: Lines = PrivateAttr(default=NO_LINES)

    def named(self, place: str) -> str:
        """Return a place of the mapping, such as ``sales.where``, with its line where it was read from a file."""
        return f"{at_line(self._lines, place)}{place}"

    @cached_property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits that change when the views would."""
        meaning = [GENERATION, self.model_dump(mode="json")]
        return sha256(json.dumps(meaning, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def sources(self) -> list[str]:
        """The tables that are read, as SQL names them; inside queries those that are named with their schema."""
        found: list[str] = []
        for relation in self.relations.values():
            parts = [relation.where, *(source.sql for source in relation.columns.values())]
            for name in (relation.from_, *(source.table or "" for source in relation.columns.values())):
                if name.startswith("("):
                    parts.append(name)
                elif name:
                    found.append(name)
            found += [named[1] for part in parts for named in _READ.finditer(part or "")]
        return [name for name in dict.fromkeys(found) if not name.startswith("this.")]

    @property
    def written(self) -> list[str]:
        """The tables that may be written through the views."""
        relations = [] if self.read_only else self.relations.values()
        return list(dict.fromkeys(each.from_ for each in relations if each.from_ and not each.is_query))

    @property
    def has_one_row_for_both(self) -> bool:
        """Tell whether a client's row is also that of its address, under one id."""
        client, address = self.clients, self.addresses
        ids = [*(address.columns.get(each) for each in ("id", "client_id")), client.columns.get("id")]
        return bool(client.from_) and client.from_ == address.from_ and all(each == ids[0] for each in ids)

    def reads(self, name: str, column: str) -> bool:
        """Tell whether the service keeps this column of a relation."""
        relation = self.relations[name]
        return not relation.absent and not relation.columns[column].absent

    @property
    def relations(self) -> dict[str, Relation]:
        """The relations by name, in the order in which they refer to each other."""
        return {name: getattr(self, name) for name in NEEDED}


_NAME: Final = r'(?:"[^"]+"|[a-z_][a-z0-9_$]*)'
_READ: Final = re.compile(rf"\b(?:FROM|JOIN)\s+({_NAME}\.{_NAME})(?!\s*\()", re.IGNORECASE)


def load_map(path: Path) -> ServiceMap:
    """Read a mapping file; a relation that it leaves out is the contract's own table in ``public``.

    Raises:
        SettingsError: naming the file, the key and what is wrong with it, all mistakes at once.
    """
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except OSError as error:
        raise SettingsError(f"TOOLKIT_SERVICE_MAP: {path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path} is not valid TOML: {error}") from None
    return understood(document, str(path), lines_of(text))


def understood(document: dict[str, Any], named: str, lines: Lines = NO_LINES) -> ServiceMap:
    """Return a mapping from its document; raises as ``load_map`` does, with ``named`` for the file."""
    relations: dict[str, Any] = {}
    mistakes: list[str] = []
    for name, table in NEEDED.items():
        own = {"from": f"{OWN_TABLES}.{name}", "columns": {column.name: column.name for column in table.columns}}
        given = document.get(name) or own
        relations[name] = {("from_" if key == "from" else key): value for key, value in given.items()}
        mistakes += [] if given.get("absent") is True else _unmatched(name, given)
    asked: dict[str, str] = {}  # by its question, the first place of each
    for place in to_fill_in(document):
        question = next(
            (lines[key][1] for key in lines if f"{place}.".startswith(f"{key}.") and lines[key][1]), ""
        )
        why = f" ({question})" if question and asked.setdefault(question, place) == place else ""
        mistakes.append(f"{place} is still to be filled in{why}")
    try:
        found = ServiceMap.model_validate(document | relations)
    except ValidationError as error:
        mistakes = [*(f"{_place(item['loc'])}: {_reason(item)}" for item in error.errors()), *mistakes]
    if mistakes:
        placed = (at_line(lines, re.split(r"[: ]", mistake)[0]) + mistake for mistake in mistakes)
        raise SettingsError(f"{named} is not a valid mapping: " + "; ".join(placed))
    found._lines = lines  # of its own module
    return found


def own_tables() -> ServiceMap:
    """Return the mapping of the contract's own tables, which says nothing new."""
    return understood({"timezone": "UTC"}, "the contract's own tables")


def _unmatched(relation: str, given: dict[str, Any]) -> list[str]:
    columns, known, demanded = given.get("columns", {}), NEEDED[relation].columns.keys(), DEMANDED[relation]
    strange = [
        f"{relation}.columns.{name}: the contract has no such column; it has {', '.join(known)}"
        for name in columns
        if name not in known
    ]
    lacking = [
        f"{relation}.columns.{name} is missing"
        + ("; where the service has no such thing, write { absent = true }" if name not in demanded else "")
        for name in known
        if name not in columns
    ]
    absent = [
        f"{relation}.columns.{name} cannot be absent: the audit needs it"
        for name, source in columns.items()
        if name in demanded and isinstance(source, dict) and source.get("absent") is True
    ]
    nowhere = [] if given.get("from") else [f"{relation}.from is missing: the table, with its schema"]
    return nowhere + strange + lacking + absent


def to_fill_in(part: Any, place: str = "") -> list[str]:
    """Return the places that a draft left to a person: ``TODO`` alone, or in a condition or a query."""
    if isinstance(part, Mapping):
        inside = (to_fill_in(value, f"{place}.{name}") for name, value in part.items())
        return [found for each in inside for found in each]
    return [place.lstrip(".")] if isinstance(part, str) and _OPEN.search(part) else []


_OPEN: Final = re.compile(rf"(?<![\w'\"]){TODO}(?![\w'\"])")
"""The pattern of the mark, which is neither a name nor a text in SQL."""


def _place(location: tuple[int | str, ...]) -> str:
    return ".".join("from" if part == "from_" else str(part) for part in location)


def _reason(item: Any) -> str:
    return str(item["msg"]).removeprefix("Value error, ")
