"""The parts of each relation in a draft: keys, references, codes, filters, and what a new row needs."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from toolkit.storage.service_map.catalog import QUERY, CatalogTable
from toolkit.storage.service_map.draft.choices import ABSENT, Choice, toml
from toolkit.storage.service_map.draft.coded import Coded
from toolkit.storage.service_map.draft.codes import decoded
from toolkit.storage.service_map.draft.filters import rows_that_belong, settled, tenants, values_for_new_rows
from toolkit.storage.service_map.draft.identity import Identities
from toolkit.storage.service_map.draft.matching import GOOD, Match, matched, score
from toolkit.storage.service_map.draft.places import file_parts, rows_of_a_bucket
from toolkit.storage.service_map.draft.references import references_of
from toolkit.storage.service_map.draft.samples import Field, Samples, fields_of
from toolkit.storage.service_map.draft.times import Zones
from toolkit.storage.service_map.draft.vocabulary import MEANINGS, QUESTIONS, tokens
from toolkit.storage.service_map.expressions import literal, quoted
from toolkit.storage.service_map.model import DEMANDED, NEEDED, TODO

_TIMES: Final = {"created_at", "completed_at", "requested_at", "expires_at"}


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
    notes: list[str] = field(default_factory=list)
    """The reason to settle in ``where``: rows may be read that do not count."""
    reasons: list[str] = field(default_factory=list)
    """The reason for somebody to look at its table."""
    question: str = ""
    """The question that has to be answered before any table can be named."""

    @property
    def from_(self) -> Choice:
        """Its table or query; where a question has to be answered first, the question."""
        if self.question or self.table is None:
            return Choice(TODO if self.question else "", self.question)
        return Choice(self.table.name, "; ".join(self.reasons), review=bool(self.reasons))

    def places(self) -> Iterator[tuple[str, Choice]]:
        """Yield the choices by their names in the file; a table that has to be filled in is not only reviewed."""
        yield "from", replace(self.from_, review=self.from_.review and not self.from_.open)
        where = self.where or Choice("true")
        yield "where", replace(where, review=where.review or bool(self.notes))
        yield from self.choices.items()

    @property
    def shows_query(self) -> bool:
        """Tell whether a query is shown beside the question, to be taken or mended."""
        return bool(self.question and self.table is not None and self.table.kind == QUERY and self.table.columns)

    def lines(self) -> Iterator[str]:
        """Yield the lines of the relation in the file."""
        yield f"[{self.name}]"
        if self.table is None:
            yield "absent = true  # REVIEW: no table was found for it"
            return
        yield f"from = {self.from_.line}"
        if self.shows_query:
            yield from (f"# {line}" for line in f"from = '''{self.table.name}'''".split("\n"))
        if self.where is not None:
            yield f"where = {self.where.line}"
        yield from (f"# REVIEW: {note} add it to where" for note in self.notes)
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
        matches: Mapping[str, Match],
        samples: Samples,
        zone: str,
        holds: Callable[[str], bool] | None,
        folders: Sequence[str],
    ) -> None:
        self._matches, self._samples, self._holds, self._folders = matches, samples, holds, folders
        self.zones = Zones(samples.catalog, zone)
        self._where = {name: self._rows(name) for name in matches}
        self._identities, self._coded = Identities(matches, samples), Coded(matches, samples)

    def relations(self) -> list[DraftedRelation]:
        """Return all of them, in the order of the contract."""
        self.zones.settle([self._matches[name] for name in NEEDED if name in self._matches], self._samples)
        relations = [self._relation(name) for name in NEEDED]
        questioned = {each.table.name: each for each in relations if each.table is not None and each.question}
        for relation in relations:
            for column, choice in relation.choices.items():
                source = choice.source
                read = source.get("table", "") if isinstance(source, Mapping) else ""
                named = next((each for name, each in questioned.items() if name in read), None)
                if isinstance(source, Mapping) and named is not None and named.shows_query:
                    why = f"the query of [{named.name}] again: where it is mended, so is this"
                    relation.choices[column] = Choice({**source, "table": re.sub(r"\n *", " ", read)}, why, True)
                elif isinstance(source, Mapping) and named is not None:
                    why = f"the table or the query that from of [{named.name}] names"
                    relation.choices[column] = Choice({**source, "table": TODO}, why)
        return relations

    def unused_tables(self, relations: list[DraftedRelation]) -> list[str]:
        """Return the tables that no relation reads."""
        text = "\n".join(line for relation in relations for line in relation.lines())
        return [name for name in self._samples.catalog if name not in text]

    def _relation(self, name: str) -> DraftedRelation:
        match = self._matches.get(name)
        if match is None:
            if name in {"clients", "addresses"}:
                return DraftedRelation(name, None)
            choices = {
                column.name: Choice(TODO, QUESTIONS[column.name]) if column.name in QUESTIONS else Choice(ABSENT)
                for column in NEEDED[name].columns
            }
            question = f"no table looks like the {name} of the contract: name it, or a query, as (SELECT ...)"
            where = Choice(TODO, "which rows count? none that was deleted or cancelled; true for all")
            return DraftedRelation(name, CatalogTable(TODO, TODO), choices, where, question=question)
        drafted = DraftedRelation(name, match.table, question=match.table.question)
        files = file_parts(match, self._samples, self._holds, self._folders) if name == "evidences" else {}
        for column in NEEDED[name].columns:
            drafted.choices[column.name] = files.get(column.name) or self._choice(name, match, column.name)
        drafted.where = self._where[name]
        owner = next((each for (relation, _), each in self._identities.owners.items() if relation == name), None)
        if owner is not None:
            drafted.where = owner.added_to(drafted.where)
        used = _used(drafted)
        drafted.unused = [column for column in match.table.columns if column not in used]
        drafted.where, note = settled(
            name, match.table, drafted.where, drafted.unused, self._samples, self._histories_of_others(name)
        )
        drafted.notes += [note] if note else []
        if several := tenants(match.table, self._samples):
            drafted.notes.append(f"rows of several tenants are read, by {several}; for one,")
        drafted.reasons += [why for why in (match.table.made, _KEPT_ELSEWHERE.get(match.table.kind)) if why]
        alike = self._samples.alike(match.table)
        if alike:
            drafted.reasons.append(f"built alike, and not read: {', '.join(other.name for other in alike)}")
        rivals = list(dict.fromkeys(self._rivals(name, match)))
        others_hold = self._samples.rows_of_their_own(match.table, alike)
        if others_hold or (others_hold := self._samples.kept_apart(match.table)):
            drafted.question = _which(match.table, others_hold)
        elif rivals:
            others = ", ".join(map(self._samples.counted, rivals))
            drafted.question = (
                f"which holds the {name}, {self._samples.counted(match.table)} or {others}? name it, or a query "
                f"of both; the lines below read {match.table.name}"
            )
            if name == "sales":
                drafted.where = Choice(TODO, "which rows count? none that was deleted or cancelled; true for all")
                for asked in ("id", "completed_at"):
                    drafted.choices[asked] = Choice(
                        {"sql": TODO}, f"{QUESTIONS[asked]} (of the rows that from names)"
                    )
        if unread := [rival for rival in match.rivals if rival not in rivals]:
            why = f"{self._samples.counted(match.table)} fits, and so do "
            drafted.reasons.append(f"{why}{', '.join(map(self._samples.counted, unread))}, which are not read")
        if name == "evidences" and (match.table.kind != QUERY or match.table.parts):
            beside = ", ".join(table.name for table in self._tables_of_files("sales", match.table))
            drafted.reasons += [f"hold files of sales too, and are not read: {beside}"] if beside else []
        sharing = {relation: other for relation, other in self._matches.items() if other.table is match.table}
        if (len(sharing) == 1 or (name == "clients" and "addresses" in sharing)) and match.table.kind != QUERY:
            taken = {field.column.name for other in sharing.values() for field in other.fields.values()}
            rest = [match.table.columns[column] for column in drafted.unused if column not in taken]
            drafted.insert, drafted.update = values_for_new_rows(rest, self.zones)
            if owner is not None and len(owner.values) == 1:
                drafted.insert[owner.kind.name] = literal(owner.values[0])
            own_id = self._identities.column(name)
            key = next((column for column in match.table.columns.values() if column.key), None)
            if key is not None and key.name != own_id and key.family == "uuid" and not key.filled:
                drafted.insert[key.name] = "gen_random_uuid()"
        return drafted

    def _rows(self, name: str) -> Choice | None:
        """Return the rows that belong to a relation, and look at no others from now on."""
        table = self._matches[name].table
        where = rows_that_belong(name, table, self._samples, self._histories_of_others(name))
        if where is not None:
            self._samples.narrow(table, str(where.source))
        if name != "evidences":
            return where
        if (asked := rows_of_a_bucket(self._matches[name], self._samples, self._holds)) is not None:
            self._samples.narrow(table, asked[1] or "true")
            known = "" if where is None else f"{where.source} AND "
            return Choice(known + TODO, f"which rows count? {asked[0]}")
        return where

    def _histories_of_others(self, name: str) -> tuple[str, ...]:
        """Return the table of the files, whose histories are not those of its sales."""
        return (self._matches["evidences"].table.name,) if name == "sales" and "evidences" in self._matches else ()

    def _rivals(self, name: str, match: Match) -> Iterator[CatalogTable]:
        """Yield the tables that may hold the same: sales under another word, or evidence of the sales' clients."""
        taken = match.table
        for table in self._samples.catalog.values() if name == "sales" else ():
            ways = [(table, taken), (taken, table)]
            linked = any(each.table == other.name for one, other in ways for each in one.references)
            files = self._matches["evidences"].table if "evidences" in self._matches else taken
            if table is taken or table is files or table.name in files.parts:
                continue
            part = any(each.table == taken.name for each in table.references)  # as the lines of an order are
            if (
                part
                and set(tokens(taken.says)) < set(tokens(table.says))
                and tokens(table.says).count("sale") == 1
            ):
                continue
            if linked and set(tokens(table.says)) & MEANINGS == {"sale"}:
                yield table
        if name == "sales" and not match.is_named:
            yield from match.rivals
        for table in self._tables_of_files("clients", taken) if name == "evidences" else ():
            found = matched(name, table, self._samples).fields.get("evidence_type")
            values = [] if found is None else self._samples.values(found)
            if found is not None and len(decoded("evidence_type", values, found.column.comment)[1]) < len(values):
                yield table

    def _tables_of_files(self, target: str, taken: CatalogTable) -> Iterator[CatalogTable]:
        """Yield the other tables that name rows of a relation and hold keys of files."""
        named = self._matches[target].table.name if target in self._matches else None
        read = {match.table.name for match in self._matches.values()} | set(taken.parts)
        for table in self._samples.catalog.values():
            if table.name in read or table.columns.keys() == taken.columns.keys():
                continue
            if any(reference.table == named for reference in references_of(table, self._samples)) and any(
                score("evidences", "object_key", field, self._samples) >= GOOD
                for field in fields_of(table, self._samples)
            ):
                yield table

    def _choice(self, name: str, match: Match, column: str) -> Choice:
        if column == "id":
            return self._identities.id(name)
        if (name, column) in {("addresses", "client_id"), ("sales", "client_id"), ("evidences", "sale_id")}:
            return self._identities.reference(name, "sales" if column == "sale_id" else "clients")
        if column == "utility_group" or column == "evidence_type":
            return self._coded.column(match, column)
        if column == "is_client_financial_responsible":
            return self._coded.payer(match, self._identities.people)
        if column == "partner":
            return self._coded.partner(match)
        found = match.fields.get(column)
        if column in _TIMES:
            return self.zones.time(name, match.table, column, found, self._samples)
        if name == "clients" and column in {"first_name", "last_name"} and "last_name" not in match.fields:
            return _part_of_name(match.fields.get("first_name"), column)
        if found is None:
            return Choice({"sql": TODO}, "nothing was found") if column in DEMANDED[name] else Choice(ABSENT)
        places, said = _DIGITS.get(column, (0, ""))
        if said and found.family != "text":
            return Choice({**found.members, "mask": "#" * places}, f"a number: {said} digits, zeros in front")
        mask = _mask(self._samples.values(found), places)
        if mask:
            return Choice({**found.members, "mask": mask}, "the digits of what is written with a mask")
        return Choice(found.source)


_DIGITS: Final = {"cpf": (11, "eleven"), "zip_code": (8, "eight"), "phone_number": (11, "")}
"""The digits of what may be written with a mask; and how many a number stands for, which has lost its zeros."""


_KEPT_ELSEWHERE: Final = {
    "m": "a materialised view: a copy of what there was when it was refreshed last",
    "f": "a table of another database",
}
"""The reasons to look at a table whose rows are not kept in this database, or not as they are."""


def _mask(values: list[str], places: int) -> str:
    """Return the form in which most values are written; nothing where they are digits alone."""
    shapes = Counter(re.sub("[0-9]", "#", value.strip()) for value in values)
    masks = [
        shape
        for shape, _ in shapes.most_common()
        if places and re.fullmatch(r"[#() ./+-]+", shape) and shape.count("#") == places
    ]
    return masks[0] if set(masks) - {"#" * places} else ""


def _which(table: CatalogTable, others: list[CatalogTable]) -> str:
    names = [table.name, *(other.name for other in others)]
    same = all(other.columns.keys() == table.columns.keys() for other in others)
    common = [quoted(each) for each in table.columns if all(each in other.columns for other in others)]
    union = " UNION ALL ".join(f"SELECT {'*' if same else ', '.join(common)} FROM {name}" for name in names)  # noqa: S608
    return f"{' and '.join(names)} are built alike: name the one to read; or, where no key repeats, all: ({union})"


def _part_of_name(found: Field | None, column: str) -> Choice:
    if found is None:
        return Choice(ABSENT)
    text = found.expression
    sql = f"split_part({text}, ' ', 1)" if column == "first_name" else f"substring({text} FROM ' (.*)$')"
    return Choice({"sql": sql}, "one column holds the whole name", review=True)


def _used(drafted: DraftedRelation) -> set[str]:
    """Return the columns of its table that the relation reads."""
    assert drafted.table is not None
    texts = [] if drafted.where is None else [str(drafted.where.source)]
    for choice in drafted.choices.values():
        source = {"column": choice.source} if isinstance(choice.source, str) else choice.source
        parts = [source["by"]] if "by" in source else [source.get(part) for part in _NAMING]
        texts += [source.get("sql", ""), *(quoted(str(part)) for part in parts if part)]
    return {column for column in drafted.table.columns if any(quoted(column) in text for text in texts)}


_NAMING: Final = ("column", "date", "time", "folder", "name", "media_type_of")
"""The parts of a source that name columns of its own table."""
