"""An audit folder compared with the histories of today: nothing differs, unless somebody rewrote them."""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from tests.conftest import Run, SettableClock
from tests.support.observations import FIRST, Story, day
from toolkit.audit.compare import ChangedInput, changed_inputs
from toolkit.audit.run import AuditPlan, make_audit
from toolkit.bucket.file_store import FolderStore
from toolkit.contract.deadlines import Deadlines
from toolkit.contract.evidence import EvidenceType
from toolkit.database.connection import Database
from toolkit.errors import InvalidInput, UnreadableFile


@pytest.fixture
def plan(tmp_path: Path) -> AuditPlan:
    place = tmp_path / "audits"
    place.mkdir()
    return AuditPlan(
        store=FolderStore(place, "audits"), work=tmp_path, deadlines=Deadlines(ZoneInfo("America/Sao_Paulo"))
    )


@pytest.fixture(autouse=True)
def _later(clock: SettableClock) -> None:
    clock.now = day(9)


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


def rewrite(database: Database, statement: str) -> None:
    """Change what nobody may change, as an owner of the tables who disables their triggers."""
    with database.transaction() as connection:
        for what in ("DISABLE", "ENABLE"):
            connection.exec_driver_sql(f"ALTER TABLE audit.sale_observations {what} TRIGGER USER")
            if what == "DISABLE":
                connection.execute(sa.text(statement))


def test_what_happened_later_is_no_difference_and_a_rewritten_history_is_named(
    database: Database, clock: SettableClock, plan: AuditPlan, scratch: Path
) -> None:
    story = Story(database)
    for sale in ("S-1", "S-2"):
        story.sale(sale)
        story.file(sale, EvidenceType.POV)
    story.synced(FIRST)
    audit = make_audit(database, plan, clock=clock, as_of=day(3))
    story.file("S-1", EvidenceType.DOC_CONTRATANTE, at=day(4))
    (scratch / "a").mkdir()
    assert changed_inputs(database, audit, scratch / "a") == []
    rewrite(database, "UPDATE audit.sale_observations SET utility_group = 'B' WHERE sale_id = 'S-2'")
    rewrite(database, "DELETE FROM audit.sale_observations WHERE sale_id = 'S-1'")
    (scratch / "b").mkdir()
    assert changed_inputs(database, audit, scratch / "b") == [
        ChangedInput("sales", "S-1", "missing"),
        ChangedInput("sales", "S-2", "changed"),
    ]


def test_a_folder_that_somebody_edited_is_named_first(
    database: Database, clock: SettableClock, plan: AuditPlan, scratch: Path
) -> None:
    Story(database).sale("S-1")
    audit = make_audit(database, plan, clock=clock, as_of=day(3))
    (Path(audit.folder) / "verdicts.parquet").write_bytes(b"forged")
    with pytest.raises(UnreadableFile, match=r"verdicts\.parquet of the audit"):
        changed_inputs(database, audit, scratch)


def test_inputs_that_retention_removed_cannot_be_compared(
    database: Database, clock: SettableClock, plan: AuditPlan, scratch: Path
) -> None:
    Story(database).sale("S-1")
    audit = make_audit(database, plan, clock=clock, as_of=day(3))
    (Path(audit.folder) / "sales.parquet").unlink()
    with pytest.raises(InvalidInput, match="removed by retention"):
        changed_inputs(database, audit, scratch)


def test_the_command_verifies_a_folder_and_names_what_was_rewritten(
    run: Run, database: Database, clock: SettableClock, plan: AuditPlan
) -> None:
    Story(database).sale("S-1")
    folder = make_audit(database, plan, clock=clock, as_of=day(3)).folder
    assert run("verify", folder).out == f"as written  {folder}\n"
    assert "hold what this audit was made from" in run("verify", folder, "--live").out
    rewrite(database, "UPDATE audit.sale_observations SET utility_group = 'B'")
    assert "changed     sales: S-1" in run("verify", folder, "--live", ends=3).out
    run("verify", Path(folder).parent.parent, "--live", ends=2)
