"""An audit that is killed, or that finds no room or no store, leaves the old state or the new one."""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.support.audits import plan_in
from tests.support.process_pool import FORKED, Place, stalled
from tests.support.uploaded_sales import add_sale
from toolkit.audit import run
from toolkit.audit.folder import list_audits, open_audit
from toolkit.audit.observe_bucket import sync_bucket
from toolkit.audit.run import make_audit
from toolkit.bucket.client import Bucket
from toolkit.bucket.file_store import FolderStore
from toolkit.cli import main
from toolkit.database.connection import Database
from toolkit.database.tables import audit_runs, finding_observations
from toolkit.errors import BucketUnavailable

BEFORE_IT_IS_NOTED = (
    ("toolkit.audit", "run", "extract"),
    ("toolkit.audit", "run", "write_inputs"),
    ("toolkit.audit.run", "_Work", "_judge"),
    ("toolkit.audit", "run", "note_changes"),
    ("toolkit.audit", "run", "write_lists"),
)
NOTED = ("toolkit.audit", "run", "_publish")


@pytest.fixture
def environ(
    home: Path, database: Database, bucket_environment: Mapping[str, str], tmp_path: Path
) -> dict[str, str]:
    url = database.engine.url.render_as_string(hide_password=False)
    add_sale(database)
    own = {"TOOLKIT_HOME": str(home), "DATABASE_URL": url, "TOOLKIT_AUDITS": str(tmp_path / "audits")}
    return {**os.environ, **bucket_environment, **own}


def published(environ: Mapping[str, str]) -> list[str]:
    """The audits under a final name, each of which is whole; nothing else is there."""
    folder = Path(environ["TOOLKIT_AUDITS"])
    names = list_audits(FolderStore(folder, str(folder)))
    for name in names:
        open_audit(folder / name).verify()
    seen = [path.name for path in folder.glob("*") if not path.name.startswith(".")]
    assert sorted(seen) == sorted(names)
    return names


def noted(database: Database) -> tuple[int, int]:
    """The audits and the episodes of findings that PostgreSQL keeps."""
    with database.transaction() as connection:
        audits, episodes = (
            connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for table in (audit_runs, finding_observations)
        )
        return audits, episodes


@pytest.mark.parametrize("place", [*BEFORE_IT_IS_NOTED, NOTED], ids=lambda place: place[2])
def test_a_kill(environ: dict[str, str], database: Database, place: Place) -> None:
    with stalled(environ, place, "audit"):
        assert published(environ) == []
    was_noted = place == NOTED
    assert (noted(database)[0], published(environ)) == (was_noted, [])
    assert main(["-q", "audit"], environ) == 3
    assert len(published(environ)) == 1 + was_noted
    assert noted(database) == (1 + was_noted, 3)
    assert not list(Path(environ["TOOLKIT_AUDITS"]).glob(".toolkit-draft-*"))


def test_a_bucket_for_audits_that_is_away(
    database: Database, bucket: Bucket, clock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is noted by then: the next audit publishes it, before it is made itself."""
    add_sale(database)
    sync_bucket(database, bucket, clock=clock)
    plan = plan_in(tmp_path)

    def away(*_: Any) -> None:
        raise BucketUnavailable("away")

    with monkeypatch.context() as patched:
        patched.setattr(run, "_publish", away)
        for _ in range(2):
            with pytest.raises(BucketUnavailable, match="away"):
                make_audit(database, plan, clock=clock)
            assert (noted(database), list_audits(plan.store)) == ((1, 3), [])
    made = make_audit(database, plan, clock=clock)
    assert noted(database) == (2, 3)
    assert len(list_audits(plan.store)) == 2
    assert made.facts.changes_since == open_audit(list_audits(plan.store)[0], plan.store).facts.as_of


def test_a_disk_without_room(environ: dict[str, str], database: Database) -> None:
    here, there = FORKED.Pipe()
    process = FORKED.Process(target=_within, args=(environ, 1_000, there))
    process.start()
    there.close()
    status, said = here.recv()
    process.join()
    assert (status, said.count("\n")) == (1, 1), said
    assert "too large" in said
    assert (noted(database), published(environ)) == ((0, 0), [])
    assert main(["-q", "audit"], environ) == 3
    assert (noted(database), len(published(environ))) == ((1, 3), 1)


def _within(environ: dict[str, str], bytes_: int, told: Any) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, bytes_))
    with redirect_stderr(StringIO()) as said:
        status = main(["-q", "audit"], environ)
    told.send((status, said.getvalue()))
