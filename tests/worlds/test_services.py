"""No calm wrong answer: in every wrong world of the service, and in mixtures of two, the sentence is said."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from contextlib import ExitStack
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from tests.support.evidence_files import pdf, tone
from tests.worlds.services import STATEMENTS, TABLES, WORLDS, World
from toolkit.audit.observe_bucket import sync_bucket
from toolkit.audit.publish import AuditPlan
from toolkit.audit.run import make_audit
from toolkit.bucket.file_store import FolderStore
from toolkit.contract.deadlines import Deadlines
from toolkit.database import schema
from toolkit.database.connection import Database, raw
from toolkit.database.observations import last_reading
from toolkit.database.service import load_service
from toolkit.errors import ToolkitError

Said = Callable[[tuple[World, ...]], tuple[list[str], list[str]]]


@pytest.fixture
def said(empty_database, bucket, s3, clock, tmp_path):
    """Audit a calm world, let it go wrong by some SQL, audit again: the sentences, and the verdicts as texts."""
    plan = AuditPlan(
        store=FolderStore(tmp_path / "audits", "audits"),
        work=tmp_path,
        deadlines=Deadlines(ZoneInfo("America/Sao_Paulo")),
    )
    path = tmp_path / "service.sql"
    url = empty_database.engine.url.render_as_string(hide_password=False)
    with ExitStack() as opened:

        def read() -> tuple[Database, list[str]]:
            database = Database(url, service=load_service(path))  # a process of its own, each night
            opened.callback(database.dispose)
            schema.upgrade(database)
            sync_bucket(database, bucket, clock=clock)
            with database.transaction() as connection:
                reading = last_reading(connection)
            assert reading is not None
            return database, [*reading.changes, *reading.notes]

        def make(worlds: tuple[World, ...]) -> tuple[list[str], list[str]]:
            statements = STATEMENTS
            for world in worlds:
                statements = statements.replace(*world.reads) if world.reads[0] else statements
            path.write_text(statements, encoding="utf-8")
            with empty_database.transaction() as connection:
                connection.execute(sa.text("CREATE SCHEMA svc"))
                raw(connection).execute((TABLES + "".join(world.before + ";" for world in worlds)).encode())
                keys = connection.scalars(sa.text("SELECT key FROM svc.doc")).all()
            judged = any(world.verdict for world in worlds)
            for key in keys if judged else ():
                body = tone() if key.endswith("POV") else pdf()
                s3.put_object(Bucket=bucket.name, Key=key, Body=body)
            assert read()[1] == [], "a calm world says nothing"
            with empty_database.transaction() as connection:
                raw(connection).execute(";".join(world.sql for world in worlds).encode())
            for world in worlds:
                statements = statements.replace(*world.then) if world.then[0] else statements
            path.write_text(statements, encoding="utf-8")
            database, sentences = read()
            if not judged:
                return sentences, []
            audit = make_audit(database, plan, clock=clock)
            assert audit.facts.service is not None
            assert sentences == [*audit.facts.service["changes"], *audit.facts.service["notes"]]
            rows = audit.sql("SELECT sale_id, status, missing, problems FROM verdicts WHERE status <> 'compliant'")
            return sentences, [" ".join(row.values()) for row in rows.to_pylist()]

        yield make


def check(said: Said, *worlds: World) -> None:
    stops = [world for world in worlds if world.stops]
    if stops:
        with pytest.raises(ToolkitError, match="|".join(world.said for world in stops)):
            said(worlds)
        return
    sentences, verdicts = said(worlds)
    for world in worlds:
        assert any(re.search(world.said, text) for text in sentences) or not world.said, (world.name, sentences)
        assert len(worlds) > 1 or any(text.startswith(world.verdict) for text in verdicts) or not world.verdict, (
            world.name,
            verdicts,
        )


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_every_wrong_world_is_told(said, world):
    check(said, world)


ALONE = {"a table swapped by renaming", "a table that became a view", "a schema swapped by renaming"}
"""Worlds after which other SQL about the same table means another one."""


@pytest.mark.parametrize("seed", range(6))
def test_a_mixture_of_two_wrong_worlds_is_told(said, seed):
    draw = random.Random(seed)  # the same mixtures each time
    one = draw.choice([world for world in WORLDS if not world.stops and world.name not in ALONE])
    rows = [world for world in WORLDS if not world.stops and world.sql.startswith("INSERT") and world != one]
    check(said, one, draw.choice(rows))
