"""Run the audit on PostgreSQL, in one repeatable-read transaction that SQLAlchemy owns."""

from dataclasses import dataclass, replace
from datetime import datetime
from threading import Thread
from typing import Final
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.domain.deadlines import Deadlines
from toolkit.domain.documents import named
from toolkit.domain.masking import Unmasking
from toolkit.errors import InvalidInput, JudgementDiffers
from toolkit.operations import Clock
from toolkit.operations.judge.audit.census import by_age
from toolkit.operations.judge.audit.judgement import AUDITED, Judged, bring, judged_at, sales_of
from toolkit.operations.judge.audit.kept import TOUCHED, KeptLists, forget_judgement, judged_now
from toolkit.operations.judge.audit.life import ReadLife
from toolkit.operations.judge.audit.lists import ROW_COLUMNS, DatabaseLists
from toolkit.operations.judge.audit.present import present_file_findings
from toolkit.operations.judge.audit.result import AuditResult
from toolkit.operations.judge.audit.source import Source, last_sync
from toolkit.operations.judge.findings.history import note_file_findings, note_findings, standing_findings
from toolkit.operations.observe.belonging import check_replica
from toolkit.operations.observe.bucket_sync import picture_since
from toolkit.operations.prove.custody_log.events import record_unmasking
from toolkit.operations.verify.contents.verification import Verified
from toolkit.operations.verify.integrity import integrity_findings_at, records_of_unknown_partners
from toolkit.storage import tables
from toolkit.storage.database import Database
from toolkit.storage.identifiers import new_id
from toolkit.storage.locks import Lock, take
from toolkit.storage.observation_clock import final_moment, wait_for
from toolkit.storage.partitions import records_assumed_at
from toolkit.storage.service_map.tables_behind import hidden_and_copied

_FIRST_YEAR: Final = 1970

DEFAULT_DEADLINES: Final = Deadlines(ZoneInfo("America/Sao_Paulo"))


def run_audit(
    database: Database,
    *,
    clock: Clock,
    as_of: datetime | None = None,
    embedded_bucket: bool = False,
    unmasking: Unmasking | None = None,
    with_file_findings: bool = False,
    verification: Verified | None = None,
    deadlines: Deadlines = DEFAULT_DEADLINES,
    replica: Database | None = None,
    everything: bool = False,
) -> AuditResult:
    """Judge all sales as of a moment, or as of now; an audit of now is noted in ``audit.audit_runs``.

    It sees what was observed by then: observe the sales and sync the bucket before an audit of now. An audit of
    now judges the sales that changed since the one before, and takes over its judgement of all others.

    Args:
        database: where the observations are.
        clock: tells now.
        as_of: an aware moment that is not in the future.
        embedded_bucket: whether the bucket is the embedded one, which the report then says.
        unmasking: keep whole CPFs in the rows, which the custody log then tells; otherwise they are masked.
        with_file_findings: also look for what is odd about the files that were in the bucket.
        deadlines: the business days that each finding has, and the zone of its days.
        replica: a streaming replica of ``database`` to judge all sales on; it must have seen the moment.
        verification: what the verification of contents before this audit did, if there was one.
        everything: let an audit of now judge all sales, too, and compare them with what was kept.

    Raises:
        NothingEvaluated: there is no sale at the moment.
        WrongService: the replica is one of another database.
        JudgementDiffers: sales are judged otherwise than they were kept, although nothing about them changed.
        InvalidInput: ``as_of`` lies in the future or carries no offset.
        DatabaseError: the database could not be asked.
    """
    now = clock()
    as_of = _checked(as_of, now)
    Thread(target=deadlines.prepare, args=(now,)).start()  # while the database judges: it takes half a second
    if replica is not None:
        check_replica(database, replica)
    if unmasking is not None:
        with database.transaction() as connection:
            record_unmasking(connection, unmasking, "CPFs of an audit", now)
    audit = _Audit(
        database,
        replica or database,
        clock,
        now,
        embedded_bucket,
        cpf_shown=unmasking is not None,
        with_files=with_file_findings,
        verification=verification,
        deadlines=deadlines,
    )
    if as_of is None:
        return audit.now(everything)
    return audit.elsewhere(final_moment(audit.place, clock, as_of))[0]


@dataclass(frozen=True)
class _Audit:
    """An audit as it was asked for."""

    database: Database
    place: Database
    """The database that judges: the replica, where there is one."""
    clock: Clock
    made_at: datetime
    embedded_bucket: bool
    cpf_shown: bool
    with_files: bool
    verification: Verified | None
    deadlines: Deadlines

    def now(self, everything: bool) -> AuditResult:
        """Judge now, and note it; other audits of now wait: they are noted in the order of their moments."""
        on_replica = self.place is not self.database
        try:
            with self.database.transaction() as connection:
                take(connection, Lock.FINDING_HISTORY)
                moment = final_moment(self.database, self.clock)
                if on_replica:
                    result, life = self.elsewhere(moment, of_now=True)
                    bring(connection, result.lists.sales.rename(columns=ROW_COLUMNS))
                    touched = None
                else:
                    judged = judged_now(connection, moment, everything=everything)
                    result, life = self._result(connection, KeptLists, judged, moment, of_now=True)
                    touched = None if judged.everything else TOUCHED
                _note(connection, result, self.with_files)
                note_findings(connection, AUDITED, moment, touched=touched)
                if life.of_files is not None:
                    note_file_findings(connection, life.of_files, moment)
                if on_replica:
                    return result
                standing = standing_findings(connection, with_files=self.with_files)
        except JudgementDiffers:
            with self.database.transaction() as connection:
                forget_judgement(connection)
            raise
        return replace(result, life=replace(life, standing=standing))

    def elsewhere(self, moment: datetime, *, of_now: bool = False) -> tuple[AuditResult, ReadLife]:
        """Judge all sales as of a moment, without keeping anything."""
        behind = None if self.place is self.database else wait_for(self.place, moment)
        with self.place.at(moment) as connection, judged_at(connection, moment) as judged:
            result, life = self._result(connection, DatabaseLists, judged, moment, of_now=of_now)
            result.lists.with_sales()
        if behind is None:
            return result, life
        source = replace(result.source, replica=f"{self.place.address}, {behind:.1f} s behind")
        return replace(result, source=source), life

    def _result(
        self,
        connection: Connection,
        lists_of: type[DatabaseLists],
        judged: Judged,
        moment: datetime,
        *,
        of_now: bool,
    ) -> tuple[AuditResult, ReadLife]:
        """Return everything that is said of the judged sales, and again the life of their findings."""
        file_findings = tuple(integrity_findings_at(connection, moment)) if self.with_files else ()
        of_files = (
            present_file_findings(file_findings, sales_of(judged, file_findings)) if self.with_files else None
        )
        concerned = {sale_id for finding in file_findings for sale_id in finding.sale_ids}
        lists = lists_of(judged, self.place, moment, concerned, self.cpf_shown)
        life = ReadLife(self.database if of_now else self.place, lists, of_files, moment, self.deadlines)
        result = AuditResult(
            as_of=moment,
            made_at=self.made_at,
            source=self._source(connection, moment),
            counts=judged.census(),
            open_by_age=judged.read(by_age(judged.sales, moment)),
            lists=lists,
            life=life,
            cpf_shown=self.cpf_shown,
            file_findings=file_findings,
            of_now=of_now,
            verification=self.verification,
        )
        return result.evaluated(), life

    def _source(self, connection: Connection, moment: datetime) -> Source:
        seals = tables.custody_seals
        seal = sa.select(seals.c.hash).where(seals.c.sealed_at <= moment).order_by(seals.c.number.desc()).limit(1)
        embedded = {"database": self.database.embedded, "bucket": self.embedded_bucket}
        hidden, copied = hidden_and_copied(connection, self.database.mapped)
        return Source(
            database=self.database.address,
            embedded=tuple(name for name, is_embedded in embedded.items() if is_embedded),
            last_sync=last_sync(connection, moment),
            seal=connection.scalar(seal),
            records_assumed_at=records_assumed_at(connection),
            picture_since=picture_since(connection, moment),
            records_of_unknown_partners=records_of_unknown_partners(connection, moment) if self.with_files else 0,
            hidden_rows=hidden,
            copied_rows=copied,
        )


def _checked(as_of: datetime | None, now: datetime) -> datetime | None:
    if as_of is None:
        return None
    if as_of.tzinfo is None:
        raise InvalidInput("The moment of an audit needs an offset, as in 2026-11-20T18:00-03:00.")
    if as_of > now or as_of.year < _FIRST_YEAR:
        raise InvalidInput("The moment of an audit must lie in the past, and not before 1970.")
    return as_of


def _note(connection: Connection, result: AuditResult, with_files: bool) -> None:
    connection.execute(
        sa.insert(tables.audit_runs),
        {
            "id": new_id(),
            "as_of": result.as_of,
            "ran_at": result.made_at,
            **named(result, "sales", "compliant", "incomplete", "conflict"),
            "with_files": with_files,
        },
    )
