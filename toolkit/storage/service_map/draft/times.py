"""Find times, in one column or two, and the zone of those without one."""

import re
from collections.abc import Iterable, Mapping
from typing import Final
from zoneinfo import available_timezones

from toolkit.storage.service_map.catalog import QUERY, CatalogTable, Column
from toolkit.storage.service_map.draft import codes
from toolkit.storage.service_map.draft.choices import ABSENT, Choice
from toolkit.storage.service_map.draft.history import histories_of
from toolkit.storage.service_map.draft.matching import Match
from toolkit.storage.service_map.draft.references import meanings_of
from toolkit.storage.service_map.draft.samples import Field, Samples
from toolkit.storage.service_map.draft.vocabulary import tokens, words
from toolkit.storage.service_map.expressions import THIS, literal, quoted
from toolkit.storage.service_map.model import TODO

_NAMED_ZONE: Final = re.compile(r"\b(?:America|Europe|Etc)/\w+\b")
_UTC: Final = re.compile(r"\b(?:UTC|GMT|Zulu)\b", re.IGNORECASE)
_LOCAL: Final = re.compile(r"bras[ií]lia|s[aã]o paulo|hor[aá]rio local|hora local|local time", re.IGNORECASE)
_SAO_PAULO: Final = "America/Sao_Paulo"
_SAY_UTC: Final = {
    *("_prisma_migrations", "ar_internal_metadata", "schema_migrations", "knex_migrations", "ir_attachment"),
    "strapi_migrations",
}
"""Tables of libraries that write times without a zone in UTC."""


class Zones:
    """The zone of bare times, by what the database says of it; one for the file, others beside their columns."""

    def __init__(self, catalog: Mapping[str, CatalogTable], zone: str) -> None:
        self._zone = zone
        self._library = next((each.plain_name for each in catalog.values() if each.plain_name in _SAY_UTC), None)
        self.default = Choice(zone, "the zone of times that carry none; there are none here")

    def settle(self, matches: Iterable[Match], samples: Samples) -> None:
        """Choose the zone of the file from the tables that are read."""
        bare = [
            (match.table, column)
            for match in matches
            for column in match.table.columns.values()
            if column.family in {"timestamp", "time"}
            or any(_bare(field, samples) for field in match.fields.values() if field.column is column)
        ]
        said = [known for table, column in bare if (known := self._said(table, column)) is not None]
        if said:
            zones = [zone for zone, _ in said]
            zone = max(zones, key=zones.count)
            why = next(why for each, why in said if each == zone)
            self.default = Choice(zone, f"the zone of times that carry none: {why}")
        elif bare:
            self.default = Choice(
                self._zone, "the zone of times that carry none; nothing in the database says which", review=True
            )

    @property
    def zone(self) -> str:
        """The zone of the file."""
        return str(self.default.source)

    def _said(self, table: CatalogTable, column: Column) -> tuple[str, str] | None:
        defaults = " ".join(each.default for each in table.columns.values() if each.family != "timestamptz")
        told = {"a comment": f"{column.comment} {table.comment}", "the default of a column": defaults}
        for why, said in told.items():
            named = _NAMED_ZONE.search(said)
            zone = named[0] if named else "UTC" if _UTC.search(said) else None
            if zone or _LOCAL.search(said):
                return zone or _SAO_PAULO, f"so says {why}"
        if "utc" in words(column.name):
            return "UTC", "so says the name of a column"
        if column.family == "timestamp" and self._library is not None:
            return "UTC", f"the library of table {self._library} writes UTC"
        if column.family == "timestamp" and column.type.startswith("timestamp(3)"):
            return "UTC", "timestamp(3) is Prisma's, which writes UTC"
        return None

    def time(
        self, relation: str, table: CatalogTable, column: str, found: Field | None, samples: Samples
    ) -> Choice:
        """Return the choice for a time of the contract."""
        if found is None:
            if column == "completed_at":
                return _completed(table, samples)
            demanded = column in {"created_at", "requested_at"} and relation != "clients"
            return Choice({"sql": TODO}, "nothing was found") if demanded else Choice(ABSENT)
        source = found.members
        hour = _hour_of(table, found.column) if found.family == "date" or not found.path else None
        if hour is not None and found.family in {"date", "text"}:
            source = {"date": found.column.name, "time": hour.name}
        own = f"{THIS}.{quoted(found.column.name)}"
        place = _zone_of(table, samples) if found.family == "timestamp" else None
        if place is not None:
            own = f"{own} AT TIME ZONE {THIS}.{quoted(place.name)}"
        if column == "completed_at" and (none := no_moment(found, samples)):
            why = "a day that is too far away stands for none"
            return Choice({"sql": f"CASE WHEN NOT {none} THEN {own} END"}, why, review=True)
        if place is not None:
            return Choice({"sql": own}, f"each row says its zone in {place.name}", review=True)
        if found.family == "timestamptz":
            return Choice(found.column.name)
        if found.family == "text" and (read := _month_first(found, hour, samples.values(found))):
            return read
        known = self._said(table, found.column if hour is None else hour)
        if known is not None and known[0] != self.zone:
            return Choice({**source, "zone": known[0]}, known[1])
        if found.family == "date" and hour is None:
            return Choice(found.column.name, "a day without an hour: its first moment", review=True)
        return Choice(source if len(source) > 1 else found.column.name)


def no_moment(found: Field, samples: Samples) -> str:
    """Return the condition that a time stands for none, where some do: infinite, or before 1971 or after 2899."""
    if found.path or found.family not in {"date", "timestamp", "timestamptz"}:
        return ""
    column = f"{THIS}.{quoted(found.column.name)}"
    far = any(not _NEAR.match(value) or value.endswith("BC") for value in samples.values(found))
    return f"({column} IS NULL OR {column} < '1971-01-01' OR {column} >= '2900-01-01')" if far else ""


_NEAR: Final = re.compile(r"19[789]\d-(?<!1970-)|2[0-8]\d\d-")


def _zone_of(table: CatalogTable, samples: Samples) -> Column | None:
    """Return the column that names the zone of each row's times."""
    for column in table.columns.values():
        values = set(samples.values(Field(table, column))) if column.family in {"text", "enum"} else set()
        if values and values <= available_timezones() and any("/" in value for value in values):
            return column
    return None


def _bare(found: Field, samples: Samples) -> bool:
    """Tell whether a field holds texts with an hour and without a zone."""
    hours = [value for value in samples.values(found) if _HOUR.search(value)] if found.family == "text" else []
    return any(not _ZONED.search(value) for value in hours)


_HOUR: Final = re.compile(r"\d[ T]+\d\d?:\d\d")
_ZONED: Final = re.compile(r":[0-9.]+ *(?:z|[+-]\d\d(?::?\d\d)?)$", re.IGNORECASE)


def _hour_of(table: CatalogTable, day: Column) -> Column | None:
    """Return the column with the hour of a day: named alike but for the word for the hour."""
    wanted = set(tokens(day.says)) - {"date", "at"}
    for column in table.columns.values():
        said = set(tokens(column.says))
        hourly = column.family == "time" or "time" in said
        if column is not day and hourly and column.family in {"time", "text"} and said - {"time", "at"} == wanted:
            return column
    return None


def _month_first(found: Field, hour: Column | None, values: list[str]) -> Choice | None:
    """Return the choice for days such as 10/02/2026 where the month stands first, or where nobody can tell."""
    days = [read for value in values if (read := _DAY.match(value))]
    if not days or any(int(read[1]) > _MONTHS for read in days):
        return None
    if any(int(read[2]) > _MONTHS or read[3] for read in days):
        day = rf"regexp_replace({found.expression}, '^\s*(\d\d?)[/.-](\d\d?)[/.-](\d{{4}})', '\3-\1-\2')"
        time = "" if hour is None else f" || ' ' || {THIS}.{quoted(hour.name)}::text"
        return Choice({"sql": day + time}, "the month stands first", review=True)
    source = found.members if hour is None else {"date": found.column.name, "time": hour.name}
    return Choice(source, "does the day stand first, as in 31/12/2026? no value here tells", review=True)


_DAY: Final = re.compile(r"\s*(\d\d?)[/.-](\d\d?)[/.-]\d{4}(?:.*\d\s*([AP]M))?", re.IGNORECASE)
_MONTHS: Final = 12


def _completed(table: CatalogTable, samples: Samples) -> Choice:
    """Return the time of a sale's completion, where only its state says that it was completed."""
    for past in histories_of(table, samples):
        if (states := past.states({"completed"})) and (reached := past.moment(states)):
            return Choice({"sql": reached}, "when it last reached that state", review=True)
    columns = [(set(tokens(column.says)), column) for column in table.columns.values()]
    updated = next((each for said, each in columns if "updated" in said and each.family.startswith("time")), None)
    perhaps = []
    for said, column in columns:
        field = Field(table, column)
        if states := _states_of_completion(said, field, samples):
            if updated is None:
                why = f"{column.name} says that a sale is completed; what says when?"
                return Choice({"sql": TODO}, why)
            state = f"{THIS}.{quoted(column.name)}::text IN ({', '.join(map(literal, states))})"
            sql = f"CASE WHEN {state} THEN {THIS}.{quoted(updated.name)} END"
            return Choice({"sql": sql}, "only its state says that a sale is completed", review=True)
        moment = column.family in {"date", "timestamp", "timestamptz"} and not column.required
        if (moment and not said & _OTHER_TIMES) or "status" in said:
            perhaps.append(column.name)
    if perhaps or table.kind == QUERY:
        told = f" perhaps {', '.join(perhaps)};" if perhaps else ""
        why = f"what says when a sale was completed?{told} or {{ absent = true }}"
        return Choice({"sql": TODO}, why)
    return Choice(ABSENT, "nothing says when a sale was completed", review=True)


_OTHER_TIMES: Final = {"created", "updated", "deleted", "cancelled", "expires", "sent", "birth"}


def _states_of_completion(said: set[str], field: Field, samples: Samples) -> list[str]:
    """Return the values of a column that mean a completed sale; as texts, as PostgreSQL writes them."""
    if "completed" in said and field.family == "boolean":
        return ["true"]
    if "completed" in said and (spelled := codes.flags(samples.values(field))):
        return [value for value, truth in spelled.items() if truth]
    if "status" not in said or field.family in {"boolean", "date", "time", "timestamp", "timestamptz"}:
        return []
    return [value for value, meaning in meanings_of(field, samples).items() if "completed" in tokens(meaning)]
