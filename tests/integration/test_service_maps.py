"""The service's tables as other teams build them: drafted, read through views, and judged as they should be."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.integration.evidence_bytes import pdf, tone
from toolkit.entrypoints.cli import main
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database, raw
from toolkit.storage.service_map.draft import draft_map

MAPS = Path(__file__).parents[1] / "data" / "service_maps"
KINDS = ("typescript", "rails", "cadastro", "documents")

STORY = {
    "S-2": ("B", "incomplete", "AUT|DOC_RESPONSAVEL_FINANCEIRO", ""),
    "S-4": ("D", "conflict", "", "KYC_NOT_ALONE"),
    "S-5": ("A", "incomplete", "POV", "COMPLETED_WITHOUT_EVIDENCE"),
    "S-7": ("C", "incomplete", "POV", ""),
}
"""The sales that lack something, in every one of the schemas; S-1, S-3 and S-6 are compliant."""


def load(database: Database, kind: str, *, owner: str = "service_owner") -> None:
    """Make the tables of another team, which own them."""
    with database.transaction() as connection:
        raw(connection).execute((MAPS / f"{kind}.sql").read_bytes())
        raw(connection).execute(_GIVE_AWAY.replace(":owner", owner).encode())


_GIVE_AWAY = """
    DO $$ BEGIN CREATE ROLE :owner NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
    DO $$ DECLARE place regclass; BEGIN
        FOR place IN SELECT relid FROM pg_stat_user_tables LOOP
            EXECUTE format('ALTER TABLE %s OWNER TO :owner', place);
        END LOOP;
    END $$
"""


@contextmanager
def mapped(database: Database) -> Iterator[Database]:
    """The same database, read through the views."""
    opened = Database(database.engine.url.render_as_string(hide_password=False), mapped=True)
    yield opened
    opened.dispose()


@pytest.mark.parametrize("kind", KINDS)
def test_the_draft_needs_no_correction(empty_database: Database, kind: str) -> None:
    """After a wanted change: RENEW_GOLDEN=1 pytest tests/integration/test_service_maps.py, and look at it."""
    load(empty_database, kind)
    draft = draft_map(empty_database, "America/Sao_Paulo")
    assert draft.to_fill_in == ()
    golden = MAPS / f"{kind}.toml"
    if os.environ.get("RENEW_GOLDEN"):
        golden.write_text(draft.text, encoding="utf-8")
    assert draft.text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_every_schema_gives_the_same_report(
    empty_database: Database,
    bucket: Bucket,
    bucket_environment: Mapping[str, str],
    s3: Any,
    tmp_path: Path,
    kind: str,
) -> None:
    load(empty_database, kind)
    environ = environment(empty_database, bucket_environment, kind)
    assert main(["db", "upgrade"], environ) == 0
    with mapped(empty_database) as database, database.transaction() as connection:
        keys = connection.scalars(sa.text("SELECT object_key FROM audit_service.evidences")).all()
    assert len(keys) == 12
    for key in keys:
        s3.put_object(Bucket=bucket.name, Key=key, Body=pdf() if key.endswith(".pdf") else tone())
    assert main(["-q", "report", "--out", str(tmp_path), "--format", "csv"], environ) == 0
    assert reported(tmp_path / "missing-evidence.csv") == STORY


def environment(database: Database, bucket_environment: Mapping[str, str], kind: str) -> dict[str, str]:
    return {
        **os.environ,
        **bucket_environment,
        "DATABASE_URL": database.engine.url.render_as_string(hide_password=False),
        "TOOLKIT_SERVICE_MAP": str(MAPS / f"{kind}.toml"),
    }


def reported(path: Path) -> dict[str, tuple[str, ...]]:
    with path.open(encoding="utf-8", newline="") as file:
        return {
            row["saleId"]: (row["utilityGroup"], row["status"], row["missing"], row["problems"])
            for row in csv.DictReader(file)
        }
