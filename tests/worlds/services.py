"""The wrong worlds of services.sql, and those that differ by one value."""

from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

STATEMENTS = Path(__file__).with_name("service.sql").read_text("utf-8")


class World(NamedTuple):
    """A wrong world; services.sql tells what each of its parts is."""

    name: str
    sql: str = ""
    said: str = ""
    stops: str = ""
    verdict: str = ""
    before: str = ""
    reads: str = ""
    then: str = ""


def told(text):
    """The world of a paragraph: lines of SQL, and of facts; a word alone says what the SQL below it is."""
    name, *lines = text.splitlines()
    parts, part = defaultdict(str), "sql"
    for line in lines:
        if line.startswith("-- "):
            key, colon, value = line.removeprefix("-- ").partition(": ")
            parts[key], part = value, part if colon else key
        else:
            parts[part] += line
    return World(name, **parts)


def replaced(statements, change):
    """The statements with what a world changes in them: a text and, behind an arrow, another one."""
    return statements.replace(*change.split(" => ")) if change else statements


TABLES, *_TOLD = Path(__file__).with_suffix(".sql").read_text("utf-8").split("-- world: ")

ODD = {
    "TimeZone": "Asia/Kolkata",
    "IntervalStyle": "sql_standard",
    "bytea_output": "escape",
    "default_transaction_isolation": "serializable",
    "standard_conforming_strings": "off",
    "transform_null_equals": "on",
    "extra_float_digits": "0",
    "quote_all_identifiers": "on",
    "client_encoding": "LATIN1",
}
"""Settings that a role or a database may have, and that change nothing."""


def with_settings(**settings):
    each = "EXECUTE format('ALTER DATABASE %I SET {} = %L', current_database(), '{}');"
    return f"DO $$ BEGIN {''.join(each.format(name, value) for name, value in settings.items())} END $$"


TYPES = {
    "a code renamed": "'VOZ'",
    "a blank behind a code": "'POV '",
    "a blank behind a code that cannot be seen": "'POV' || chr(160)",
    "a code in small letters": "'pov'",
    "a code with a letter of another alphabet": "'P' || chr(1054) || 'V'",
    "a record without a type": "NULL",
}
GROUPS = {
    "a group that nobody knows": "'E'",
    "a sale without a group": "NULL",
    "the wrong group for everybody": "lower(grp)",
}

WORLDS = (
    *(
        World(
            name,
            f"UPDATE svc.doc SET kind = {value} WHERE kind = 'POV' AND sale_id = 'S-4'",
            r"Evidence records with an evidence_type that the contract does not know: 1; 0 at the last reading",
            verdict="S-4 incomplete POV TYPE_UNKNOWN",
        )
        for name, value in TYPES.items()
    ),
    *(
        World(
            name,
            f"UPDATE svc.sale SET grp = {value}" + ("" if "everybody" in name else " WHERE id = 'S-1'"),
            r"Sales with a utility_group that the contract does not know: 12?; 0 at the last reading",
            verdict="S-1 conflict  GROUP_UNKNOWN",
        )
        for name, value in GROUPS.items()
    ),
    *map(told, _TOLD),
    *(
        World(
            f"settings of the database such as {style}",
            "DELETE FROM svc.doc WHERE sale_id = 'S-1' AND kind = 'POV'",
            verdict="S-1 incomplete POV",
            before=with_settings(DateStyle=style, **ODD),
        )
        for style in ("German, DMY", "Postgres, MDY")
    ),
)
