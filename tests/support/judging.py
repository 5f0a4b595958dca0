"""The judging of an audit alone, on an engine, from the Parquet of its inputs into that of its outputs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from toolkit.audit.duckdb_session import duckdb_session
from toolkit.audit.engines import DuckdbEngine, Engine
from toolkit.audit.judge import GIVEN, judgement


@contextmanager
def on_duckdb(home: Path | None = None) -> Iterator[Engine]:
    with duckdb_session(home) as session:
        yield DuckdbEngine(session)


def judge_on(engine: Engine, inputs: Path, outputs: Path, as_of: datetime) -> None:
    """Judge the inputs in a folder; the engine writes the outputs itself."""

    for name in GIVEN:
        engine.show(name, [str(inputs / f"{name}.parquet")])
    for name, query in judgement().outputs.items():
        engine.write(query, str(outputs / f"{name}.parquet"), as_of)
        engine.show(name, parts_of(outputs, name))


def parts_of(outputs: Path, name: str) -> list[str]:
    """Return the files of an output: one, or those of the folder that Spark writes."""
    place = outputs / f"{name}.parquet"
    return [str(place)] if place.is_file() else sorted(map(str, place.glob("*.parquet")))
