"""Evidence records are observed as the sales are: a past moment is judged by what had been seen by then."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from tests.support.audits import audited
from tests.support.uploaded_sales import add_record, add_sale, execute, rows
from tests.support.waiting import someone_waits, wait_until
from toolkit.database.connection import Database
from toolkit.database.observation_clock import TICK, final_moment, stamp
from toolkit.database.observations import ObservedChanges, observe_service
from toolkit.errors import DatabaseError

EVENTS = """
    SELECT kind, CAST(detail ->> 'evidence' AS uuid)
    FROM audit.custody_events WHERE detail ? 'evidence' ORDER BY id
"""


def test_what_the_service_changes_is_a_new_observation_and_an_event(database, clock):
    add_sale(database)
    (kept, _), (retyped, _), (deleted, _) = (add_record(database) for _ in range(3))
    assert observe_service(database, clock)["records"] == ObservedChanges(appeared=3, changed=0, vanished=0)
    assert observe_service(database, clock)["records"] == ObservedChanges(appeared=0, changed=0, vanished=0)
    clock.now += timedelta(hours=1)
    execute(
        database,
        f"UPDATE evidences SET evidence_type = 'KYC' WHERE id = '{retyped}'",
        f"DELETE FROM evidences WHERE id = '{deleted}'",
    )
    assert observe_service(database, clock)["records"] == ObservedChanges(appeared=0, changed=1, vanished=1)
    told = rows(database, EVENTS)
    assert set(told[:3]) == {("RECORDED", each) for each in (kept, retyped, deleted)}
    assert set(told[3:]) == {("RECORD_GONE", retyped), ("RECORD_GONE", deleted), ("RECORD_CHANGED", retyped)}
    assert len(told) == 6


def test_observations_of_records_cannot_be_rewritten(database, clock):
    add_sale(database)
    add_record(database)
    observe_service(database, clock)
    for statement in (
        "UPDATE audit.evidence_observations SET evidence_type = 'KYC'",
        "DELETE FROM audit.evidence_observations",
        "UPDATE audit.observation_clock SET stands_at = stands_at - interval '1 second'",
        "DELETE FROM audit.observation_clock",
    ):
        with pytest.raises(DatabaseError, match=r"never changed or deleted|change only once|never goes back"):
            execute(database, statement)


def test_a_record_counts_from_when_it_was_seen_though_the_service_dates_it_back(database, clock):
    add_sale(database)
    observe_service(database, clock)
    before = audited(database, clock=clock)
    clock.now += timedelta(days=1)
    add_record(database, requested_at=before.as_of - timedelta(days=1))
    observe_service(database, clock)
    after = audited(database, clock=clock)
    again = audited(database, clock=clock, as_of=before.as_of)
    assert again.rows["reasons"].tolist() == before.rows["reasons"].tolist() == ["NEVER_REQUESTED|NEVER_REQUESTED"]
    assert after.rows["reasons"].tolist() == ["NEVER_REQUESTED|EXPIRED"]


def test_an_audit_waits_for_what_was_stamped_before_it_and_not_committed(database, clock):
    add_sale(database)
    with ThreadPoolExecutor() as pool:
        with database.transaction() as connection:
            stamp(connection, clock)
            running = pool.submit(audited, database, clock=clock)
            wait_until(lambda: running.done() or someone_waits(database))
            assert not running.done(), "the audit did not wait for what may still change its answer"
            connection.exec_driver_sql(
                "INSERT INTO audit.sale_observations (sale_id, utility_group, is_client_financial_responsible,"
                " created_at, seen_at) SELECT id, utility_group, is_client_financial_responsible, created_at,"
                " created_at FROM public.sales"
            )
        found = running.result()
    assert found.sales == 1
    with database.transaction() as connection:
        assert stamp(connection, clock) == found.as_of + TICK


def test_stamps_never_go_back_and_never_lie_in_the_future(database, clock):
    def stamped():
        with database.transaction() as connection:
            return stamp(connection, clock)

    first = stamped()
    clock.now -= timedelta(hours=1)
    assert stamped() == first
    assert final_moment(database, clock) == first
    assert stamped() == first + TICK
    clock.now += timedelta(days=9000)
    with pytest.raises(DatabaseError, match="The clock of this machine is more than 5 minutes ahead"):
        stamped()


def test_a_session_that_cannot_write_judges_by_the_latest_moment_that_is_final(database, clock):
    add_sale(database)
    observe_service(database, clock)
    last = audited(database, clock=clock).as_of
    clock.now += timedelta(hours=1)
    url = database.engine.url.update_query_dict({"options": "-c default_transaction_read_only=on"})
    reader = Database(url.render_as_string(hide_password=False))
    assert final_moment(reader, clock) == last
    assert final_moment(reader, clock, last - timedelta(hours=1)) == last - timedelta(hours=1)
    reader.dispose()
