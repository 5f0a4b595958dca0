"""A first mapping for a database that nobody has described yet, with what could and could not be matched.

It goes in four steps, each over what the steps before it found::

    1. words and values
       vocabulary      what the words of names mean; ``words.toml`` holds them
       samples         the catalog, and some values of each column
       codes           what another system's codes stand for, by its comments or by plain names
       references      which tables a row names, by keys, by names, or by a kind and a key
       inherited       columns of a row that stand in the row of another table which it continues
    2. the table of each relation
       matching        the best table, and the field of it for each column
       derived         queries for a relation that no table holds; unions: files that stand in several tables
       pivots          queries over events, or over attributes in rows of their own
    3. rows and columns
       filters         which rows count; history: states that other rows keep, and the last of replicated rows
       identity        what stands for one row of a relation, and how other rows name it
       coded           codes, flags and partners, here or in another table; people: who pays
       composed         types by two columns together; types and sales by a part of the file's key
       places, times   the parts of a file's key and name; moments and their zone
    4. the file
       relations       the parts of each relation put together
       choices         one line of the file

Whatever is not read from the database itself is marked REVIEW; what only a person knows is marked TODO.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolkit.storage.database import Database
from toolkit.storage.service_map.draft.derived import derived_tables
from toolkit.storage.service_map.draft.history import read_last_rows
from toolkit.storage.service_map.draft.inherited import read_with_parents
from toolkit.storage.service_map.draft.matching import match_tables
from toolkit.storage.service_map.draft.relations import Drafting
from toolkit.storage.service_map.draft.samples import Samples
from toolkit.storage.service_map.draft.unions import union_of_files

__all__ = ["Draft", "draft_map"]


@dataclass(frozen=True)
class Draft:
    """The text of a mapping file; ``to_fill_in`` and ``to_review`` name its lines as ``relation.column``."""

    text: str
    to_fill_in: tuple[str, ...]
    to_review: tuple[str, ...]


def draft_map(
    database: Database,
    zone: str,
    holds: Callable[[str], bool] | None = None,
    folders: Sequence[str] = (),
) -> Draft:
    """Draft a mapping from the catalog and from some values of each column.

    Args:
        database: its tables are only read.
        zone: of bare times that nothing else is known about.
        holds: tells whether an object lies in the bucket under a key; ``None`` where there is no bucket to ask.
        folders: of the bucket, in which keys are looked for that do not name theirs.
    """
    with database.snapshot() as connection:
        samples = Samples(connection)
        read_last_rows(samples)
        read_with_parents(samples)
        tables = samples.catalog.values()
        matches = match_tables(tables, samples)
        if union := union_of_files(matches, samples):
            matches["evidences"] = union
        elif made := derived_tables(matches, samples):
            mixed = {name for each in made for name in each.parts}
            matches = match_tables([*(each for each in tables if each.name not in mixed), *made], samples)
        drafting = Drafting(matches, samples, zone, holds, folders)
        relations = drafting.relations()
    lines = [_HEAD, f"timezone = {drafting.zones.default.line}", ""]
    for relation in relations:
        lines += [*relation.lines(), ""]
    if others := drafting.unused_tables(relations):
        lines.append(f"# Tables that nothing was taken from: {', '.join(others)}")
    places = {f"{each.name}.{place}": choice for each in relations for place, choice in each.places()}
    to_fill_in = tuple(place for place, choice in places.items() if choice.open)
    to_review = tuple(place for place, choice in places.items() if choice.review)
    timezone = ("timezone",) if drafting.zones.default.review else ()
    return Draft("\n".join(lines).rstrip() + "\n", to_fill_in, timezone + to_review)


_HEAD: Final = Path(__file__).with_name("heading.toml").read_text(encoding="utf-8")
