"""Compare an audit folder with the histories that it was made from, which never change."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from toolkit.audit.duckdb_session import DEFAULT_MEMORY, duckdb_session, files_alone
from toolkit.audit.extract import extract, write_inputs
from toolkit.audit.folder import INPUTS, Audit
from toolkit.database.connection import Database
from toolkit.errors import InvalidInput

_KEYS: Final = {"sales": "sale_id", "records": "evidence_id", "objects": "object"}


@dataclass(frozen=True, slots=True)
class ChangedInput:
    """A sale, record or object of which the histories say something else than the audit was made from."""

    table: str
    key: str
    how: str
    """``changed``, ``added`` or ``missing`` in the database of today."""


def changed_inputs(
    database: Database, audit: Audit, scratch: Path, memory: str = DEFAULT_MEMORY
) -> list[ChangedInput]:
    """Extract the inputs of an audit again, and name what differs; an empty list where nothing does.

    ``scratch`` is an empty folder for the inputs of today.

    Raises:
        InvalidInput: retention removed the inputs of the audit.
        UnreadableFile: a file of the audit is not what was written.
        DatabaseError: the database could not be asked.
    """
    audit.verify()
    again = scratch / "again"
    again.mkdir()
    with database.snapshot() as snapshot, duckdb_session(scratch, memory) as session:
        write_inputs(extract(database, snapshot, audit.facts.as_of, session), again)
        return [each for table in INPUTS for each in _changed(session, audit, table, again)]


def _changed(session: Any, audit: Audit, table: str, again: Path) -> list[ChangedInput]:
    if not any(name.startswith(f"{audit.name}/{table}.parquet") for name in audit.store.names()):
        raise InvalidInput("The inputs of the audit {} were removed by retention.", audit.folder)
    session.register("then", audit.table(table))
    session.execute(
        f"CREATE OR REPLACE TEMP VIEW today AS FROM read_parquet({files_alone([again / f'{table}.parquet'])})"
    )
    rows = session.execute(_DIFFERENCES.format(key=_KEYS[table])).fetchall()
    return [ChangedInput(table, str(key), how) for key, how in rows]


_DIFFERENCES: Final = """
    WITH lost AS (FROM "then" EXCEPT FROM today), new AS (FROM today EXCEPT FROM "then")
    SELECT {key},
           CASE WHEN new.{key} IS NULL THEN 'missing' WHEN lost.{key} IS NULL THEN 'added' ELSE 'changed' END
    FROM lost FULL JOIN new USING ({key})
    ORDER BY 1
"""
