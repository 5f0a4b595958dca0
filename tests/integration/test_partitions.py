"""Observations partitioned by month: the same guards and answers, also once months were moved to a snapshot."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from tests.conftest import Run, SettableClock
from tests.forked import FORKED
from tests.integration.test_custody_proof import unguarded
from tests.integration.test_schema import execute
from tests.integration.uploaded_sales import add_record, add_sale, rows
from tests.waiting import PATIENCE
from toolkit.errors import DatabaseError, DatabaseUnavailable, InvalidInput, UnreadableFile
from toolkit.operations.judge.audit import run_audit
from toolkit.operations.judge.audit.sale_evidence import evidence_at, evidence_in_snapshot
from toolkit.operations.judge.audit.snapshot_tables import SnapshotTables
from toolkit.operations.judge.findings.changes import changes_between
from toolkit.operations.judge.withdrawal import withdraw
from toolkit.operations.observe.service_history import observe_service
from toolkit.operations.prove.custody_log.live import verify_live
from toolkit.operations.snapshot import moving
from toolkit.operations.snapshot.export import export_snapshot
from toolkit.operations.snapshot.moved import Elsewhere, snapshot_of
from toolkit.operations.snapshot.moving import move_months
from toolkit.operations.snapshot.reading import open_snapshot, snapshots, verify_snapshot
from toolkit.storage import schema
from toolkit.storage.database import Database
from toolkit.storage.file_store import FolderStore
from toolkit.storage.partitions import AHEAD, months_left, moved

MARCH = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
APRIL, JUNE, AUGUST = (MARCH + timedelta(days=days) for days in (40, 100, 160))

COLUMNS = ("sale_id", "utility_group", "created_at", "seen_at")

TABLES = ("sale_observations", "evidence_observations")


@pytest.fixture
def history(database: Database, clock: SettableClock) -> Database:
    """Three sales, each with a record: in April one sale and one record change, and one of each goes in June."""
    for sale_id in ("S-1", "S-2", "S-3"):
        add_record(database, add_sale(database, sale_id))
    changes = {
        MARCH: (
            "INSERT INTO audit.object_observations (key, size, etag, last_modified, seen_at) "
            f"SELECT object_key, 9, 'e', '{MARCH}', '{MARCH}' FROM public.evidences WHERE sale_id = 'S-1'",
        ),
        APRIL: (
            "UPDATE public.sales SET utility_group = 'D' WHERE id = 'S-1'",
            "UPDATE public.evidences SET evidence_type = 'POV' WHERE sale_id = 'S-1'",
        ),
        JUNE: ("DELETE FROM public.evidences WHERE sale_id = 'S-3'", "DELETE FROM public.sales WHERE id = 'S-3'"),
    }
    for clock.now, statements in changes.items():
        execute(database, *statements)
        observe_service(database, clock)
    clock.now = AUGUST
    return database


@pytest.fixture
def partitioned(history: Database) -> Database:
    schema.upgrade(history, by_month=True)
    return history


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "snapshot", "snapshot")


def contents(database: Database) -> list[Any]:
    return [rows(database, f"SELECT * FROM audit.{table} ORDER BY id") for table in TABLES]


def places(database: Database, table: str) -> list[tuple[Any, ...]]:
    """Return the part of the table that each observation lies in."""
    return rows(database, f"SELECT id, replace(tableoid::regclass::text, 'audit.{table}_', '') FROM audit.{table}")


def elsewhere_of(store: FolderStore, home: Path) -> Elsewhere:
    return Elsewhere(lambda _: store, home, "512MB")


def move(database: Database, store: FolderStore, clock: SettableClock, home: Path) -> list[str]:
    months = move_months(database, store, elsewhere_of(store, home), clock, older_than=1)
    return [f"{month.began_at:%Y-%m} {month.content.name} {month.rows}" for month in months if month.rows]


def test_a_partitioned_table_has_the_same_rows_and_a_second_call_changes_nothing(history: Database) -> None:
    before = contents(history)
    with history.transaction() as connection:
        assert months_left(connection) is None
    for _ in range(2):
        schema.upgrade(history, by_month=True)
        assert contents(history) == before
        assert sorted(places(history, "sale_observations")) == [
            (1, "2026_04"),
            (2, "open"),
            (3, "2026_06"),
            (4, "open"),
        ]
        with history.transaction() as connection:
            assert months_left(connection) == AHEAD


def test_what_ends_moves_to_its_month_and_the_log_tells_the_same(
    partitioned: Database, clock: SettableClock
) -> None:
    execute(partitioned, "UPDATE public.sales SET utility_group = 'A' WHERE id = 'S-1'")
    observe_service(partitioned, clock)
    assert sorted(places(partitioned, "sale_observations"))[3:] == [(4, "2026_08"), (5, "open")]
    told = rows(
        partitioned, "SELECT kind, detail ->> 'observation' FROM audit.custody_events ORDER BY id DESC LIMIT 2"
    )
    assert sorted(told) == [("SALES_OBSERVED", None), ("SALE_GONE", "4")]
    assert verify_live(partitioned).differences == ()
    again = f"INSERT INTO audit.sale_observations ({', '.join(COLUMNS)}) SELECT {', '.join(COLUMNS)} "
    with pytest.raises(DatabaseError, match="sale_observations_current_idx"):
        execute(partitioned, again + "FROM audit.sale_observations WHERE gone_at IS NULL")


def test_nobody_rewrites_or_removes_what_was_seen_in_any_part(partitioned: Database) -> None:
    for place in (f"audit.{table}{part}" for table in TABLES for part in ("", "_open", "_2026_04")):
        for statement, refused in (
            (f"DELETE FROM {place}", "never changed or deleted"),
            (f"TRUNCATE {place}", "never changed or deleted"),
            (f"UPDATE {place} SET sale_id = 'S-9'", "change only once"),
            (f"UPDATE {place} SET gone_at = NULL", "change only once"),
        ):
            with pytest.raises(DatabaseError, match=refused):
                execute(partitioned, statement)


def test_months_leave_once_the_snapshot_holds_them(
    partitioned: Database,
    store: FolderStore,
    clock: SettableClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_audit(partitioned, clock=SettableClock(JUNE))
    (evidence,) = evidence_at(partitioned, MARCH, ["S-1"])
    assert {event.kind for event, _ in evidence.timeline or ()} == {"RECORDED", "UPLOADED"}
    before = contents(partitioned)
    with monkeypatch.context() as broken:
        broken.setattr(moving, "_remove", None)  # whatever ends it there
        with pytest.raises(TypeError):
            move(partitioned, store, clock, tmp_path)
    assert contents(partitioned) == before
    assert move(partitioned, store, clock, tmp_path) == [
        "2026-04 sale_observations 1",
        "2026-04 evidence_observations 1",
        "2026-06 sale_observations 1",
        "2026-06 evidence_observations 1",
    ]
    sales, records = contents(partitioned)
    assert [row[0] for row in sales] == [2, 3, 4], "the third tells that the sale is gone"
    assert [row[0] for row in records] == [2, 3, 4], "the key of the third is told by no other"
    assert rows(partitioned, "SELECT count(*) FROM audit.judgement") == [(0,)], "the next audit judges every sale"
    with partitioned.transaction() as connection:
        last = moved(connection)
    assert last is not None
    files = SnapshotTables(
        snapshot_of(store, last), lambda file: str(store.local(file.name, tmp_path)), tmp_path, people=partitioned
    )
    (told,) = evidence_in_snapshot(files, MARCH, ["S-1"])
    assert told.timeline == evidence.timeline, "also of a file whose key the snapshot has not"
    assert move(partitioned, store, clock, tmp_path) == []
    for there in (store, FolderStore(Path(store.place, "..", Path(store.place).name), "written otherwise")):
        with pytest.raises(InvalidInput, match="Export without --full, or into another place"):
            export_snapshot(partitioned, there, tmp_path, clock, full=True)
    export_snapshot(partitioned, store, tmp_path, clock)


def test_what_is_said_of_ended_findings_and_withdrawn_records_stays_the_same_when_months_leave(
    partitioned: Database, store: FolderStore, clock: SettableClock, tmp_path: Path
) -> None:
    """S-4 was gone and came back between two audits, so that its finding ended because it was mended."""
    put = "INSERT INTO public.sales (id, utility_group, is_client_financial_responsible, created_at) VALUES "
    steps = (
        (f"{put} ('S-4', 'Z', true, '{MARCH}'), ('S-5', 'Z', true, '{MARCH}')", True),
        ("DELETE FROM public.sales WHERE id IN ('S-4', 'S-5')", False),
        (f"{put} ('S-4', 'Z', true, '{MARCH}')", False),
        ("UPDATE public.sales SET utility_group = 'A' WHERE id = 'S-4'", True),
    )
    clock.now = JUNE + timedelta(days=10)
    people = {"reason": "sent twice", "withdrawn_by": "ana", "approved_by": "bia"}
    withdraw(partitioned, add_record(partitioned, "S-2", key="sales/2.pdf")[0], clock=clock, **people)
    observe_service(partitioned, clock)
    execute(partitioned, "DELETE FROM public.evidences WHERE object_key = 'sales/2.pdf'")
    add_record(partitioned, "S-2", key="sales/2.pdf")
    for statement, audited in steps:
        execute(partitioned, statement)
        observe_service(partitioned, clock)
        if audited:
            run_audit(partitioned, clock=clock)
        clock.now += timedelta(days=1)
    schema.upgrade(partitioned, by_month=True)
    clock.now = AUGUST

    def told() -> Any:
        result = run_audit(partitioned, clock=clock, as_of=AUGUST)
        findings, withdrawn = result.life.findings, result.withdrawals.to_dict("records")
        gone = changes_between(partitioned, JUNE + timedelta(days=10), AUGUST).without_sale
        return findings[["saleId", "code", "status", "reason"]].to_dict("records"), gone.to_pylist(), withdrawn

    before = told()
    assert {(row["saleId"], row["reason"]) for row in before[0] if row["reason"] == "SALE_GONE"} == {
        ("S-5", "SALE_GONE")
    }
    assert len(before[2]) == 1
    assert move(partitioned, store, clock, tmp_path)
    assert told() == before
    assert verify_live(partitioned, elsewhere=elsewhere_of(store, tmp_path)).differences == ()


def test_months_stay_while_somebody_reads_them_or_the_snapshot_holds_something_else(
    partitioned: Database,
    store: FolderStore,
    clock: SettableClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as impatient, partitioned.at(clock.now):
        impatient.setattr(moving, "PATIENCE", 0.0)
        impatient.setattr(moving, "partition_by_month", lambda _: None)
        with pytest.raises(DatabaseUnavailable, match="Nothing was removed; try again later"):
            move(partitioned, store, clock, tmp_path)
    unguarded(partitioned, "sale_observations_2026_04", "UPDATE audit.sale_observations_2026_04 SET partner = 'X'")
    with pytest.raises(UnreadableFile, match=r"does not hold sale_observations of 2026-04 .* Nothing was removed"):
        move(partitioned, store, clock, tmp_path)
    assert len(places(partitioned, "sale_observations")) == 4


@pytest.fixture
def live(partitioned: Database, store: FolderStore, tmp_path: Path) -> Callable[[], list[tuple[str, str]]]:
    """The differences that are found once months were moved: the thing, and its id."""
    elsewhere = elsewhere_of(store, tmp_path)
    return lambda: [(each.what, each.id) for each in verify_live(partitioned, elsewhere=elsewhere).differences]


def test_the_log_is_compared_with_what_was_moved_too(
    partitioned: Database, store: FolderStore, clock: SettableClock, tmp_path: Path, live: Any
) -> None:
    move(partitioned, store, clock, tmp_path)
    assert live() == []
    table = "sale_observations_open"
    unguarded(partitioned, table, f"UPDATE audit.{table} SET partner = 'X' WHERE id = 2")
    assert ("sales", "1-3") in live()
    month = "UPDATE audit.moved_partitions SET sha256 = 'x' WHERE observations = 'evidence_observations'"
    unguarded(partitioned, "moved_partitions", month)
    assert ("month", "2026-04 of evidence_observations") in live()
    file = next((tmp_path / "snapshot" / "evidence_observations").rglob("*.parquet"))
    whole = file.read_bytes()
    for change in (lambda: file.write_bytes(whole + b"x"), file.unlink):
        change()
        assert ("months", "before 2026-07") in live()
        assert "record" not in {what for what, _ in live()}, "what is not compared is no other difference"
    file.write_bytes(whole)
    (tmp_path / "snapshot.key").rename(tmp_path / "lost.key")
    assert ("records", "2 observations in " + str(tmp_path / "snapshot")) in live()
    assert not (tmp_path / "snapshot.key").exists()


def test_a_record_that_was_changed_before_its_month_was_moved_is_found(
    partitioned: Database, store: FolderStore, clock: SettableClock, tmp_path: Path, live: Any
) -> None:
    table = "evidence_observations_2026_04"
    ((record,),) = rows(partitioned, f"SELECT evidence_id FROM audit.{table}")
    unguarded(partitioned, table, f"UPDATE audit.{table} SET expires_at = expires_at + interval '1 day'")
    move(partitioned, store, clock, tmp_path)
    assert live() == [("record", str(record))]


def test_a_moment_that_was_moved_is_told_by_the_snapshot_or_not_at_all(
    run: Run, history: Database, tmp_path: Path
) -> None:
    target, dates = tmp_path / "snapshot", (MARCH, APRIL)

    def report(moment: datetime, *options: Any) -> tuple[bytes, Any]:
        folder = tmp_path / f"{moment:%m}"
        run("-q", "report", *options, "--as-of", moment.isoformat(), "--format", "csv,json", "--out", folder)
        told = json.loads((folder / "missing-evidence.json").read_text())
        told.pop("source")
        return (folder / "missing-evidence.csv").read_bytes(), told

    before = [report(moment) for moment in dates]
    told = run("snapshot", "move", target, ends=1).err
    assert "Observations are not partitioned by month, so no month can be moved." in told
    run("db", "upgrade", "--partition-by-month")
    assert "24 to come have a partition" in run("status").out
    planned = run("snapshot", "move", target, "--older-than", 1, "--dry-run", "--json").told["months"]
    assert [each["month"] for each in planned if each["rows"]] == ["2026-04"] * 2 + ["2026-06"] * 2
    assert "4 rows moved to" in run("snapshot", "move", target, "--older-than", 1).err
    assert [report(moment) for moment in dates] == before
    assert str(target) in (tmp_path / "04" / "missing-evidence.json").read_text()
    assert "4 observations to a snapshot" in run("verify", "--live", ends=None).out
    run("snapshot", "export", tmp_path / "new")
    target.rename(tmp_path / "elsewhere")
    assert [report(moment, "--snapshot", tmp_path / "new") for moment in dates] == before
    assert "cannot be taken over from there" in run("snapshot", "export", tmp_path / "newer", ends=1).err
    told = run("audit", "--as-of", APRIL.isoformat(), ends=1).err
    assert f"are in the snapshot {target} alone, which cannot be read" in told


def killed_at(instant: tuple[str, str], url: str, folder: Path, at: datetime, *, moves: bool) -> None:
    """Export, or move, and die at an instant: as a name is about to be given or removed, or a statement sent."""
    event, name = instant

    def die(found: str, *about: object) -> None:
        if found == event and name in " ".join(map(str, about)):
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(lambda found, about: die(found, *about))
    database, store, clock = Database(url), FolderStore(folder / "snapshot", "snapshot"), SettableClock(at)
    sa.event.listen(database.engine, "before_cursor_execute", lambda _, __, statement, *___: die("sql", statement))
    if moves:
        move(database, store, clock, folder)
    else:
        export_snapshot(database, store, folder, clock)


def kill(instant: tuple[str, str], database: Database, folder: Path, at: datetime, *, moves: bool) -> None:
    url = database.engine.url.render_as_string(hide_password=False)
    process = FORKED.Process(target=killed_at, args=(instant, url, folder, at), kwargs={"moves": moves})
    process.start()
    process.join(PATIENCE)
    assert process.exitcode == -signal.SIGKILL, instant


def ids_in(store: FolderStore, table: str) -> list[int]:
    """The ids in all files of all exports that exist, each as often as it is there."""
    assert set(verify_snapshot(store)) <= {None}
    files = [file for manifest in snapshots(store) for file in manifest.files if file.part == "rows"]
    places = [store.local(file.name, Path()) for file in files if file.table == table]
    return sorted(number for place in places for number in pq.read_table(place)["id"].to_pylist())


def ids(database: Database, table: str) -> list[int]:
    return [number for (number,) in rows(database, f"SELECT id FROM audit.{table} ORDER BY id")]


def test_an_export_that_is_killed_goes_on_loses_nothing_and_holds_nothing_twice(
    history: Database, store: FolderStore, clock: SettableClock, tmp_path: Path
) -> None:
    first = export_snapshot(history, store, tmp_path, clock).manifest
    for number, instant in enumerate(
        (
            ("os.rename", "under-way.json"),
            ("os.rename", "/rows/"),  # the first file of the store, whichever table is the first
            ("os.rename", "evidence_observations/closings"),
            ("sql", "moved_partitions.records_assumed_at"),  # every file is there, and no manifest
            ("os.rename", "manifest-"),
            ("os.remove", "under-way.json"),  # behind the manifest
        )
    ):
        execute(history, f"UPDATE public.sales SET partner = 'P-{number}' WHERE id = 'S-1'")
        execute(history, f"UPDATE public.evidences SET type = 'T-{number}' WHERE sale_id = 'S-1'")
        clock.now += timedelta(hours=1)
        observe_service(history, clock)
        kill(instant, history, tmp_path, clock.now, moves=False)
        assert snapshots(store)[0] == first
        assert all(set(ids_in(store, table)) <= set(ids(history, table)) for table in TABLES)
    assert len(snapshots(store)) == 2, "the last one was killed behind its manifest"
    export_snapshot(history, store, tmp_path, clock)
    exported = open_snapshot(store)
    assert exported.manifests == (*snapshots(store),)
    for table in TABLES:
        assert ids_in(store, table) == ids(history, table)
    assert not list((tmp_path / "snapshots").rglob("*.parquet")), "no draft is left"


def test_a_month_that_is_moved_is_in_one_place_at_least_whenever_that_is_killed(
    partitioned: Database, store: FolderStore, clock: SettableClock, tmp_path: Path, live: Any
) -> None:
    before = contents(partitioned)
    for instant in (
        ("os.rename", "manifest-"),
        ("sql", "DETACH PARTITION audit.sale_observations_2026_06"),
        ("sql", "DROP TABLE audit.evidence_observations_2026_06"),
        ("sql", "DELETE FROM audit.judgement"),  # the last statement before all is committed
    ):
        kill(instant, partitioned, tmp_path, clock.now, moves=True)
        assert contents(partitioned) == before
    assert len(move(partitioned, store, clock, tmp_path)) == 4
    assert live() == []
    for table, rows_before in zip(TABLES, before, strict=True):
        assert sorted({*ids(partitioned, table), *ids_in(store, table)}) == [row[0] for row in rows_before]
    assert move(partitioned, store, clock, tmp_path) == []
