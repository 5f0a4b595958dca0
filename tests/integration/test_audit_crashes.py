"""An audit that is killed, or that finds no room or no store, leaves the old state or the new one."""

import os
import resource
from contextlib import contextmanager, redirect_stderr
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from io import StringIO
from pathlib import Path

import pytest

from tests.conftest import _TEMPLATE, _fresh
from tests.support.audits import plan_in
from tests.support.process_pool import FORKED, stalled
from tests.support.uploaded_sales import add_sale, rows
from toolkit.audit import publish
from toolkit.audit.folder import list_audits, open_audit
from toolkit.audit.run import make_audit
from toolkit.bucket.client import access_settings
from toolkit.bucket.file_store import FolderStore, S3Store
from toolkit.cli import main
from toolkit.contract.deadlines import wall_clock
from toolkit.database.observations import observe_service
from toolkit.errors import BucketUnavailable
from toolkit.settings import Settings

BEFORE_IT_IS_NOTED = (
    ("toolkit.audit", "run", "extract"),
    ("toolkit.audit", "run", "write_inputs"),
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


def before(place, happens):
    """The function at ``place``, in front of which something happens."""
    function = getattr(getattr(import_module(place[0]), place[1]), place[2])

    def after_it(*args, **given):
        happens()
        return function(*args, **given)

    return after_it


def away(*_, **__):
    raise BucketUnavailable("away")


@pytest.mark.parametrize(
    "place", [BEFORE_IT_IS_NOTED[0], BEFORE_IT_IS_NOTED[3], NOTED], ids=lambda place: place[2]
)
def test_a_bucket_for_audits_that_is_away_from_some_stage_on(
    environ, database, bucket, tmp_path, monkeypatch, place
):
    """It is noted by then: the next audit publishes it, before it is made itself."""
    observe_service(database, clock=wall_clock)
    plan = replace(plan_in(tmp_path), store=in_bucket(bucket, environ))
    with monkeypatch.context() as patched:

        def gone():
            for name in ("put", "claim", "names", "text"):
                patched.setattr(S3Store, name, away)

        patched.setattr(".".join(place), before(place, gone))
        with pytest.raises(BucketUnavailable, match="away"):
            make_audit(database, plan, clock=wall_clock)
    assert (noted(database), list_audits(plan.store)) == ((1, 3), [])
    made = make_audit(database, plan, clock=wall_clock)
    assert noted(database) == (2, 3)
    first, second = (open_audit(name, plan.store, tmp_path) for name in list_audits(plan.store))
    assert made.facts.changes_since == first.facts.as_of
    for each in (first, second):
        each.verify()


def in_bucket(bucket, environ):
    aws = access_settings(Settings.from_environment(environ))
    return S3Store(bucket.name, "audits", aws, f"s3://{bucket.name}/audits", embedded=True)


def test_what_one_database_left_is_not_removed_by_another_and_gets_a_name_of_its_own(
    server, database, tmp_path, monkeypatch
):
    """Both audits are of the same second, and have one store."""
    plan, moment = plan_in(tmp_path), datetime.now(UTC).replace(microsecond=0)
    with contextmanager(_fresh)(server, _TEMPLATE) as other:
        for each in (database, other):
            add_sale(each)
            observe_service(each, clock=lambda: moment)
        with monkeypatch.context() as patched:
            patched.setattr(publish, "_renamed", away)
            with pytest.raises(BucketUnavailable):
                make_audit(database, plan, clock=lambda: moment)
        make_audit(other, plan, clock=lambda: moment)
    make_audit(database, plan, clock=lambda: moment + timedelta(minutes=1))
    assert [name[20:] for name in list_audits(plan.store)] == ["", "-2", ""]


@pytest.mark.parametrize("place", BEFORE_IT_IS_NOTED[1:], ids=lambda place: place[2])
def test_a_disk_that_is_full_from_some_stage_on(environ, database, place):
    here, there = FORKED.Pipe()
    process = FORKED.Process(target=_without_room, args=(environ, place, there))
    process.start()
    there.close()
    status, said = here.recv()
    process.join()
    assert (status, said.count("\n")) == (1, 1), said
    assert "too large" in said
    assert (noted(database), published(environ)) == ((0, 0), [])
    assert main(["-q", "audit"], environ) == 3
    assert (noted(database), len(published(environ))) == ((1, 3), 1)


def _without_room(environ, place, told):
    def full():
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))

    setattr(getattr(import_module(place[0]), place[1]), place[2], before(place, full))
    with redirect_stderr(StringIO()) as said:
        status = main(["-q", "audit"], environ)
    told.send((status, said.getvalue()))
