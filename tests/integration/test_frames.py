"""Rows of a query leave PostgreSQL as columns, in blocks."""

from __future__ import annotations

import pyarrow as pa
import pytest
import sqlalchemy as sa

from toolkit.database.connection import Database
from toolkit.database.frames import stream_arrow
from toolkit.errors import ToolkitError

ROWS = 60_000
"""More than one block of four megabytes, with texts of a hundred characters."""

NUMBERED = pa.schema({"number": pa.int64(), "text": pa.string()})


def test_every_row_arrives_once_and_in_its_order(database: Database) -> None:
    query = f"SELECT i, repeat('x', i % 200) FROM generate_series(1, {ROWS}) AS i"
    with database.transaction() as connection:
        blocks = list(stream_arrow(connection, query, NUMBERED))
        assert connection.scalar(sa.text("SELECT 1")) == 1
    found = pa.Table.from_batches(blocks)
    assert len(blocks) > 1
    assert found["number"].to_pylist() == list(range(1, ROWS + 1))
    assert found["text"].to_pylist() == ["x" * (number % 200) for number in range(1, ROWS + 1)]


@pytest.mark.parametrize("at", [1, ROWS])
def test_a_query_that_fails_on_the_way_raises_and_leaves_the_session_usable(database: Database, at: int) -> None:
    query = f"SELECT 1 / (i - {at}), '' FROM generate_series(1, {ROWS}) AS i"
    with pytest.raises(ToolkitError, match="22012"), database.transaction() as connection:
        list(stream_arrow(connection, query, NUMBERED))
    with database.transaction() as connection:
        assert connection.scalar(sa.text("SELECT 1")) == 1


def test_rows_that_nobody_wants_any_more_do_not_block_the_session(database: Database) -> None:
    with database.transaction() as connection:
        blocks = stream_arrow(
            connection, f"SELECT i, repeat('x', 200) FROM generate_series(1, {ROWS}) AS i", NUMBERED
        )
        next(blocks)
        blocks.close()  # type: ignore[attr-defined]
