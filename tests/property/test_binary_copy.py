"""Rows that are copied in the binary format are in the table as they were given."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg import sql

from toolkit.storage.binary_copy import binary_rows, copy_binary, ids_column

_SCHEMA = pa.schema(
    {"name": pa.string(), "size": pa.int64(), "day": pa.date32(), "seen_at": pa.timestamp("us", "UTC")}
)
_texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=9)
_rows = st.tuples(
    st.uuids(),
    st.none() | _texts,
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.dates(),
    st.none() | st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)),  # noqa: DTZ001  # naive bounds
)


@settings(max_examples=30, deadline=None)
@given(rows=st.lists(_rows, max_size=8), cut=st.integers(0, 8))
def test_rows_arrive_as_they_were_given(server: sa.Engine, rows: Sequence[tuple[Any, ...]], cut: int) -> None:
    ids = np.frombuffer(b"".join(row[0].bytes for row in rows), np.uint8).reshape(len(rows), 16)
    values = [pa.array([row[place + 1] for row in rows], field.type) for place, field in enumerate(_SCHEMA)]
    copied = binary_rows([ids_column(ids), *values])
    url = server.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url, options="-c timezone=UTC") as connection:
        connection.execute(
            "CREATE TEMPORARY TABLE copied (place bigint GENERATED ALWAYS AS IDENTITY, "
            "id uuid, name text, size bigint, day date, seen_at timestamptz)"
        )
        connection.execute("SET LOCAL client_encoding TO 'LATIN1'")
        for part in (copied[:cut], copied[cut:]):
            copy_binary(connection, sql.SQL("copied (id, name, size, day, seen_at)"), part)
        found = connection.execute("SELECT id, name, size, day, seen_at FROM copied ORDER BY place").fetchall()
    assert found == list(rows)
