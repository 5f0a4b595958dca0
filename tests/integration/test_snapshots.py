"""Snapshots: the same audit on DuckDB and on Spark as in PostgreSQL, from files that hold no personal data."""

from __future__ import annotations

import hmac
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from zoneinfo import ZoneInfo

import duckdb
import ibis
import pandas as pd
import pyarrow as pa
import pytest
import sqlalchemy as sa
from pyarrow import parquet

from tests.conftest import Run, SettableClock
from tests.integration.audited import Story, day
from tests.spark_server import sail
from toolkit.domain.deadlines import Deadlines
from toolkit.domain.evidence import EvidenceType, FileKind
from toolkit.errors import EngineUnavailable, InvalidInput, UnreadableFile
from toolkit.operations import snapshot
from toolkit.operations.judge.audit import AuditResult, run_audit
from toolkit.operations.judge.audit.engines import Engine, duckdb_engine, spark_engine
from toolkit.operations.judge.audit.from_snapshot import audit_snapshot
from toolkit.operations.judge.audit.run import DEFAULT_DEADLINES
from toolkit.operations.judge.audit.snapshot_tables import SnapshotTables
from toolkit.operations.judge.findings.waivers import add_waiver
from toolkit.operations.snapshot.contents import CLOSINGS, CONTENTS
from toolkit.operations.snapshot.export import export_snapshot, is_of
from toolkit.operations.snapshot.manifest import FORMAT, name_of
from toolkit.operations.snapshot.reading import (
    Fault,
    open_snapshot,
    prune_copies,
    prune_snapshot,
    snapshots,
    verify_snapshot,
)
from toolkit.operations.snapshot.secret import secret_of
from toolkit.reports import write_report
from toolkit.reports.notices import notices
from toolkit.storage import tables
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database
from toolkit.storage.file_store import FileStore, FolderStore


@pytest.fixture
def story(database: Database) -> Story:
    return Story(database)


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FolderStore(tmp_path / "snapshot", "snapshot")


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder whose name is the values of a column to whatever reads partitions by their folders."""
    place = tmp_path / "partner=Norte"
    place.mkdir()
    return place


@pytest.fixture(params=["duckdb", "spark"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    if request.param == "duckdb":
        (tmp_path / "scratch").mkdir()
        with duckdb_engine(tmp_path / "scratch", "512MB") as opened:
            yield opened
        return
    with spark_engine(request.getfixturevalue("spark_url")) as opened:
        yield opened


def judged(
    story: Story, store: FileStore, engine: Engine, as_of: datetime | None = None, *, alone: bool = False
) -> AuditResult:
    """Judge the snapshot, without its database where it is ``alone``."""
    assert isinstance(store, FolderStore)
    tables = SnapshotTables(
        open_snapshot(store, as_of),
        lambda file: str(store.local(file.name, Path())),
        store.local("", Path()).parent / "scratch",
        people=None if alone else story.database,
    )
    clock = SettableClock(day(30))
    return audit_snapshot(tables, engine, clock=clock, as_of=as_of, with_file_findings=True)


def written(result: AuditResult, folder: Path) -> tuple[str, ...]:
    """The page, the table and the document of the report; the source names the snapshot, and its newest seal."""
    source = replace(result.source, snapshot=None, seal=None)
    files = write_report(replace(result, source=source), folder, ["html", "csv", "json"])
    return tuple(path.read_text(encoding="utf-8") for path in files)


def first_week(story: Story) -> None:
    """Four sales: compliant, without a recording, with a file that turned out silent, with an unknown group."""
    client = story.client()
    for sale_id in ("S-1", "S-2", "S-3"):
        completed_at = day(2) + timedelta(microseconds=300_001 * ord(sale_id[-1]))  # with parts of a second
        story.sale(sale_id, client_id=client, partner="Energia Certa", seen_at=day(2), completed_at=completed_at)
        story.file(sale_id, EvidenceType.DOC_CONTRATANTE, at=day(3))
    story.sale("S-4", utility_group="Z", created_at=day(1), seen_at=day(2))
    story.file("S-1", EvidenceType.POV, at=day(3))
    _, key = story.record("S-3", "POV", requested_at=day(3))
    story.check(story.upload(key, seen_at=day(4)), FileKind.AUDIO, problem="SILENT", at=day(5))
    story.synced(day(5))


def second_week(story: Story) -> None:
    """The recording of S-2 comes, the one of S-1 goes, S-4 gets a group, a record of S-3 is withdrawn.

    An audit notes findings before, one of them is waived, and an object comes that belongs to no record.
    """
    run_audit(story.database, clock=SettableClock(day(9)), with_file_findings=True)
    waiver = {"sale": "S-3", "reason": "sent twice", "owner": "ana", "approvedBy": "bia", "end": day(20).date()}
    add_waiver(story.database, waiver, today=day(9).date(), clock=SettableClock(day(9)))
    story.upload("inbox/Ana Souza.pdf", seen_at=day(10))
    story.file("S-2", EvidenceType.POV, at=day(10))
    evidence_id, _ = story.record("S-3", "KYC", requested_at=day(10))
    story.withdraw(evidence_id, at=day(11))
    gone = "UPDATE audit.{} SET gone_at = :moment WHERE id = (SELECT max(o.id) FROM audit.{} AS o WHERE {})"
    with story.database.transaction() as connection:
        of_first = (
            "o.key = (SELECT object_key FROM public.evidences WHERE sale_id = 'S-1' AND evidence_type = 'POV')"
        )
        for table, which in (("object_observations", of_first), ("sale_observations", "o.sale_id = 'S-4'")):
            connection.execute(sa.text(gone.format(table, table, which)), {"moment": day(12)})
    story.sale("S-4", utility_group="B", created_at=day(1), seen_at=day(12))
    story.synced(day(12))


def export(story: Story, store: FileStore, home: Path, at: datetime, **options: Any) -> Any:
    return export_snapshot(story.database, store, home, SettableClock(at), **options)


def test_a_snapshot_is_judged_as_the_database_is_at_every_moment(
    story: Story, store: FileStore, engine: Engine, tmp_path: Path
) -> None:
    first_week(story)
    export(story, store, tmp_path, day(8))
    second_week(story)
    export(story, store, tmp_path, day(15))
    for moment in (day(4), day(8), day(11), day(15)):
        clock = SettableClock(day(30))
        live = run_audit(story.database, clock=clock, as_of=moment, with_file_findings=True)
        assert written(judged(story, store, engine, moment), tmp_path / "a") == written(live, tmp_path / "b")
    assert judged(story, store, engine).as_of == day(15)


def test_a_report_says_where_the_machine_that_exported_had_other_deadlines(
    story: Story, store: FileStore, tmp_path: Path
) -> None:
    first_week(story)
    zone = DEFAULT_DEADLINES.timezone
    for at, deadlines in enumerate((None, Deadlines(zone), Deadlines(zone, {"KYC_REPEATED": 1})), 8):
        export(story, store, tmp_path, day(at), deadlines=deadlines)
    export(story, store, tmp_path, day(11), deadlines=Deadlines(ZoneInfo("America/Noronha")))
    with duckdb_engine() as engine:
        said = [" ".join(notices(judged(story, store, engine, day(at)))) for at in range(8, 12)]
    assert ["other deadlines" in each for each in said] == [False, False, True, True]


def test_a_report_without_the_database_lacks_only_what_is_about_people_and_says_so(
    story: Story, store: FileStore, tmp_path: Path
) -> None:
    first_week(story)
    second_week(story)
    export(story, store, tmp_path, day(15))
    with duckdb_engine() as engine:
        alone, asked = (judged(story, store, engine, alone=each) for each in (True, False))
    about_people = ["reason", "withdrawnBy", "approvedBy"]
    for result in (alone, asked):
        assert ("could not be asked" in " ".join(notices(result))) is (result is alone)
        assert bool(result.rows["cpf"].isna().all()) is (result is alone)
        assert bool(result.withdrawals[about_people].isna().all(axis=None)) is (result is alone)
    pd.testing.assert_frame_equal(alone.rows.drop(columns="cpf"), asked.rows.drop(columns="cpf"))
    rest = [each.withdrawals.drop(columns=about_people) for each in (alone, asked)]
    pd.testing.assert_frame_equal(*rest)
    (without_log,), (with_log,) = (each.lists.evidence(["S-2"]) for each in (alone, asked))
    assert (without_log.records, without_log.timeline) == (with_log.records, None)
    assert with_log.timeline
    # Those about files are the noted ones: the object that came after the audit is not among them.
    assert set(alone.life.findings["id"]) < set(asked.life.findings["id"])


def test_an_export_adds_what_was_observed_since(story: Story, store: FileStore, tmp_path: Path) -> None:
    first_week(story)
    first = export(story, store, tmp_path, day(8)).manifest
    second_week(story)
    second = export(story, store, tmp_path, day(15)).manifest
    third = export(story, store, tmp_path, day(16)).manifest
    assert (first.previous, second.previous, third.previous) == (None, first.moment, second.moment)
    closed = {file.table: file.rows for file in second.files if file.part == "closings"}
    assert closed == {"object_observations": 1, "sale_observations": 1}
    assert third.rows == 0
    assert [manifest.moment for manifest in snapshots(store)] == [day(8), day(15), day(16)]


def test_a_snapshot_holds_no_personal_data(story: Story, store: FileStore, tmp_path: Path) -> None:
    first_week(story)
    second_week(story)
    export(story, store, tmp_path, day(15))
    files = [path for path in (tmp_path / "snapshot").rglob("*") if path.is_file()]
    texts = [pd.read_parquet(path).to_csv() if path.suffix == ".parquet" else path.read_text() for path in files]
    for words in ("52998224725", "Souza", "evidences/2026", "sent twice", "ana", "bia"):
        assert not any(words in text for text in texts)
    keys = {"object_observations": "key", "evidence_observations": "object_key"}
    pseudonyms = [
        set(pd.concat(map(pd.read_parquet, (tmp_path / "snapshot" / table).rglob("*.parquet")))[column])
        for table, column in keys.items()
    ]
    assert len(pseudonyms[0] & pseudonyms[1]) == 6  # so files still meet their records
    assert all(re.fullmatch(r"\??[0-9a-f]{32}", each) for each in pseudonyms[0] | pseudonyms[1])
    secret = bytes.fromhex((tmp_path / "snapshot.key").read_text())
    with story.database.statement() as connection:
        keys = connection.scalars(sa.select(tables.object_observations.c.key)).all()
    told = {hmac.digest(secret, key.encode(), "sha256").hex()[:32] for key in keys}
    assert told == {each.removeprefix("?") for each in pseudonyms[0]}


def test_other_tools_read_it_as_the_page_says(
    story: Story, store: FileStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first_week(story)
    export(story, store, tmp_path, day(8), full=True)
    export(story, store, tmp_path, day(9), full=True)
    second_week(story)
    export(story, store, tmp_path, day(15))
    page = (Path(snapshot.__file__).parent / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(code.replace("/srv/snapshots", str(tmp_path / "snapshot")), {})
    shown = {tuple(re.findall(r"[\w ]+", line)) for line in capsys.readouterr().out.splitlines()}
    assert {(" Energia Certa ", "            3 "), (" NULL          ", "            1 ")} <= shown


def test_a_changed_and_a_missing_file_are_named(story: Story, store: FileStore, tmp_path: Path) -> None:
    first_week(story)
    export(story, store, tmp_path, day(8))
    assert set(verify_snapshot(store)) == {None}
    changed, missing = sorted((tmp_path / "snapshot").rglob("*.parquet"))[:2]
    changed.write_bytes(changed.read_bytes() + b"x")
    missing.unlink()
    faults = {fault.reason for fault in verify_snapshot(store) if fault is not None}
    assert faults == {"changed", "missing"}
    export(story, store, tmp_path, day(9))
    (tmp_path / "snapshot" / name_of(day(8))).unlink()
    assert [*verify_snapshot(store)] == [Fault(name_of(day(8)), "missing")]
    with pytest.raises(InvalidInput, match="There is no snapshot in nowhere"):
        [*verify_snapshot(FolderStore(tmp_path / "nowhere", "nowhere"))]
    with pytest.raises(InvalidInput, match="There is no snapshot in nowhere"):
        prune_snapshot(FolderStore(tmp_path / "nowhere", "nowhere"), 1)


def test_an_export_continues_only_one_of_the_same_database_and_with_the_same_key(
    story: Story, store: FileStore, tmp_path: Path
) -> None:
    first_week(story)
    export(story, store, tmp_path, day(8))
    with pytest.raises(InvalidInput, match="has pseudonyms of another key"):
        export(story, store, tmp_path / "other home", day(9))
    export(story, store, tmp_path / "other home", day(9), full=True)
    export(story, store, tmp_path / "other home", day(10))
    newest = tmp_path / "snapshot" / name_of(day(10))
    newest.write_text(json.dumps(json.loads(newest.read_text()) | {"seal": "that of another custody log"}))
    with pytest.raises(InvalidInput, match="is of another database"):
        export(story, store, tmp_path / "other home", day(11))


def test_an_export_without_a_seal_is_not_taken_for_one_of_another_embedded_database(
    story: Story, store: FileStore, tmp_path: Path
) -> None:
    first_week(story)
    exported = replace(export(story, store, tmp_path, day(8)).manifest, database="embedded PostgreSQL", seal=None)
    database = Mock(embedded=True, address="embedded PostgreSQL")
    secrets = secret_of(tmp_path), secret_of(tmp_path / "other home")
    assert [is_of(Mock(), database, exported, secret) for secret in secrets] == [True, False]


def test_an_export_that_broke_off_goes_on_with_its_own_moment(story: Story, tmp_path: Path) -> None:
    class Full(FolderStore):
        left = 2

        def put(self, name: str, draft: Path) -> None:
            if not self.left:
                raise OSError("No space left on device")
            self.left -= 1
            super().put(name, draft)

    first_week(story)
    full = Full(tmp_path / "snapshot", "snapshot")
    with pytest.raises(OSError, match="No space"):
        export(story, full, tmp_path, day(8))
    assert snapshots(full) == []
    full.left = 100
    story.sale("S-9", seen_at=day(9))  # later than the export's moment
    resumed = export(story, full, tmp_path, day(10))
    assert resumed.manifest.moment == day(8)
    assert set(verify_snapshot(full)) == {None}


def test_a_full_disk_is_named_by_the_place_that_has_no_room(
    store: FolderStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "draft").write_text("rows")
    with monkeypatch.context() as full, pytest.raises(OSError, match=r"No space left.*snapshot/rows\.parquet"):
        full.setattr("shutil.move", Mock(side_effect=OSError(28, "No space left on device", "draft")))
        store.put("rows.parquet", tmp_path / "draft")


@pytest.mark.parametrize("what", ["another key", "files removed", "another custody log", "finished"])
def test_an_export_that_broke_off_goes_on_only_with_files_that_fit(
    what: str, story: Story, store: FileStore, tmp_path: Path
) -> None:
    first_week(story)
    put, kept = FolderStore.put, ("manifest" if what != "finished" else "nothing")

    def breaks_off(self: FolderStore, name: str, draft: Path) -> None:
        put(self, name, draft)
        if name.startswith(kept):
            (tmp_path / "snapshot" / name).unlink()
            raise OSError("No space left on device")

    with pytest.MonkeyPatch.context() as changed, suppress(OSError):
        changed.setattr(FolderStore, "put", breaks_off)
        changed.setattr("toolkit.operations.snapshot.export._Export.forget", lambda self: None)
        export(story, store, tmp_path, day(8))
    if what == "another key":
        (tmp_path / "snapshot.key").unlink()
    elif what == "files removed":
        shutil.rmtree(tmp_path / "snapshot" / "sale_observations")
    elif what == "another custody log":
        (note,) = tmp_path.rglob("under-way.json")
        note.write_text(json.dumps(json.loads(note.read_text()) | {"seal": "of a restored database"}))
    exported = export(story, store, tmp_path, day(9), full=True)
    resumed = len(CONTENTS) - 1 if what == "files removed" else 0
    assert (exported.manifest.moment, exported.resumed) == (day(8 if resumed else 9), resumed)
    assert set(verify_snapshot(store)) == {None}


def test_what_a_snapshot_cannot_tell_is_refused(story: Story, store: FileStore, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="There is no snapshot"):
        open_snapshot(store)
    first_week(story)
    export(story, store, tmp_path, day(8))
    export(story, store, tmp_path, day(9))
    with pytest.raises(InvalidInput, match="ends at 2026-03-09"):
        open_snapshot(store, day(10))
    first, second = sorted((tmp_path / "snapshot").glob("manifest-*.json"))
    first.unlink()
    with pytest.raises(UnreadableFile, match="is missing"):
        open_snapshot(store)
    second.write_text(json.dumps(json.loads(second.read_text()) | {"format": 99}))
    with pytest.raises(UnreadableFile, match="has format 99, and this toolkit reads 3"):
        open_snapshot(store)


def test_the_layout_changes_only_with_its_format() -> None:
    layout = [(content.name, content.stamp, content.schema.to_string()) for content in CONTENTS]
    digest = sha256(repr([*layout, CLOSINGS.to_string()]).encode()).hexdigest()[:16]
    assert (FORMAT, digest) == (3, "d162b5090d8b8a2b"), (
        "raise FORMAT: exports of the older layout must be refused, not misread"
    )


def test_pruning_keeps_the_newest_full_export_and_what_continues_it(
    story: Story, store: FileStore, tmp_path: Path
) -> None:
    first_week(story)
    export(story, store, tmp_path, day(8))
    export(story, store, tmp_path, day(9))
    export(story, store, tmp_path, day(10), full=True)
    export(story, store, tmp_path, day(11))
    prune_snapshot(store, 1)
    assert [manifest.moment for manifest in snapshots(store)] == [day(10), day(11)]
    assert set(verify_snapshot(store)) == {None}


def test_pruning_keeps_what_an_export_continues_that_was_made_beside_a_full_one(
    story: Story, store: FileStore, tmp_path: Path
) -> None:
    first_week(story)
    export(story, store, tmp_path, day(8))
    export(story, store, tmp_path, day(10), full=True)
    export(story, store, tmp_path, day(11))
    beside = tmp_path / "snapshot" / name_of(day(11))
    beside.write_text(json.dumps(json.loads(beside.read_text()) | {"previous": day(8).isoformat()}))
    assert prune_snapshot(store, 1) == []
    assert open_snapshot(store).moment == day(11)


def test_copies_that_nobody_used_for_a_day_make_room(tmp_path: Path) -> None:
    (tmp_path / "ab").mkdir()
    now = time.time()
    for name, days in (("older", 3), ("old", 2), ("used", 1.5), ("in use", 0.5)):
        (tmp_path / "ab" / name).write_bytes(bytes(100))
        os.utime(tmp_path / "ab" / name, (now, now - days * 86_400))
    for room, kept in ((400, 4), (299, 2), (0, 1), (0, 1)):
        prune_copies(tmp_path, room)
        assert len(list((tmp_path / "ab").iterdir())) == kept
    assert (tmp_path / "ab" / "in use").exists()


@pytest.mark.usefixtures("spark_client")
def test_the_commands_export_to_a_bucket_that_every_engine_reads(
    run: Run,
    story: Story,
    bucket: Bucket,
    s3: Any,
    embedded_environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first_week(story)
    target = f"s3://{bucket.name}/snapshots"
    run("snapshot", "export", target)
    unused = Path(embedded_environment["TOOLKIT_HOME"], "snapshots", "cache", "ab", "copy")
    unused.parent.mkdir(parents=True, exist_ok=True)
    unused.write_bytes(bytes(10 << 20))
    os.utime(unused, (0, 0))
    found = run("audit", "--snapshot", target, "--json", ends=3).told
    assert not unused.exists()
    assert (found["sales"], found["compliant"], found["incomplete"], found["conflict"]) == (4, 1, 2, 1)
    assert found["source"]["snapshot"].startswith(target)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    with sail() as (url, _):
        environ = embedded_environment | {"TOOLKIT_SPARK_URL": url}
        options = ("--snapshot", target, "--engine", "spark", "--as-of", found["asOf"], "--json")
        told = run("audit", *options, ends=3, within=environ).told
    assert told == found
    (file,) = s3.list_objects_v2(Bucket=bucket.name, Prefix="snapshots/sale_observations/")["Contents"]
    s3.put_object(Bucket=bucket.name, Key=file["Key"], Body=b"changed")
    name = file["Key"].removeprefix("snapshots/")
    assert run("snapshot", "verify", target, ends=3).out.startswith(f"changed  {name}\n"), "whatever copy was kept"
    assert f"{name} in {target} is not the file" in run("audit", "--snapshot", target, ends=1).err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--engine", "duckdb"], "To make one: toolkit snapshot export TARGET"),
        (["--snapshot", "nowhere", "--engine", "spark"], "There is no snapshot in nowhere"),
        (["--snapshot", "nowhere", "--engine", "postgres"], "take the engine duckdb or spark"),
        (["--snapshot", "nowhere", "--all"], "leave --all and --confirm-disappearance out"),
    ],
)
def test_options_that_cannot_work_say_what_to_do(run: Run, options: list[str], words: str) -> None:
    refused = run("audit", *options, ends=None)
    assert refused.status in {1, 2}
    assert words in refused.err


@pytest.mark.parametrize("fault", ["missing", "changed"])
def test_a_snapshot_with_a_missing_or_changed_file_is_not_judged(
    run: Run, story: Story, tmp_path: Path, fault: str
) -> None:
    first_week(story)
    run("snapshot", "export", tmp_path / "s")
    (file,) = (tmp_path / "s" / "sale_observations").rglob("*.parquet")
    if fault == "missing":
        file.unlink()
    else:
        pd.read_parquet(file).assign(partner="other").to_parquet(file)
    said = run("audit", "--snapshot", tmp_path / "s", ends=1).err
    assert ("There is no " if fault == "missing" else "is not the file that was exported") in said
    assert "export the whole history again" in said.lower()
    assert "Traceback" not in said


@pytest.mark.usefixtures("embedded_environment")  # whose services are looked for, too
def test_an_engine_that_is_not_installed_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit.extras.find_spec", lambda name: None)
    said = run("audit", "--snapshot", "s", "--engine", "spark", ends=1).err
    assert "pip install 'evidence-toolkit[spark]'" in said


def test_files_below_a_folder_that_is_a_pattern_are_read_alone_or_refused(tmp_path: Path, spark_url: str) -> None:
    for number, folder in enumerate(("old1", "old[1]", "{old1}", "old*")):
        (tmp_path / folder).mkdir()
        rows = pa.table({"id": [number], "partner": ["Sul"]})
        path = str(tmp_path / folder / "rows.parquet")
        parquet.write_table(rows, path)
        with duckdb_engine() as engine:
            assert engine.read(engine.parquet([path], rows.schema)) == rows
        if number:
            with spark_engine(spark_url) as cluster, pytest.raises(InvalidInput, match="for a pattern"):
                cluster.parquet([path], rows.schema)


def test_a_query_without_enough_memory_is_asked_once_more_within_half_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with duckdb_engine(tmp_path, "512MiB") as engine:
        backend, failures = engine._connection, ["of joins that just fit"]
        asked = backend.to_pyarrow

        def runs_out_first(query: Any) -> Any:
            if failures:
                raise duckdb.OutOfMemoryException(failures.pop())
            return asked(query)

        monkeypatch.setattr(backend, "to_pyarrow", runs_out_first)
        numbers = engine.read(ibis.range(3).unnest().name("number").as_table())
        assert numbers.to_pylist() == [{"number": 0}, {"number": 1}, {"number": 2}]
        assert backend.con.execute("SELECT current_setting('memory_limit')").fetchone() == ("256.0 MiB",)


def test_a_memory_that_is_too_small_is_said_with_its_setting() -> None:
    words = "more than 20MB of memory; give it more by TOOLKIT_ENGINE_MEMORY"
    with pytest.raises(EngineUnavailable, match=words), duckdb_engine(None, "20MB") as engine:
        engine.kept(ibis.range(5_000_000).unnest().name("number").as_table())


@pytest.mark.usefixtures("spark_client")
def test_a_cluster_that_dies_in_the_middle_is_said_within_seconds(tmp_path: Path) -> None:
    pd.DataFrame({"id": [1]}).to_parquet(tmp_path / "one.parquet")
    with (
        sail() as (url, server),
        pytest.raises(EngineUnavailable, match="stopped answering"),
        spark_engine(url) as engine,
    ):
        rows = engine.parquet([str(tmp_path / "one.parquet")], pa.schema({"id": pa.int64()}))
        assert engine.read(rows).num_rows == 1
        server.kill()
        engine.read(rows)


def test_a_spark_server_that_is_away_is_named_within_seconds(
    run: Run, story: Story, embedded_environment: dict[str, str], tmp_path: Path
) -> None:
    first_week(story)
    environ = embedded_environment | {"TOOLKIT_SPARK_URL": "sc://127.0.0.1:1"}
    run("snapshot", "export", tmp_path / "s", within=environ)
    said = run("audit", "--snapshot", tmp_path / "s", "--engine", "spark", ends=1, within=environ).err
    assert "Spark at sc://127.0.0.1:1 does not answer" in said
