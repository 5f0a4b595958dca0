"""An audit of a past moment gives the same bytes for ever, whatever the service and the bucket do afterwards.

And the history of findings keeps two laws: changes lead from one moment to the other, and a past day counts what
the observations of that day give again.
"""

import tempfile
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import combinations, count
from pathlib import Path
from uuid import UUID
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy.dialects.postgresql import insert

from tests.conftest import SettableClock, fresh_database
from tests.support.audits import made_audit
from tests.support.buckets import MemoryBucket
from toolkit.audit.changes import KINDS, changes_between
from toolkit.audit.observe_bucket import sync_bucket
from toolkit.audit.waivers import add_waiver, revoke_waiver, waivers_at
from toolkit.contract.evidence import EvidenceType
from toolkit.contract.findings import FindingStatus
from toolkit.database.observation_clock import stamp
from toolkit.database.observations import observe_service
from toolkit.database.tables import evidences, sales
from toolkit.errors import EvidenceNotFound, NothingEvaluated, WithdrawalRefused
from toolkit.evidence.records import withdraw

ZONE = ZoneInfo("America/Sao_Paulo")
START = datetime(2025, 3, 2, 12, 0, tzinfo=UTC)
CONTENT = (b"%PDF-1.7\n", (bytes.fromhex("fffb9064") + bytes(413)) * 3, b"")


class World:
    """A service, its bucket and the audits that were made of them."""

    def __init__(self, database, home):
        self.database, self.home = database, home
        self.bucket, self.audits = MemoryBucket(), {}
        self.open = []
        """Connections with a transaction of the service that has not committed yet."""
        self.late = count(10)
        """The numbers of their records."""

    def change(self, *statements, **bound):
        with self.database.transaction() as connection:
            for statement in statements:
                connection.execute(statement, bound)

    def sale(self, number, group, completed, partner=None):
        values = {
            "partner": partner,
            "utility_group": group,
            "is_client_financial_responsible": group != "D",
            "created_at": START - timedelta(days=number),
            "completed_at": START if completed else None,
        }
        self.change(_upsert(sales, {"id": f"S-{number}"} | values))

    def no_sale(self, number):
        self.change(
            sa.delete(evidences).where(evidences.c.sale_id == f"S-{number}"),
            sa.delete(sales).where(sales.c.id == f"S-{number}"),
        )

    def record(self, number, sale, evidence_type, back):
        """A new record, or an old one that moves to another sale, becomes another type, or is dated back."""
        self.change(self.requested(number, sale, evidence_type, back))

    def requested(self, number, sale, evidence_type, back):
        if self.database.run(sa.Connection.scalar, sa.select(sales).where(sales.c.id == f"S-{sale}")) is None:
            self.sale(sale, "A", False)
        at = self.database.clock.now - back
        record = {"id": _id(number), "object_key": _key(number), "requested_by": "service", "file_name": "f"}
        record |= {"sale_id": f"S-{sale}", "evidence_type": evidence_type, "file_format": "x", "type": "x"}
        return _upsert(evidences, record | {"requested_at": at, "expires_at": at + timedelta(hours=1)})

    def begun(self, evidence_type, back):
        """A transaction of the service that makes a record, and stays open; there may be several."""
        statement = self.requested(next(self.late), 9, evidence_type, back)
        connection = self.database.engine.connect()
        self.open.append(connection)
        connection.execute(statement)

    def committed(self, place):
        """One of the open transactions commits, in any order."""
        if self.open:
            with self.open.pop(place % len(self.open)) as connection:
                connection.commit()

    def no_record(self, number):
        self.change(sa.delete(evidences).where(evidences.c.id == _id(number)))

    def withdrawn(self, number):
        people = {"reason": "sent twice", "withdrawn_by": "ana", "approved_by": "bia"}
        with suppress(EvidenceNotFound, WithdrawalRefused):  # it is not there, or was withdrawn before
            withdraw(self.database, _id(number), **people)

    def verified(self, number, problem):
        self.change(_VERIFIED, key=_key(number), now=self.database.run(stamp), problem=problem)

    def unreadable(self, number):
        self.change(_UNREADABLE, key=_key(number), now=self.database.run(stamp))

    def waived(self, number, days):
        today = self.database.clock.now.date()
        given = {"sale": f"S-{number}", "reason": "ordered", "owner": "ana", "approvedBy": "bia"}
        ends = {"start": today + timedelta(days=days), "end": today + timedelta(days=days + 2)}
        add_waiver(self.database, given | ends, today=today)

    def unwaived(self):
        tomorrow = self.database.clock.now + timedelta(days=1)  # the clock may have gone back
        for waiver in self.database.run(waivers_at, tomorrow):
            if waiver.revoked_at is None:
                revoke_waiver(self.database, waiver.id, reason="sent", revoked_by="ana")

    def put(self, number, content):
        self.bucket.put(_key(number), content)

    def deleted(self, number):
        self.bucket.delete(_key(number))

    def wait(self, time):
        self.database.clock.now += time

    def live(self, history):
        try:
            for what, *values in history:
                getattr(self, what.__name__)(*values)
        finally:
            while self.open:
                self.committed(0)

    def audit(self):
        observe_service(self.database)
        sync_bucket(self.database, self.bucket)
        self.judge()

    def judge(self):
        with suppress(NothingEvaluated):
            made = made_audit(self.database, self.home)
            self.audits[made.facts.as_of] = _parts(made)

    def ask_again(self):
        """The same moments, judged two years later into folders of their own."""
        clock = SettableClock(max(self.database.clock.now, *self.audits, START) + timedelta(days=730))
        again = self.home / "again"
        return {moment: made_audit(self.database.at(clock), again, as_of=moment) for moment in self.audits}


def _parts(made):
    """The hashes of everything that is as of the moment; who the clients are is not."""
    return {name: part for name, part in made.facts.parts.items() if name != "clients"}


def _upsert(table, row):
    return insert(table).values(row).on_conflict_do_update(index_elements=["id"], set_=row)


def _id(number):
    return UUID(int=number + 1)


def _key(number):
    return f"evidences/2026/03/02/{_id(number)}/f" if number % 2 else f"sales/S/{number}.pdf"


_HELD = "FROM audit.object_observations AS seen WHERE gone_at IS NULL AND key = :key"
_VERIFIED = sa.text(f"""
    INSERT INTO audit.content_checks (observation_id, kind, problem, sha256, checked_at)
    SELECT id, 'pdf', :problem, 'abc', :now {_HELD}
""")
_UNREADABLE = sa.text(f"""
    INSERT INTO audit.verification_failures (observation_id, reason, failed_at)
    SELECT id, 'denied', :now {_HELD}
      AND NOT EXISTS (SELECT FROM audit.verification_failures WHERE observation_id = seen.id)
""")

number = st.integers(0, 3)
partner = st.sampled_from([None, "Norte", "Sul"])
back = st.sampled_from([timedelta(0), timedelta(minutes=30), timedelta(days=3)])
changes = st.one_of(
    st.tuples(st.just(World.sale), number, st.sampled_from("ADX"), st.booleans(), partner),
    st.tuples(st.just(World.no_sale), number),
    st.tuples(st.just(World.record), number, number, st.sampled_from(EvidenceType), back),
    st.tuples(st.just(World.record), number, number, st.sampled_from(EvidenceType), back),
    st.tuples(st.just(World.no_record), number),
    st.tuples(st.just(World.withdrawn), number),
    st.tuples(st.just(World.verified), number, st.sampled_from([None, "DAMAGED"])),
    st.tuples(st.just(World.unreadable), number),
    st.tuples(st.just(World.waived), number, st.integers(0, 3)),
    st.tuples(st.just(World.unwaived)),
    st.tuples(st.just(World.begun), st.sampled_from(EvidenceType), back),
    st.tuples(st.just(World.committed), number),
    st.tuples(st.just(World.audit)),
    st.tuples(st.just(World.put), number, st.sampled_from(CONTENT)),
    st.tuples(st.just(World.deleted), number),
    st.tuples(
        st.just(World.wait), st.sampled_from([timedelta(minutes=20), timedelta(days=2), -timedelta(hours=1)])
    ),
)


@settings(max_examples=3, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(history=st.lists(changes, min_size=10, max_size=30))
def test_every_earlier_moment_gives_the_same_bytes_and_findings_again_two_years_later(server, history):
    with (
        fresh_database(server, clock=SettableClock(START)) as database,
        tempfile.TemporaryDirectory() as home,
    ):
        world = World(database, Path(home))
        world.sale(9, "A", False)
        world.live([(World.audit,), *history, (World.audit,), (World.wait, timedelta(days=70)), (World.audit,)])
        again = world.ask_again()
        assert {moment: _parts(made) for moment, made in again.items()} == world.audits
        there = {moment: present(made) for moment, made in again.items()}
        changes_lead_from_one_moment_to_the_other(database, there)
        every_day_counts_its_findings(database, there)


def present(made):
    """The findings that an audit sees."""
    found = made.sql("FROM findings").to_pandas()
    return set(found["id"][found["status"] != FindingStatus.RESOLVED])


def changes_lead_from_one_moment_to_the_other(database, there):
    moments = {START - timedelta(days=9): set()} | there  # before the first audit nothing was known
    for earlier, later in combinations(sorted(moments), 2):
        found = changes_between(database, earlier, later, ZONE)
        new, resolved, reopened, still = ({*found.ids(kind)} for kind in KINDS)
        before, after = moments[earlier], moments[later]
        assert before - resolved | new | reopened == after
        assert still == before & after
        assert resolved <= before
        assert not (new | reopened) & before
        known = set().union(*(ids for moment, ids in moments.items() if moment <= earlier))
        assert not new & known
        assert reopened <= known


def every_day_counts_its_findings(database, there):
    counts = {moment.astimezone(ZONE).date(): len(there[moment]) for moment in sorted(there)}
    by_day = changes_between(database, START - timedelta(days=9), max(there), ZONE).by_day.set_index("day")
    assert {day: by_day["present"].get(day, 0) for day in counts} == counts
    for moment in there:  # a trend that begins later tells the same of its days
        later = changes_between(database, moment, max(there), ZONE).by_day.set_index("day")
        assert later.equals(by_day.loc[later.index])
