"""Read a query's rows as columns: COPY out of PostgreSQL, into Arrow."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyarrow import csv
from sqlalchemy import Connection

from toolkit.errors import DatabaseError
from toolkit.storage.database import raw

_PARSE: Final = csv.ParseOptions(newlines_in_values=True)


def read_arrow(connection: Connection, query: str, schema: pa.Schema) -> pa.Table:
    """The rows of ``query`` as a table of ``schema``; an empty text stays apart from a null.

    Raises:
        DatabaseError: a value does not fit the schema.
    """
    sink = pa.BufferOutputStream()
    driver = raw(connection)
    driver.execute("SET LOCAL TimeZone = 'UTC'")
    with driver.cursor() as cursor, cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT csv, HEADER)") as copy:
        for block in copy:
            sink.write(block)
    convert = csv.ConvertOptions(
        column_types={field.name: field.type for field in schema},
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[""],
        true_values=["t"],
        false_values=["f"],
    )
    try:
        return csv.read_csv(pa.BufferReader(sink.getvalue()), parse_options=_PARSE, convert_options=convert)
    except pa.ArrowInvalid:
        # Arrow quotes the value, which may be personal.
        raise DatabaseError("The database holds a value that cannot be read, such as an infinite time.") from None
