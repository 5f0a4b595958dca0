"""The parts of each relation in a draft: keys, references, codes, filters, and what a new row needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from toolkit.storage.service_map.catalog import CatalogTable, Column
from toolkit.storage.service_map.draft import codes
from toolkit.storage.service_map.draft.choices import ABSENT, Choice, toml
from toolkit.storage.service_map.draft.filters import rows_that_belong, undecided, values_for_new_rows
from toolkit.storage.service_map.draft.matching import Match, fields_of
from toolkit.storage.service_map.draft.people import payer_of, people_of
from toolkit.storage.service_map.draft.places import file_parts
from toolkit.storage.service_map.draft.polymorphic import Owner, owner_of
from toolkit.storage.service_map.draft.samples import CPF, MASKED_CPF, Field, Samples, share
from toolkit.storage.service_map.draft.times import Zones
from toolkit.storage.service_map.draft.vocabulary import TABLE_WORDS, tokens
from toolkit.storage.service_map.expressions import quoted
from toolkit.storage.service_map.model import DEMANDED, NEEDED, TODO

_TIMES: Final = {"created_at", "completed_at", "requested_at", "expires_at"}
_FILE_PARTS: Final = {"file_name", "file_format", "type", "object_key"}


@dataclass
class DraftedRelation:
    """One relation of the file."""

    name: str
    table: CatalogTable | None
    choices: dict[str, Choice] = field(default_factory=dict)
    where: Choice | None = None
    insert: dict[str, str] = field(default_factory=dict)
    update: dict[str, str] = field(default_factory=dict)
    unused: list[str] = field(default_factory=list)
    undecided: str = ""
    """Columns that nothing was taken from although they may say that a row does not count."""
    alike: tuple[str, ...] = ()
    """Tables built exactly alike, such as another tenant's or an archive; they are not read."""

    def lines(self) -> Iterator[str]:
        """Yield the lines of the relation in the file."""
        yield f"[{self.name}]"
        if self.table is None:
            yield "absent = true  # REVIEW: no table was found for it"
            return
        alike = f"  # REVIEW: built alike, and not read: {', '.join(self.alike)}" if self.alike else ""
        yield f"from = {toml(self.table.name)}{alike}"
        if self.where is not None:
            yield f"where = {self.where.line}"
        if self.undecided:
            yield f"# REVIEW: rows that do not count may be told by {self.undecided}; add it to where"
        for key, values in (("insert", self.insert), ("update", self.update)):
            if values:
                yield f"{key} = {toml(values)}"
        yield f"[{self.name}.columns]"
        for column in NEEDED[self.name].columns:
            yield f"{column.name} = {self.choices[column.name].line}"
        if self.unused:
            yield f"# Columns that nothing was taken from: {', '.join(self.unused)}"


class Drafting:
    """Puts the relations together from the matches."""

    def __init__(
        self,
        catalog: Mapping[str, CatalogTable],
        matches: Mapping[str, Match],
        samples: Samples,
        zone: str,
        holds: Callable[[str], bool] | None,
    ) -> None:
        self._catalog, self._matches, self._samples, self._holds = catalog, matches, samples, holds
        self._zones = Zones(catalog, zone)
        self._ids = {name: self._id_of(name) for name in matches}
        if {"clients", "addresses"} <= set(matches) and matches["clients"].table is matches["addresses"].table:
            self._ids["addresses"] = self._ids["clients"]
        self._owners: dict[tuple[str, str], Owner] = {}
        self._people = (
            people_of(catalog.values(), matches["sales"].table, matches["clients"].table, samples)
            if {"sales", "clients"} <= set(matches)
            else None
        )

    @property
    def timezone(self) -> Choice:
        """The zone of all bare times that need no zone of their own."""
        return self._zones.default

    @property
    def reviewed(self) -> tuple[str, ...]:
        """The settings of the whole file that somebody has to look at."""
        return ("timezone",) if self.timezone.review else ()

    def relations(self) -> list[DraftedRelation]:
        """Return all of them, in the order of the contract."""
        self._zones.settle([self._matches[name].table for name in NEEDED if name in self._matches])
        return [self._relation(name) for name in NEEDED]

    def unused_tables(self, relations: list[DraftedRelation]) -> list[str]:
        """Return the tables that no relation reads."""
        text = "\n".join(line for relation in relations for line in relation.lines())
        return [name for name in self._catalog if name not in text]

    def _relation(self, name: str) -> DraftedRelation:
        match = self._matches.get(name)
        if match is None:
            if name in {"clients", "addresses"}:
                return DraftedRelation(name, None)
            table = next(iter(self._catalog.values()), None)
            missing = Choice(TODO, f"no table looks like the {name} of the contract")
            nothing = CatalogTable(TODO, TODO, "", "", "", False) if table is not None or name else None
            return DraftedRelation(name, nothing, {column.name: missing for column in NEEDED[name].columns})
        drafted = DraftedRelation(name, match.table)
        for column in NEEDED[name].columns:
            drafted.choices[column.name] = self._choice(name, match, column.name)
        drafted.where = rows_that_belong(name, match.table, self._samples)
        for target in ("sales", "clients"):
            if (owner := self._owners.get((name, target))) is not None:
                drafted.where = owner.added_to(drafted.where)
        used = _used(drafted)
        drafted.unused = [column for column in match.table.columns if column not in used]
        drafted.undecided = undecided(name, match.table, drafted.unused, self._samples)
        drafted.alike = tuple(
            other.name
            for other in self._catalog.values()
            if other.name != match.table.name and other.columns.keys() == match.table.columns.keys()
        )
        sharing = [other.table for relation, other in self._matches.items() if relation != name]
        if match.table not in sharing:
            rest = [match.table.columns[column] for column in drafted.unused]
            drafted.insert, drafted.update = values_for_new_rows(rest, self._zones)
            own_id = self._ids[name]
            key = next((column for column in match.table.columns.values() if column.key), None)
            if key is not None and key.name != own_id and key.family == "uuid" and not key.filled:
                drafted.insert[key.name] = "gen_random_uuid()"
        return drafted

    def _choice(self, name: str, match: Match, column: str) -> Choice:
        if column == "id":
            return self._id(name)
        if (name, column) in {("addresses", "client_id"), ("sales", "client_id"), ("evidences", "sale_id")}:
            return self._reference(name, match.table, "sales" if column == "sale_id" else "clients")
        if column in _FILE_PARTS and name == "evidences":
            return file_parts(match, self._samples, self._holds)[column]
        if column == "utility_group" or column == "evidence_type":
            return self._coded(match, column)
        if column == "is_client_financial_responsible":
            return self._payer(match)
        if column == "partner":
            return self._partner(match)
        found = match.fields.get(column)
        if column in _TIMES:
            return self._zones.time(name, match.table, column, found, self._samples)
        if name == "clients" and column in {"first_name", "last_name"} and "last_name" not in match.fields:
            return _part_of_name(match.fields.get("first_name"), column)
        if found is None:
            return Choice({"sql": TODO}, "nothing was found") if column in DEMANDED[name] else Choice(ABSENT)
        if column == "cpf":
            values = self._samples.values(found)
            if found.family != "text":
                return Choice({**_plain(found), "mask": "###########"}, "a number: eleven digits, zeros in front")
            if values and share(values, MASKED_CPF) > 0.5:
                return Choice(
                    {**_plain(found), "mask": "###.###.###-##"}, "the digits of what is written with a mask"
                )
            if values and share(values, CPF) < 1:
                return Choice({**_plain(found), "mask": "###########"}, "some are written with a mask: the digits")
        return Choice(_short(found))

    def _id_of(self, name: str) -> str | None:
        """Return the column that stands for a row of the relation wherever people or other rows name it."""
        table = self._matches[name].table
        columns = list(table.columns.values())
        key = next((column for column in columns if column.key), None)
        if name == "sales":
            public = [column for column in columns if _is_public(column, key, table, self._samples)]
            if key is not None and key.family == "text" and not set(tokens(key.name)) <= {"id", "sale"}:
                return key.name
            if public:
                return max(public, key=_how_public).name
            texts = [column for column in columns if column.family == "text" and column.unique and column.required]
            if len(texts) == 1:
                return texts[0].name
        else:
            for column in columns:
                if column.family == "uuid" and (column.key or column.unique) and column.required:
                    return column.name
        if key is not None:
            return key.name
        own = TABLE_WORDS[name][0] | TABLE_WORDS[name][1]
        for column in columns:
            said = set(tokens(column.name))
            if said & {"id", "code", "uuid", "number", "key"} and said <= own | {
                "id",
                "code",
                "uuid",
                "number",
                "key",
            }:
                return column.name
        return None

    def _id(self, name: str) -> Choice:
        found = self._ids[name]
        if found is None:
            return Choice({"sql": TODO}, "what stands for one row of it?")
        column = self._matches[name].table.columns[found]
        why = "" if column.key or column.unique else "nothing in the database keeps it unique"
        if name == "sales" and column.family != "text":
            why = "the table's own key: reports name sales by it"
        return Choice(found, why, review=bool(why))

    def _reference(self, name: str, table: CatalogTable, target: str) -> Choice:
        """Return how a row names the client or the sale that it belongs to."""
        optional = target == "clients" and name == "sales"
        if target not in self._matches:
            return Choice(ABSENT) if optional else Choice({"sql": TODO})
        other, wanted = self._matches[target].table, self._ids[target]
        if other is table:
            return Choice(wanted or TODO, "it stands in the same table")
        found = next((each for each in table.references if each.table == other.name), None)
        if found is not None:
            return _looked_up(wanted, other, found.key, found.column)
        back = next((each for each in other.references if each.table == table.name), None)
        if back is not None:
            source = {"column": wanted, "table": other.name, "key": back.column, "by": back.key}
            return Choice(source, "the other table names this one")
        for column in table.columns.values():
            said = set(tokens(column.name))
            if said & TABLE_WORDS[target][0] and said <= TABLE_WORDS[target][0] | {"id", "code", "uuid", "number"}:
                key = self._key_like(column, other)
                if key is not None:
                    choice = _looked_up(wanted, other, key, column.name)
                    return Choice(choice.source, "by its name: no foreign key says so", review=True)
        owner = owner_of(table, target, self._samples)
        key = None if owner is None else self._key_like(owner.key, other)
        if owner is not None and key is not None:
            self._owners[name, target] = owner
            choice = _looked_up(wanted, other, key, owner.key.name)
            return Choice(choice.source, "no foreign key says so", review=True)
        people = self._people.of_client(wanted) if optional and self._people is not None else None
        if people is not None:
            return people
        return Choice(ABSENT) if optional else Choice({"sql": TODO}, f"which of the {target} does it belong to?")

    def _key_like(self, column: Column, other: CatalogTable) -> str | None:
        """Return the column of the other table with the same values: of the same name, or a key of its type."""
        if column.name in other.columns:
            return column.name
        keys = [
            each
            for each in other.columns.values()
            if (each.key or each.unique or tokens(each.name) == ("id",)) and each.family == column.family
        ]
        return min(keys, key=lambda each: not each.key).name if keys else None

    def _coded(self, match: Match, column: str) -> Choice:
        found = match.fields.get(column)
        if found is not None:
            return self._with_codes(column, found, _plain(found))
        looked_up = self._coded_elsewhere(match.table, column)
        return looked_up or Choice({"sql": TODO}, "nothing was found")

    def _with_codes(self, column: str, found: Field, source: dict[str, Any]) -> Choice:
        values = self._samples.values(found)
        comment = f"{found.column.comment}; {found.table.comment}"
        known, unknown = codes.decoded(column, values, comment)
        said = codes.stated(comment)
        guessed = [code for code in known if code not in said and not _is_the_word(column, code)]
        if known or unknown:
            given = {**known, **dict.fromkeys(unknown, TODO)}
            reasons = []
            if unknown:
                reasons.append(
                    "nothing explains what says TODO; a line taken out stays as it is and is never counted"
                )
            if any(code in said for code in known):
                reasons.append("by the column's comment")
            if guessed:
                reasons.append(f"by their names: {', '.join(guessed)}")
            return Choice({**source, "codes": given}, "; ".join(reasons), review=bool(guessed))
        if len(source) == 1:
            return Choice(_short(found))
        return Choice(source)

    def _coded_elsewhere(self, table: CatalogTable, column: str) -> Choice | None:
        """Return the value in a table that the relation refers to, such as a table of groups."""
        main = {match.table.name for match in self._matches.values()}
        wanted = {"utility_group": {"group", "dealership", "tariff"}, "evidence_type": {"type"}}[column]
        fallback: Choice | None = None
        for reference in table.references:
            other = self._catalog[reference.table]
            if other.name in main:
                continue
            for each in fields_of(other, self._samples):
                if each.family not in {"text", "enum"} or each.path:
                    continue
                values = self._samples.values(each)
                _, unknown = codes.decoded(column, values, each.column.comment)
                source = {
                    "column": each.column.name, "table": other.name, "key": reference.key, "by": reference.column,
                }  # fmt: skip
                if values and len(unknown) < len(values) / 2:
                    return self._with_codes(column, each, source)
                named_so = wanted & set(tokens(reference.column) + tokens(other.plain_name))
                if (
                    named_so
                    and ("name" in tokens(each.name) or wanted & set(tokens(each.name)))
                    and fallback is None
                ):
                    fallback = self._with_codes(column, each, source)
        return fallback

    def _payer(self, match: Match) -> Choice:
        column = "is_client_financial_responsible"
        found = match.fields.get(column)
        if found is None:
            return self._payer_elsewhere(match.table)
        said = set(tokens(found.name))
        inverted = "other" in said
        if found.family == "boolean":
            if not inverted:
                return Choice(_short(found))
            return Choice({**_plain(found), "codes": {"true": False, "false": True}}, "by its name", review=True)
        values = self._samples.values(found)
        stated = {code: codes.flag(meaning) for code, meaning in codes.stated(found.column.comment).items()}
        known = {value.rstrip(): codes.flag(value) for value in values} | stated
        given = {code: (meaning != inverted) for code, meaning in known.items() if meaning is not None}
        for pair in (("S", "N"), ("Y", "N"), ("1", "0"), ("T", "F"), ("true", "false")):
            if set(given) & set(pair) and set(given) <= set(pair):
                given = {pair[0]: not inverted, pair[1]: inverted}
        given |= dict.fromkeys((code for code, meaning in known.items() if meaning is None), TODO)  # type: ignore[arg-type]
        return Choice({**_plain(found), "codes": given}, "by its name" if inverted else "", review=inverted)

    def _payer_elsewhere(self, table: CatalogTable) -> Choice:
        if self._people is not None:
            return self._people.of_payer()
        clients = self._matches["clients"].table if "clients" in self._matches else None
        found = payer_of(self._catalog.values(), table, clients)
        return found or Choice({"sql": TODO}, "is the client the one who pays? nothing was found")

    def _partner(self, match: Match) -> Choice:
        table = match.table
        for reference in table.references:
            other = self._catalog[reference.table]
            if "partner" in tokens(reference.column) + tokens(other.plain_name):
                names = [each for each in other.columns.values() if each.family == "text"]
                best = max(names, key=lambda each: _how_namely(each.name), default=None)
                if best is not None:
                    return _looked_up(best.name, other, reference.key, reference.column)
        found = match.fields.get("partner")
        return Choice(_short(found)) if found is not None else Choice(ABSENT)


def _looked_up(wanted: str | None, other: CatalogTable, key: str, by: str) -> Choice:
    if wanted is None:
        return Choice({"sql": TODO})
    return Choice(by if wanted == key else {"column": wanted, "table": other.name, "key": key, "by": by})


def _is_the_word(column: str, code: str) -> bool:
    """Tell whether a code is the contract's own word, only written otherwise."""
    meaning = codes.MEANINGS[column][0](code)
    return meaning is not None and "".join(filter(str.isalnum, code)).lower().endswith(
        "".join(filter(str.isalnum, meaning)).lower()
    )


def _is_public(column: Column, key: Column | None, table: CatalogTable, samples: Samples) -> bool:
    if column.family != "text" or column is key or not (column.unique or column.required):
        return False
    said = set(tokens(column.name))
    if not said & {"code", "number"} and not (said <= {"sale", "id", "key", "external"} and column.unique):
        return False
    if {"client", "partner", "group", "dealership", "installation", "document", "zip", "phone"} & said:
        return False
    return column.unique or len(samples.values(Field(table, column))) > 1


def _how_public(column: Column) -> tuple[bool, bool, bool]:
    said = set(tokens(column.name))
    return column.unique, "code" in said, "number" in said


def _how_namely(name: str) -> int:
    said = set(tokens(name))
    return 2 * ("name" in said) + bool(said & {"fantasia", "trade", "display"}) + bool(said & {"razao", "title"})


def _plain(found: Field) -> dict[str, Any]:
    return {"column": found.column.name} | ({"json_path": list(found.path)} if found.path else {})


def _short(found: Field) -> str | dict[str, Any]:
    return _plain(found) if found.path else found.column.name


def _part_of_name(found: Field | None, column: str) -> Choice:
    if found is None:
        return Choice(ABSENT)
    text = found.expression
    sql = f"split_part({text}, ' ', 1)" if column == "first_name" else f"substring({text} FROM ' (.*)$')"
    return Choice({"sql": sql}, "one column holds the whole name", review=True)


def _used(drafted: DraftedRelation) -> set[str]:
    """Return the columns of its table that the relation reads."""
    assert drafted.table is not None
    used: set[str] = set()
    for choice in drafted.choices.values():
        source = choice.source
        if isinstance(source, str):
            used.add(source)
            continue
        by = source.get("by")
        names = [by] if by else [source.get(part) for part in ("column", "date", "time", "folder", "name")]
        used |= {str(name) for name in names if name}
        if "sql" in source:
            used |= {column for column in drafted.table.columns if quoted(column) in source["sql"]}
    if drafted.where is not None:
        used |= {column for column in drafted.table.columns if quoted(column) in str(drafted.where.source)}
    return used
