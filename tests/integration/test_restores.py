"""A dump restored in place is noticed by a kept seal, and told until two people confirm it."""

from __future__ import annotations

import sqlalchemy as sa

from tests.conftest import Run, SettableClock
from toolkit.database.connection import Database
from toolkit.database.observations import last_reading
from toolkit.database.restores import notice_restore, pending_restore


def test_a_restore_is_told_until_two_people_confirm_it(run: Run, database: Database, clock: SettableClock) -> None:
    with database.transaction() as connection:
        assert pending_restore(connection) is None
        notice_restore(connection, "f" * 64, clock)
        notice_restore(connection, "f" * 64, clock)
        assert connection.scalar(sa.text("SELECT count(*) FROM audit.restores")) == 1
        assert "restored from an older dump" in (pending_restore(connection) or "")
    confirm = ("db", "confirm-restore", "--reason", "disk failure", "--by", "Ana")
    assert "by two people" in run(*confirm, "--approved-by", "ana", ends=1).err
    run(*confirm, "--approved-by", "Rui")
    assert "no restore to confirm" in run(*confirm, "--approved-by", "Rui", ends=1).err
    with database.transaction() as connection:
        assert pending_restore(connection) is None
        told = connection.execute(
            sa.text("SELECT detail FROM audit.custody_events WHERE kind = 'RESTORE_CONFIRMED'")
        ).scalar_one()
    assert "Ana" not in str(told)
    assert {"by", "approvedBy", "reason"} <= set(told)


def test_an_audit_after_a_restore_in_place_says_so_and_ends_with_3(
    run: Run, database: Database, embedded_environment: dict[str, str]
) -> None:
    """The dump is played by deleting the seals and events since: the kept seal is missing then."""
    with database.transaction() as connection:
        connection.execute(
            sa.text(
                "INSERT INTO public.sales (id, utility_group, is_client_financial_responsible, created_at) "
                "VALUES ('S-1', 'A', true, now())"
            )
        )
    run("-q", "audit", ends=3)
    with database.transaction() as connection:
        for table in ("custody_seals", "custody_events"):
            connection.execute(sa.text(f"ALTER TABLE audit.{table} DISABLE TRIGGER USER"))
        connection.execute(sa.text("UPDATE audit.custody_seals SET hash = repeat('0', 63) || '1'"))
        for table in ("custody_seals", "custody_events"):
            connection.execute(sa.text(f"ALTER TABLE audit.{table} ENABLE TRIGGER USER"))
        connection.execute(sa.text("UPDATE public.sales SET utility_group = 'B'"))
    run("-q", "audit", ends=3)
    with database.transaction() as connection:
        reading = last_reading(connection)
    assert reading is not None
    assert any("restored from an older dump" in text for text in reading.changes)
