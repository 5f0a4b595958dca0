"""Groups, types, flags and partners: where they stand, and what their codes mean."""

from collections.abc import Iterator, Mapping
from itertools import permutations
from typing import Any, Final

from toolkit.storage.service_map.catalog import CatalogTable, Column, Reference
from toolkit.storage.service_map.draft import codes
from toolkit.storage.service_map.draft.choices import ABSENT, Choice
from toolkit.storage.service_map.draft.composed import composed_type
from toolkit.storage.service_map.draft.matching import GOOD, Match, named, score
from toolkit.storage.service_map.draft.people import People, payer_of
from toolkit.storage.service_map.draft.pivots import VALUE
from toolkit.storage.service_map.draft.references import kinds_and_keys, references_of
from toolkit.storage.service_map.draft.samples import Field, Samples, fields_of
from toolkit.storage.service_map.draft.vocabulary import tokens, words
from toolkit.storage.service_map.expressions import literal, quoted
from toolkit.storage.service_map.model import TODO

_WANTED: Final = {"utility_group": {"group", "dealership", "tariff"}, "evidence_type": {"type"}}
_RELATION: Final = {"utility_group": "sales", "evidence_type": "evidences"}
_GUESSED: Final = "by its name: no foreign key says so"
_BY_VALUES: Final = "by its values: its name does not say so"


class Coded:
    """The columns of the contract whose values are codes, and the partner's name."""

    def __init__(self, matches: Mapping[str, Match], samples: Samples) -> None:
        self._matches, self._samples = matches, samples

    def column(self, match: Match, column: str) -> Choice:
        """Return the choice for ``utility_group`` or ``evidence_type``."""
        found = match.fields.get(column)
        here = None
        if found is not None:
            guess = "" if column == "evidence_type" or named("sales", column, found) else _BY_VALUES
            here = self._with_codes(column, found, found.source, guess)
        if here is not None and not here.open:
            return here
        elsewhere = self._elsewhere(match.table, column)
        if elsewhere is not None and (here is None or not elsewhere.open):
            return elsewhere
        if here is None and column == "utility_group" and (beside := self._group_beside(match.table)) is not None:
            return beside
        if column == "evidence_type" and (made := composed_type(match, self._samples)) is not None:
            return made
        wanted = f"one of {', '.join(codes.MEANINGS[column][1])}; nothing was found"
        return here or Choice({"sql": TODO}, f"{wanted}{self._perhaps(match, column)}")

    def payer(self, match: Match, people: People | None) -> Choice:
        """Return the choice for ``is_client_financial_responsible``."""
        found = match.fields.get("is_client_financial_responsible")
        if found is not None and all(kind is not found.column for kind, _ in kinds_and_keys(match.table)):
            return self._flag(found)
        if people is not None:
            return people.payer
        if (beside := self._payer_beside(match.table)) is not None:
            return beside
        clients = self._matches.get("clients")
        cpf = None if clients is None else clients.fields.get("cpf")
        own_cpf = None if cpf is None or cpf.path else cpf.column.name
        elsewhere = payer_of(match.table, None if clients is None else clients.table, own_cpf, self._samples)
        perhaps = self._perhaps(match, "is_client_financial_responsible")
        why = f"is the client the one who pays? nothing was found{perhaps}"
        return elsewhere or Choice({"sql": TODO}, why)

    def _payer_beside(self, sales: CatalogTable) -> Choice | None:
        """Return the choice where a table with at most one row for each sale tells who pays."""
        for field, row in self._beside(sales, "is_client_financial_responsible"):
            said = self._flag(field)
            return Choice({**self._whole(said.source), **row}, said.why, review=said.review)
        return None

    def _group_beside(self, sales: CatalogTable) -> Choice | None:
        """Return the choice where rows of the sale, such as its attributes, tell the group."""
        for field, row in self._beside(sales, "utility_group"):
            why = "" if field.table.name in self._samples.catalog else "by an attribute of the sale"
            return self._with_codes("utility_group", field, row, why)
        for table, reference in self._naming(sales):
            for field in fields_of(table, self._samples):
                if field.path or score("sales", "utility_group", field, self._samples) < _SURE:
                    continue
                owner, group = quoted(reference.column), quoted(field.column.name)
                each = f"SELECT {owner}, string_agg(DISTINCT {group}::text, '/') AS {group}"
                rows = f"({each} FROM {table.name} GROUP BY {owner}) AS lines"
                row = {"column": field.column.name, "table": rows, "key": reference.column, "by": reference.key}
                why = f"of all rows of {table.name} for a sale"
                return self._with_codes("utility_group", field, row, why)
        return None

    def _beside(self, sales: CatalogTable, column: str) -> Iterator[tuple[Field, dict[str, str]]]:
        """Yield the fields for a column in tables with at most one row for each sale, and their lookups."""
        naming = list(self._naming(sales))
        for table, reference in [*naming, *self._attributes(naming, column)]:
            once = not self._samples.repeats(Field(table, table.columns[reference.column]))
            for field in fields_of(table, self._samples) if once else ():
                if score("sales", column, field, self._samples) >= _SURE:
                    row = _lookup(field.column.name, table, reference)
                    yield field, row | {"key": reference.column, "by": reference.key}

    def _naming(self, sales: CatalogTable) -> Iterator[tuple[CatalogTable, Reference]]:
        """Yield the tables whose rows name sales, with the references to them."""
        for table in self._samples.catalog.values():
            for reference in references_of(table, self._samples):
                if reference.table == sales.name:
                    yield table, reference

    def _attributes(
        self, naming: list[tuple[CatalogTable, Reference]], column: str
    ) -> Iterator[tuple[CatalogTable, Reference]]:
        """Yield queries for the rows of one attribute, where a table has a row for each attribute of a sale."""
        for table, reference in naming:
            owner = table.columns[reference.column]
            texts = [each for each in table.columns.values() if each.family in {"text", "enum"}]
            for name, value in permutations([each for each in texts if each is not owner], 2):
                kinds = [Field(table, owner), Field(table, name)]
                if not set(words(value.name)) & VALUE or self._samples.repeats_together(kinds):
                    continue
                for kind in self._samples.values(kinds[1]):
                    shown = f"{quoted(owner.name)}, {quoted(value.name)} AS {quoted(kind)}"
                    rows = f"(SELECT {shown} FROM {table.name} WHERE {quoted(name.name)}::text = {literal(kind)})"  # noqa: S608
                    columns = {owner.name: owner, kind: Column(kind)}
                    found = CatalogTable(rows, kind, columns=columns, references=[reference])
                    if named("sales", column, Field(found, columns[kind])) >= GOOD:
                        yield found, reference

    def _perhaps(self, match: Match, wanted: str) -> str:
        """Name the columns with few short values, or with a fitting name, that nothing was taken from."""
        relation = _RELATION.get(wanted, "sales")
        taken = {field.column.name for field in match.fields.values()}
        found = []
        for column in match.table.columns.values():
            named_row = column.key or column.unique or match.table.reference(column.name) is not None
            if column.name in taken or named_row or column.family not in {"text", "enum", "integer", "number"}:
                continue
            values = [value.rstrip() for value in self._samples.values(Field(match.table, column))]
            if 0 < len(values) <= _FEW and all(len(value) <= _SHORT for value in values):
                found.append(f"{column.name} ({', '.join(values)})")
            elif column.labels or named(relation, wanted, Field(match.table, column)) >= GOOD:
                found.append(column.name)
        return f"; perhaps in {', '.join(found)}" if found else ""

    def partner(self, match: Match) -> Choice:
        """Return the choice for ``partner``."""
        for reference in references_of(match.table, self._samples):
            other = self._samples.catalog[reference.table]
            if "partner" not in tokens(reference.column) + tokens(other.says):
                continue
            names = [each for each in other.columns.values() if each.family == "text"]
            best = max(names, key=lambda each: _how_namely(each.name), default=None)
            if best is not None:
                person = "user" in tokens(other.says)
                why = f"{other.plain_name} may be people, and no partners" if person else ""
                return Choice(_lookup(best.name, other, reference), why, review=person)
        found = match.fields.get("partner")
        return Choice(found.source) if found is not None else Choice(ABSENT)

    def _with_codes(self, column: str, found: Field, source: str | Mapping[str, Any], guess: str = "") -> Choice:
        comment = f"{found.column.comment}; {found.table.comment}"
        known, unknown = codes.decoded(column, self._samples.values(found), comment)
        said = codes.stated(comment)
        guessed = [code for code in known if code not in said and not _is_the_word(column, code)]
        reasons = [guess] if guess else []
        if unknown:
            reasons.append("nothing explains what says TODO; a line taken out stays as it is and is never counted")
        if any(code in said for code in known):
            reasons.append("by the column's comment")
        if guessed:
            reasons.append(f"by their names: {', '.join(guessed)}")
        if known or unknown:
            source = {**self._whole(source), "codes": {**known, **dict.fromkeys(unknown, TODO)}}
        return Choice(source, "; ".join(reasons), review=bool(guessed or guess))

    @staticmethod
    def _whole(source: str | Mapping[str, Any]) -> Mapping[str, Any]:
        return {"column": source} if isinstance(source, str) else source

    def _elsewhere(self, table: CatalogTable, column: str) -> Choice | None:
        """Return the value in a table that the relation refers to, or in one that this refers to."""
        fallback: Choice | None = None
        for way in self._reached(table):
            reference, other = way[-1], self._samples.catalog[way[-1].table]
            main = other.name in {match.table.name for match in self._matches.values()}
            for each in fields_of(other, self._samples):
                if each.family not in {"text", "enum"} or each.path:
                    continue
                says = set(tokens(each.says))
                by_name = named(_RELATION[column], column, each) >= GOOD
                values = self._samples.values(each)
                _, unknown = codes.decoded(column, values, each.column.comment)
                if not by_name and (main or (len(way) > 1 and unknown)):
                    continue
                about = _WANTED[column] & set(tokens(reference.column) + tokens(other.says) + tokens(each.says))
                guess = _GUESSED if table.reference(way[0].column) is None else "" if about else _BY_VALUES
                here = _along(way, each.column.name, self._samples.catalog)
                if values and len(unknown) < len(values) / 2:
                    return self._with_codes(column, each, here, guess)
                described = about and ("name" in says or _WANTED[column] & says)
                if described and fallback is None and not (main and column == "evidence_type"):
                    fallback = self._with_codes(column, each, here, guess)
        return fallback

    def _reached(self, table: CatalogTable) -> Iterator[tuple[Reference, ...]]:
        """Yield the ways to other tables: one reference, or some by way of distributors and tariffs."""
        ways: list[tuple[Reference, ...]] = [
            (each,) for each in (*references_of(table, self._samples), *self._by_values(table))
        ]
        for way in ways:  # which grows by ways that are one reference longer
            yield way
            other = self._samples.catalog[way[-1].table]
            for each in references_of(other, self._samples) if len(way) < _FARTHEST else ():
                said = set(tokens(each.column) + tokens(self._samples.catalog[each.table].says))
                if each.table != table.name and said & _WANTED["utility_group"]:
                    ways.append((*way, each))

    def _by_values(self, table: CatalogTable) -> Iterator[Reference]:
        """Yield the tables of distributors and tariffs that a column names by a text, not by a key."""
        for column in table.columns.values():
            said, values = set(tokens(column.says)), set(self._samples.values(Field(table, column)))
            for other in self._samples.catalog.values() if values and column.family == "text" else ():
                if other is not table and said & _WANTED["utility_group"] & set(tokens(other.says)):
                    for key in other.columns.values():
                        field = Field(other, key)
                        if values <= set(self._samples.values(field)) and not self._samples.repeats(field):
                            yield Reference(column.name, other.name, key.name)

    def _flag(self, found: Field) -> Choice:
        said, spelled = set(tokens(found.says)), set(words(found.says))
        whose, inverted = bool(said & {"client", "same"}), bool(said & _NOT or said & {"other"} or spelled & _HAS)
        unsure = bool(said - _UNDERSTOOD - _HAS) or bool(spelled & (_HAS | _NOT) and whose)
        boolean, stated = found.family == "boolean", codes.stated(found.column.comment)
        values = ["true", "false"] if boolean else [value.rstrip() for value in self._samples.values(found)]
        numbered = bool(said & {"type", "status", "role"}) and all(value.isdigit() for value in values)
        truths = {} if numbered else codes.flags(values)

        def paid(text: str) -> bool | str:
            truth = codes.flag(text)
            meaning = codes.payer(text) if truth is None else truth != inverted
            return TODO if meaning is None else meaning

        given: dict[str, bool | str] = {code: truth != inverted for code, truth in truths.items()}
        # Of values that are no flag, T may be a third party, and 1 the first of several kinds.
        given = given or {value: TODO if codes.flag(value) is not None else paid(value) for value in values}
        given |= {code: paid(meaning) for code, meaning in stated.items()}
        if truths and unsure and not stated:
            given = dict.fromkeys(values, TODO)
        if TODO in given.values():
            return Choice({**found.members, "codes": given}, "does the client pay? say true or false")
        if truths:
            why = "by its name" if inverted else "" if whose else "does yes mean that the client pays?"
        else:
            guessed = [code for code in given if code not in stated]
            why = f"does the client pay? by their names: {', '.join(guessed)}" if guessed else ""
        plain = boolean and not inverted
        return Choice(found.source if plain else {**found.members, "codes": given}, why, review=bool(why))


_UNDERSTOOD: Final = {
    *("client", "same", "payer", "responsible", "financial", "flag", "other", "nao", "not"),
    *("type", "status", "role", "sale", "installation", "for", "o", "a", "es"),
}
"""Tokens of a flag's name that are understood; with another one, nobody knows what its yes means."""
_SURE: Final = 0.6
"""The certainty from which on a column of another table decides who pays."""
_FARTHEST: Final = 3
_FEW: Final = 12
_SHORT: Final = 4
_NOT: Final = {"nao", "not"}
_HAS: Final = {"has", "tem", "possui", "with", "com", "exige", "requer", "requires", "needs"}
"""Words that make a flag say that there is a payer besides the client."""


def _lookup(column: str, other: CatalogTable, reference: Reference) -> dict[str, str]:
    return {"column": column, "table": other.name, "key": reference.key, "by": reference.column}


def _along(way: tuple[Reference, ...], column: str, catalog: Mapping[str, CatalogTable]) -> dict[str, str]:
    """Return the lookup of a column at the end of a way, as a query where it leads by way of other tables."""
    first, last = way[0], way[-1]
    found = _lookup(column, catalog[last.table], first)
    if len(way) > 1:
        joined = "".join(
            f" JOIN {each.table} AS step_{place} ON step_{place}.{quoted(each.key)} = "
            f"step_{place - 1}.{quoted(each.column)}"
            for place, each in enumerate(way[1:], 1)
        )
        shown = f"step_0.{quoted(first.key)}, step_{len(way) - 1}.{quoted(column)}"
        found["table"] = f"(SELECT {shown} FROM {first.table} AS step_0{joined}) AS reached"  # noqa: S608
    return found


def _is_the_word(column: str, code: str) -> bool:
    """Tell whether a code is the contract's own word, only written otherwise."""
    meaning = codes.MEANINGS[column][0](code)
    written, word = ("".join(filter(str.isalnum, text)).lower() for text in (code, meaning or ""))
    return meaning is not None and written.endswith(word)


def _how_namely(name: str) -> int:
    said = set(tokens(name))
    return 2 * ("name" in said) + bool(said & {"fantasia", "trade", "display"}) + bool(said & {"razao", "title"})
