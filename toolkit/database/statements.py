"""Tell what a statement of ``service.sql``, or the SELECT of a view, reads and makes of it, by its syntax tree."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final

_CHANCE: Final = re.compile(
    r"(?i)\b(gen_random_uuid|uuid_generate_v[14]\w*|uuidv[47]|random|nextval|row_number(?=\(\) OVER \(\)))\("
)
_POSIX_ZONE: Final = re.compile(r"(?i)(?:UTC|GMT)?\s*[+-]\d.*|[A-Z/]*-\d.*")
_NAME: Final = r"""(?:"(?:[^"]|"")*"|\b[^\W\d][\w$]*)"""


@cache
def tree_of(statement: str) -> Any:
    """Return the syntax tree, ``None`` where sqlglot does not know the syntax: nothing is found in it then."""
    import sqlglot  # the contract's own tables are read without it
    from sqlglot.optimizer.normalize_identifiers import normalize_identifiers

    written = re.sub(r"(?i)\bOVERRIDING\s+(?:SYSTEM|USER)\s+VALUE\b", "", statement)
    try:
        tree = normalize_identifiers(sqlglot.parse_one(written, read="postgres"), "postgres")
    except sqlglot.errors.SqlglotError:
        return None
    return None if tree.key == "command" else tree


@cache
def nodes(statement: str, *kinds: str) -> list[Any]:
    """Return the parts of the tree that are of these kinds, as sqlglot calls them."""
    tree = tree_of(statement)
    return [] if tree is None else [node for node in tree.walk() if node.key in kinds]


def tables_in(statement: str) -> list[str]:
    """Return the names of the tables that a statement reads or writes, with the schema where one stands there."""
    within = {id(node): part.alias for part in nodes(statement, "cte") for node in part.walk()}
    found: dict[str, int] = {}
    for table in nodes(statement, "table"):
        is_part = not table.db and table.name in {*within.values()} - {within.get(id(table))}
        if table.this.key == "identifier" and not is_part:
            found.setdefault(".".join(part.sql("postgres") for part in table.parts), table.this.meta["start"])
    return sorted(found, key=found.__getitem__)


def columns_in(statement: str) -> set[tuple[str, str]]:
    """Return the columns that a statement names, each with the name of its table, blank where that is not said."""
    tables = {name.rpartition(".")[2].strip('"') for name in tables_in(statement)}
    called = {each.alias_or_name: each.name for each in nodes(statement, "table") if each.name in tables}
    called[""] = min(tables) if len(tables) == 1 else ""
    return {(called.get(each.table, ""), each.name) for each in nodes(statement, "column")}


def functions_in(statement: str) -> list[str]:
    """Return the names before parentheses, with the schema where one stands there; keywords are among them."""
    return re.findall(rf"({_NAME}(?:\s*\.\s*{_NAME})?)\s*\(", re.sub("'(?:[^']|'')*'", "''", statement))


def sources_of(statement: str, column: str) -> list[str]:
    """Return the table that a column comes from, in each part of a UNION: the first one where none is named."""
    found = []
    for value in _values(statement, column):
        given = value.parent_select.args
        around = [each.this for each in (given.get("from_"), *given.get("joins", ())) if each is not None]
        of = {node.table for node in value.walk() if node.key == "column"}
        for origin in sorted(around, key=lambda each: each.alias_or_name not in of)[:1]:
            within = [each for each in origin.walk() if each.key == "select" and _whole(each) is origin]
            found += [each.args["from_"].this for each in within if each.args.get("from_")] or [origin]
    tables = tables_in(statement)
    names = (".".join(part.sql("postgres") for part in each.parts) for each in found if each.key == "table")
    return [name for name in names if name in tables] or tables[:1]


def _whole(query: Any) -> Any:
    """Return the UNION that a SELECT is a part of, and the parentheses around it, or itself."""
    while query.parent is not None and query.parent.key in ("union", "except", "intersect", "subquery"):
        query = query.parent
    return query


def cut_off(statement: str) -> str | None:
    """Return the words, such as ``LIMIT``, by which a statement yields some of its rows alone, if there are some.

    Which rows ``DISTINCT ON`` and ``row_number()`` choose is left to chance where no order is given.
    """
    for each in nodes(statement, "limit", "fetch", "offset", "tablesample", "distinct", "window"):
        given, around = each.args, _whole(each.parent).parent
        order = (given if each.key == "window" else each.parent.args).get("order")
        if each.key == "window":
            chooses = each.this.key in ("rownumber", "firstvalue", "lastvalue")
            if chooses and given.get("partition_by") and not order:
                return str(each.this.sql("postgres")).partition("(")[0].lower() + "() without ORDER BY"
        elif each.key == "distinct":
            if given.get("on") and len(order.expressions if order else ()) <= len(given["on"].expressions):
                return "DISTINCT ON without ORDER BY of more columns"
        elif around is not None and around.key == "lateral":
            if not order:
                return "LIMIT without ORDER BY"
        else:
            number = given.get("count") or given.get("expression")
            many = number is not None and number.is_int and int(number.this) >= (1 if each.key == "offset" else 2)
            if (
                around is None
                or (many and around.key in ("from", "join", "cte", "in"))
                or each.key == "tablesample"
            ):
                return str(each.key).upper()
    return None


def columns_of(statement: str, column: str) -> set[str]:
    """Return the names of the columns that a column is made of."""
    parts = (part for value in _within(statement, column) for part in value.walk())
    return {part.name for part in parts if part.key == "column"}


def taken_of_several(statement: str, columns: Iterable[str]) -> list[str]:
    """Return the words by which a value is one of several: whichever comes first, or the greatest in columns."""
    values = [value for each in columns for value in _within(statement, each)]
    parts = (part for value in values for part in value.walk())
    found = [str(part.sql("postgres")).partition("(")[0].lower() for part in parts if part.key in _GREATEST]
    found += [words for value in values for words in _ELEMENT.findall(value.sql("postgres"))]
    found += ["any_value"] * any(nodes(statement, "anyvalue"))
    within = (part for each in nodes(statement, "bracket") for part in each.this.walk())
    found += ["array_agg" for part in within if part.key == "arrayagg" and part.this.key != "order"]
    for each in nodes(statement, "limit", "fetch"):
        around = _whole(each.parent).parent
        if around is not None and around.key not in _ROWS and not each.parent.args.get("order"):
            found.append(str(each.key).upper())
    return list(dict.fromkeys(found))


_ELEMENT: Final = re.compile(
    r"""(?<=[\w"])\[-?\d+\]|->>?\s*-?\d+|#>>?(?=\s*'\{(?:[^']*,)?-?\d+[,}])|JSONB_PATH_QUERY_FIRST"""
)
"""A number by which one element of an array is taken, in SQL as sqlglot writes it."""

_GREATEST: Final = ("max", "min", "logicalor", "logicaland")
_ROWS: Final = ("exists", "in", "from", "join", "cte", "lateral")
"""The places of a subquery that is read as rows, see ``cut_off``; in any other one it is a value."""


def answers_of_nothing(statement: str, column: str) -> list[str]:
    """Return the words by which a column has a value where a row or value is missing, such as ``EXISTS``."""
    parts = (
        part
        for value in _within(statement, column)
        for part in value.walk(prune=lambda each: each.key == "where")
        if part.key == "exists"
        or (part.key == "in" and part.args.get("query"))
        or (part.key == "is" and part.expression.key == "null")
        or (part.key == "coalesce" and part.parent and _TEST.fullmatch(part.parent.key))
    )
    return list(dict.fromkeys("IS NULL" if part.key == "is" else str(part.key).upper() for part in parts))


def posix_zone(statement: str) -> str | None:
    """Return the time zone that is written as an offset, which POSIX counts to the west."""
    zones = [each.args["zone"] for each in nodes(statement, "attimezone")]
    called = (each.expressions for each in nodes(statement, "anonymous") if each.name.lower() == "timezone")
    zones += [given[0] for given in called if given]
    return next((each.name for each in zones if each.is_string and _POSIX_ZONE.fullmatch(each.name)), None)


def is_null(statement: str, column: str) -> bool:
    """Tell whether a column is NULL, in every part of a UNION."""
    return {each.key for value in _values(statement, column) for each in _branches(value)} == {"null"}


def chance(statement: str, column: str) -> str | None:
    """Return the function by which a column is another value at each reading."""
    found = (_CHANCE.search(each.sql("postgres")) for each in _values(statement, column))
    return next((each[1].lower() for each in found if each), None)


def constants(statement: str, column: str) -> list[str]:
    """Return the texts that a column can become, as far as they stand in the statement: alone, or in a CASE."""
    found = (each for value in _values(statement, column) for each in _branches(value))
    return list(dict.fromkeys(each.name for each in found if each.is_string))


def defaults(statement: str, column: str, *, of_codes: bool = False) -> list[str]:
    """Return what a column becomes where nothing else fits; ``of_codes``: after ELSE in a CASE of codes alone."""
    values = [_bare(value) for value in (_values if of_codes else _within)(statement, column)]
    found = [] if of_codes else values[:]
    for each in (node for value in values for node in value.walk()):
        if each.key == "case" and (each.this or not of_codes):
            found += _branches(each.args.get("default"))
        elif each.key == "coalesce" and not of_codes:
            found += _branches(each.expressions[-1])
    texts = [each.sql("postgres") for each in found if each.key == "literal" and each not in values]
    texts += ["TRUE" for each in found if each.sql() == "TRUE" or each.key in ("neq", "nullsafeneq")]
    denied = (each.this.unnest() if each.key == "not" else each.args.get("negate") and each for each in found)
    texts += ["TRUE" for each in denied if each and (_is_code(each) or each.key not in ("column", "is", "exists"))]
    texts += ["FALSE" for each in found if not of_codes and (each.sql() == "FALSE" or _is_code(each.unnest()))]
    return list(dict.fromkeys(texts))


def _is_code(test: Any) -> bool:
    """Tell whether a condition, or a part of it, compares a value with a code that stands there."""
    if test.key in ("or", "and"):
        return any(_is_code(each.unnest()) for each in test.flatten())
    sides = test.iter_expressions() if _TEST.fullmatch(test.key) else ()
    kinds = ({part.key for part in each.walk()} for each in sides)
    return test.key == "nullsafeeq" or any(each.isdisjoint(("column", "null")) for each in kinds)


_TEST: Final = re.compile("eq|[gl]te?|between|i[ns]|similarto|jsonbp.*|.*(start|match|like|contain).*")
"""The names that sqlglot gives to comparisons: =, <, BETWEEN, IN, IS, LIKE, @> and their kind."""


def _bare(value: Any) -> Any:
    """Return a value without parentheses and casts, and that of a subquery."""
    while value is not None and value.key in ("paren", "cast", "collate", "subquery"):
        value = value.selects[0].unalias() if value.key == "subquery" else value.this
    return value


def _branches(value: Any) -> Iterator[Any]:
    """Yield what a CASE can become, or the value itself."""
    value = _bare(value)
    if value is not None and value.key == "case":
        for each in (*(branch.args["true"] for branch in value.args["ifs"]), value.args.get("default")):
            yield from _branches(each)
    elif value is not None:
        yield value


def _within(statement: str, column: str) -> list[Any]:
    """Return what a column is made of, and all that is selected under the names of the columns in that."""
    found, named = [*_values(statement, column)], set[str]()
    selected = [each for select in nodes(statement, "select") for each in select.selects]
    for value in found:  # it grows
        names = {part.name for part in value.walk() if part.key == "column"} - named
        named |= names
        found += (each.unalias() for each in selected if each.output_name in names)
    return found


def _values(statement: str, column: str, source: str | None = None, known: Any = None) -> list[Any]:
    """Return what a column, of the part ``source`` or any (blank), is made of, through UNION, subqueries, WITH."""
    known = {} if known is None else known
    known[column, source], found = None, list[Any]()  # None while it is looked for
    called = {each.alias_or_name: each.name for each in nodes(statement, "table")}
    for select in nodes(statement, "select"):
        whole = _whole(select)
        above = whole if whole.alias else whole.parent
        if (whole.parent is None) != (source is None) or source not in (None, "", above and above.alias):
            continue
        first = whole.find(type(select), bfs=False)
        names = (above and above.alias_column_names) or [each.output_name for each in first.selects]
        values = [value.unalias() for name, value in zip(names, select.selects, strict=False) if name == column]
        given = select.args
        alone = given["from_"].alias_or_name if given.get("from_") and not given.get("joins") else ""
        inner = [(value.name, value.table or alone) for value in values if value.key == "column"]
        inner += [(column, alone)] * select.is_star
        sources = [(name, called.get(of, of)) for name, of in inner]
        for of in sources:
            known[of] = known[of] if of in known else _values(statement, *of, known)
        traced = [each for of in sources for each in known[of] or ()]
        found += traced or values * all(known[of] is not None for of in sources)
    return found
