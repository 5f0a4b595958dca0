"""Loads of several processes run side by side, and each client is registered once all the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.client_rows import client, write_csv
from tests.support.uploaded_sales import rows
from tests.support.waiting import PATIENCE
from toolkit.database.connection import Database
from toolkit.intake import clients as load_module
from toolkit.intake.clients import load_clients
from toolkit.intake.results import LoadResult


def clock() -> datetime:
    return datetime.now(UTC)


@contextmanager
def meeting(monkeypatch: pytest.MonkeyPatch, parties: int) -> Iterator[None]:
    """Let the first loads wait for each other when all their rows are copied, and before any of them stores."""
    barrier, left = threading.Barrier(parties, timeout=PATIENCE), iter([True] * parties)
    wait_for_others = load_module._Load._wait_for_others

    def waiting(load: Any, connection: Any) -> None:
        if next(left, False):
            barrier.wait()
        wait_for_others(load, connection)

    with monkeypatch.context() as patch:
        patch.setattr(load_module._Load, "_wait_for_others", waiting)
        yield


def load_at_once(database: Database, files: Sequence[Path], monkeypatch: pytest.MonkeyPatch) -> list[LoadResult]:
    with meeting(monkeypatch, len(files)), ThreadPoolExecutor(len(files)) as threads:
        return list(
            threads.map(
                lambda file: load_clients(database, [file], out=file.parent / file.stem, clock=clock), files
            )
        )


def registered(database: Database) -> Mapping[str, int]:
    return dict(rows(database, "SELECT cpf, count(*) FROM public.clients GROUP BY cpf"))


def test_one_file_that_is_loaded_twice_at_once_is_in_once(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    files = [write_csv(folder / "clients.csv", [client(n) for n in range(10)]) for folder in folders]
    found = load_at_once(database, files, monkeypatch)
    assert sorted(result.accepted for result in found) == [0, 10]
    assert set(registered(database).values()) == {1}
    assert rows(database, "SELECT count(*) FROM audit.load_batches") == [(1,)]


def test_files_that_share_clients_register_each_once(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [write_csv(tmp_path / f"{at}.csv", [client(5 * at + n) for n in range(10)]) for at in range(3)]
    found = load_at_once(database, files, monkeypatch)
    assert sum(result.accepted for result in found) == 20
    assert sum(result.skipped for result in found) == 10
    assert set(registered(database).values()) == {1}
    assert len(registered(database)) == 20
