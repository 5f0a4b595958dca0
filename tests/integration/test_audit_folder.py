"""An audit is a folder of Parquet: what makes it, where it lies, who opens it, what a kill leaves."""

import os
import re
import resource
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from pkgutil import resolve_name
from unittest.mock import DEFAULT, Mock
from zoneinfo import ZoneInfo

import nbformat
import pytest
from nbclient import NotebookClient

from tests.conftest import fresh_database
from tests.support.audits import made_audit, plan_in, sail
from tests.support.process_pool import stalled
from tests.support.uploaded_sales import FIRST, Story, add_sale, day, rows
from toolkit.audit import engines, extract
from toolkit.audit.engines import SparkEngine
from toolkit.audit.folder import TABLES, list_audits, open_audit
from toolkit.audit.judge import GIVEN
from toolkit.audit.run import make_audit
from toolkit.bucket.client import access_settings
from toolkit.bucket.file_store import FolderStore, S3Store
from toolkit.cli import main
from toolkit.contract.deadlines import wall_clock
from toolkit.database.observations import observe_service
from toolkit.errors import BucketUnavailable, UnreadableFile
from toolkit.settings import Settings


@pytest.fixture
def story(database, clock):
    """Three sales, of which the first alone is compliant."""
    clock.now = day(9)
    told = Story(database)
    for number, evidence_type in enumerate(("KYC", "POV", "DOC_CONTRATANTE")):
        told.sale(f"S-{number}", client_id=told.client(), partner="Norte")
        told.file(f"S-{number}", evidence_type)
    told.synced(FIRST)
    return told


def test_inputs_go_after_the_newest_audits_and_outputs_after_a_time(database, clock, story, tmp_path):
    plan = plan_in(tmp_path, audits_inputs=1, audits_days=200)
    older = make_audit(database, plan)
    clock.now += timedelta(days=1)
    newer = make_audit(database, plan)
    inputs = [f"{name}.parquet" for name in GIVEN]
    assert [(Path(older.folder) / each).exists() for each in inputs] == [False] * 3
    assert [(Path(newer.folder) / each).exists() for each in inputs] == [True] * 3
    older.verify()
    assert open_audit(older.folder).sql("FROM verdicts")["status"].to_pylist() == [
        "incomplete",
        "incomplete",
        "compliant",
    ]
    clock.now += timedelta(days=199, hours=1)
    last = make_audit(database, plan)
    assert list_audits(plan.store) == [newer.name, last.name]
    clock.now += timedelta(days=800)  # a clock that is ahead
    past = make_audit(database, plan, as_of=last.facts.as_of - timedelta(minutes=1))
    assert list_audits(plan.store) == [newer.name, past.name, last.name]


def test_the_latest_audit_is_of_the_latest_moment_whatever_the_offset_it_was_asked_with(database, story, tmp_path):
    newer = make_audit(database, plan_in(tmp_path))
    before = (newer.facts.as_of - timedelta(hours=1)).astimezone(ZoneInfo("Asia/Tokyo"))
    made_audit(database, tmp_path, as_of=before)
    assert list_audits(plan_in(tmp_path).store)[-1] == newer.name


def test_a_past_audit_that_was_changed_is_made_again(database, story, tmp_path):
    first, second = (made_audit(database, tmp_path, as_of=day(2)) for _ in range(2))
    assert first.name == second.name
    Path(first.folder, "verdicts.parquet").write_bytes(b"")
    again = made_audit(database, tmp_path, as_of=day(2))
    again.verify()
    facts = Path(again.folder, "audit.json")
    facts.write_text(facts.read_text().replace('"trend"', '"other"'))
    with pytest.raises(UnreadableFile, match=r"audit.json of the audit .* is not what was written"):
        open_audit(again.folder).verify("trend")


def in_bucket(bucket, environ):
    aws = access_settings(Settings.from_environment(environ))
    return S3Store(bucket.name, "audits", aws, f"s3://{bucket.name}/audits")


def came_here(monkeypatch):
    """The rows of each answer that comes from the cluster to this machine, which fetches no file of it."""
    counts, read = [], SparkEngine.read

    def counted(engine, sql):
        rows = read(engine, sql)
        counts.append(rows.num_rows)
        return rows

    monkeypatch.setattr(SparkEngine, "read", counted)
    monkeypatch.setattr(S3Store, "local", None)
    return counts


@pytest.mark.usefixtures("spark_client")
@pytest.mark.parametrize("place", ["folder", "bucket"])
def test_a_cluster_writes_the_outputs_itself_and_they_hold_the_same_rows(
    database, story, bucket, bucket_environment, tmp_path, monkeypatch, place
):
    for number in range(20):
        story.sale(f"C-{number}", client_id=story.client())
        story.file(f"C-{number}", "KYC")
    plan = plan_in(tmp_path)
    here = make_audit(database, plan)
    if place == "bucket":
        plan = replace(plan, store=in_bucket(bucket, {**os.environ, **bucket_environment}))
    with sail({**bucket_environment, "AWS_ALLOW_HTTP": "true"}) as url, monkeypatch.context() as patch:
        counts = came_here(patch)
        plan = replace(plan, spark_url=url)
        there = make_audit(database, plan, as_of=here.facts.as_of)
    there.verify()
    assert max(counts) < 23, "only counts and the rows that a report shows come here"
    assert all("verdicts.parquet/" in file.name for file in there.facts.parts["verdicts"].files)
    assert there.facts.counts == {"sales": 23, "compliant": 21, "incomplete": 2, "conflict": 0}
    for table in TABLES:
        rows = [sorted(map(str, each.sql(f"FROM {table}").to_pylist())) for each in (there, here)]
        assert rows[0] == rows[1]


def test_only_findings_that_came_or_went_are_written(database, clock, story, tmp_path):
    def written():
        """Each row of the findings' history, by the transaction that wrote it."""
        return dict(rows(database, "SELECT finding_id, CAST(xmin AS text) FROM audit.finding_observations"))

    made_audit(database, tmp_path)
    before = written()
    clock.now += timedelta(days=1)
    made_audit(database, tmp_path)
    assert written() == before
    story.file("S-1", "DOC_CONTRATANTE", at=clock.now)
    clock.now += timedelta(days=1)
    made_audit(database, tmp_path)
    after = written()
    assert sum(after[each] != before[each] for each in before) == 1
    assert after.keys() == before.keys()


def test_anybody_opens_an_audit_in_the_lines_of_the_readme(database, clock, story, tmp_path, monkeypatch):
    before = made_audit(database, tmp_path)
    clock.now += timedelta(days=1)
    made = made_audit(database, tmp_path)
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"^```pycon\n((?:>>> .*duckdb.*\n)+)```", readme, flags=re.MULTILINE)
    imported, query = lines.replace(">>> ", "").splitlines()
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(imported, names)
    counted = product((before.name, made.name), (("compliant", 1), ("incomplete", 2)))
    expected = [(f"audits/{name}/verdicts.parquet", *each) for name, each in counted]
    assert sorted(eval(query, names).fetchall()) == expected
    objects = f"SELECT max(written_at) FROM 'audits/{made.name}/objects.parquet'"
    [(written,)] = names["duckdb"].sql(objects).fetchall()
    assert written <= clock.now, "a moment comes out as one"


BAR = """
from toolkit.audit.duckdb_session import duckdb_session
with duckdb_session() as session:
    print(session.execute("SELECT current_setting('enable_progress_bar')").fetchall())
"""


def test_a_notebook_draws_its_own_picture_of_an_audit_and_no_bar_of_duckdb(database, story, tmp_path):
    made = made_audit(database, tmp_path)
    guide = (Path(__file__).parents[2] / "notebooks" / "README.md").read_text("utf-8")
    (cell,) = re.findall(r"```python\n([^`]*read_parquet.+?)```", guide, flags=re.DOTALL)
    cell = re.sub(r'"audits/[^/"]+', f'"{made.folder}', cell)
    drawn = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in (cell, BAR)])
    NotebookClient(drawn, kernel_name="python3").execute()
    (shown,), (bar,) = (each.outputs for each in drawn.cells)
    assert bar["text"] == "[(False,)]\n"
    assert "incomplete" in shown["data"]["text/html"]
    assert "linear-gradient" in shown["data"]["text/html"]


def test_a_large_table_is_read_in_ranges_under_one_snapshot(database, story, tmp_path, monkeypatch):
    whole = made_audit(database, tmp_path / "whole", as_of=day(3))
    for module, size in ((extract, "PIECE"), (engines, "RECORDS")):
        monkeypatch.setattr(module, size, 1)
    again = made_audit(database, tmp_path / "ranges", as_of=day(3))
    assert again.facts.parts == whole.facts.parts


BEFORE_IT_IS_NOTED = (
    ("toolkit.audit", "run", "extract"),
    ("toolkit.audit", "run", "file_findings"),
    ("toolkit.audit.run", "_Work", "_judge"),
    ("toolkit.audit", "run", "note_changes"),
    ("toolkit.audit", "run", "write_findings"),
    ("toolkit.audit", "run", "write_lists"),
)
NOTED = ("toolkit.audit", "run", "publish")


@pytest.fixture
def environ(database, embedded_environment, tmp_path):
    add_sale(database)
    return {**os.environ, **embedded_environment, "TOOLKIT_AUDITS": str(tmp_path / "audits")}


def published(environ):
    """The audits under a final name, each of which is whole; nothing else is there."""
    folder = Path(environ["TOOLKIT_AUDITS"])
    names = list_audits(FolderStore(folder, str(folder)))
    for name in names:
        open_audit(folder / name).verify()
    seen = [path.name for path in folder.glob("*") if not path.name.startswith(".")]
    assert sorted(seen) == sorted(names)
    return names


def noted(database):
    """The audits and the episodes of findings that PostgreSQL keeps."""
    [counts] = rows(
        database,
        "SELECT (SELECT count(*) FROM audit.audit_runs), (SELECT count(*) FROM audit.finding_observations)",
    )
    return counts


@pytest.mark.parametrize("place", [*BEFORE_IT_IS_NOTED, NOTED], ids=lambda place: place[2])
def test_a_kill(environ, database, place):
    with stalled(environ, place, "audit"):
        assert published(environ) == []
    was_noted = place == NOTED
    assert (noted(database)[0], published(environ)) == (was_noted, [])
    assert main(["-q", "audit"], environ) == 3
    assert len(published(environ)) == 1 + was_noted
    assert noted(database) == (1 + was_noted, 3)
    assert not list(Path(environ["TOOLKIT_AUDITS"]).rglob(".toolkit-draft-*"))


AWAY = Mock(side_effect=BucketUnavailable("away"))


@pytest.mark.parametrize(
    "place", [BEFORE_IT_IS_NOTED[0], BEFORE_IT_IS_NOTED[3], NOTED], ids=lambda place: place[2]
)
def test_a_bucket_for_audits_that_is_away_from_some_stage_on(
    environ, database, bucket, tmp_path, monkeypatch, place
):
    """It is noted by then: the next audit publishes it, before it is made itself."""
    database.clock = wall_clock
    observe_service(database)
    plan = replace(plan_in(tmp_path), store=in_bucket(bucket, environ))
    with monkeypatch.context() as patched:

        def gone(*_, **__):
            for name in ("put", "take", "names", "text"):
                patched.setattr(S3Store, name, AWAY)
            return DEFAULT

        patched.setattr(".".join(place), Mock(wraps=resolve_name(".".join(place)), side_effect=gone))
        with pytest.raises(BucketUnavailable, match="away"):
            make_audit(database, plan)
    assert (noted(database), list_audits(plan.store)) == ((1, 3), [])
    made = make_audit(database, plan)
    assert noted(database) == (2, 3)
    first, second = (open_audit(name, plan.store, tmp_path) for name in list_audits(plan.store))
    assert made.facts.changes_since == first.facts.as_of
    for each in (first, second):
        each.verify()


def test_what_one_database_left_is_not_removed_by_another_and_gets_a_name_of_its_own(
    server, database, tmp_path, monkeypatch
):
    """Both audits are of the same second, and have one store."""
    plan, moment = plan_in(tmp_path), datetime.now(UTC).replace(microsecond=0)
    database.clock = lambda: moment
    with fresh_database(server, clock=database.clock) as other:
        for each in (database, other):
            add_sale(each)
            observe_service(each)
        with monkeypatch.context() as patched:
            patched.setattr(FolderStore, "take", AWAY)
            with pytest.raises(BucketUnavailable):
                make_audit(database, plan)
        make_audit(other, plan)
    make_audit(database.at(lambda: moment + timedelta(minutes=1)), plan)
    assert [name[20:] for name in list_audits(plan.store)] == ["", "-2", ""]


@pytest.mark.parametrize("place", BEFORE_IT_IS_NOTED[1:], ids=lambda place: place[2])
def test_a_disk_that_is_full_from_some_stage_on(environ, database, place):
    with stalled(environ, place, "-q", "audit") as process:
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (10, 10))
        process.told.send("go on")
        status, said = process.told.recv()
    assert (status, said.count("\n")) == (1, 1), said
    assert said.rstrip(".\n").endswith("too large")
    assert (noted(database), published(environ)) == ((0, 0), [])
    assert main(["-q", "audit"], environ) == 3
    assert (noted(database), len(published(environ))) == ((1, 3), 1)
