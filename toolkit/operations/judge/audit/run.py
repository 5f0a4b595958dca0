"""Run the audit on PostgreSQL, in one repeatable-read transaction that SQLAlchemy owns."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial
from threading import Thread
from typing import Final
from zoneinfo import ZoneInfo

import pandas as pd
import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.domain.deadlines import Deadlines
from toolkit.domain.documents import named
from toolkit.domain.masking import Unmasking
from toolkit.errors import InvalidInput, JudgementDiffers
from toolkit.operations import Clock
from toolkit.operations.judge.audit.census import by_age, census
from toolkit.operations.judge.audit.details import completed_at, faults_at, withdrawals_at
from toolkit.operations.judge.audit.judgement import (
    AUDITED,
    Judged,
    bring,
    completed_by_partner,
    judged_at,
    sales_of,
    tell,
)
from toolkit.operations.judge.audit.kept import (
    TOUCHED,
    faults_later,
    forget_judgement,
    judged_now,
    later,
    tell_later,
)
from toolkit.operations.judge.audit.life import NO_LIFE, read_life
from toolkit.operations.judge.audit.present import present_file_findings, present_findings
from toolkit.operations.judge.audit.result import AuditResult
from toolkit.operations.judge.audit.sale_evidence import evidence_at
from toolkit.operations.judge.audit.source import LastSync, Source
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
from toolkit.storage.reader import Reader
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
    asked = _Asked(
        database, replica, clock, now, embedded_bucket, unmasking is not None, with_file_findings, verification
    )
    if as_of is None:
        found = _judged_now(asked, everything)
    else:
        found = _judged_elsewhere(asked, final_moment(asked.place, clock, as_of), of_now=False)
    place = database if as_of is None else asked.place
    of_files = found.of_files if with_file_findings else None
    of_sales = cache(lambda: present_findings(found.result.told))
    life = read_life(place, of_sales, of_files, found.result.as_of, deadlines, found.standing)
    return replace(found.result, life=life)


@dataclass(frozen=True)
class _Asked:
    database: Database
    replica: Database | None
    clock: Clock
    now: datetime
    embedded_bucket: bool
    cpf_shown: bool
    with_files: bool
    verification: Verified | None

    @property
    def place(self) -> Database:
        """The database that judges, unless an audit of now takes over what was kept."""
        return self.replica or self.database


@dataclass(frozen=True)
class _Found:
    result: AuditResult
    of_files: pd.DataFrame
    """The findings about files, in the columns of ``present``."""
    standing: tuple[pd.DataFrame, int] | None = None
    """The findings that an audit of now left, where the judgement is kept beside it."""


def _judged_now(asked: _Asked, everything: bool) -> _Found:
    """Judge now, and note it; another audit of now waits, so that they are noted in the order of their moments."""
    try:
        with asked.database.transaction() as connection:
            take(connection, Lock.FINDING_HISTORY)
            moment = final_moment(asked.database, asked.clock)
            if asked.replica is None:
                judged = judged_now(connection, moment, everything=everything)
                told = partial(tell_later, asked.database, moment, show_cpf=asked.cpf_shown)
                found = _answered(asked, connection, judged, moment, judged.counts, told, of_now=True)
                faults = cache(partial(faults_later, asked.database, moment))
                completions = cache(partial(later, asked.database, moment, completed_by_partner))
                result = replace(found.result, read_faults=faults, read_completions=completions)
                found = replace(found, result=result)
                touched = None if judged.everything else TOUCHED
            else:
                found = _judged_elsewhere(asked, moment, of_now=True)
                bring(connection, found.result.told)
                touched = None
            _note(connection, found.result, asked.with_files)
            note_findings(connection, AUDITED, moment, touched=touched)
            if asked.with_files:
                note_file_findings(connection, found.of_files, moment)
            if asked.replica is None:
                found = replace(found, standing=standing_findings(connection, with_files=asked.with_files))
    except JudgementDiffers:
        with asked.database.transaction() as connection:
            forget_judgement(connection)
        raise
    return found


def _judged_elsewhere(asked: _Asked, moment: datetime, *, of_now: bool) -> _Found:
    """Judge all sales as of a moment, without keeping anything."""
    behind = 0.0 if asked.replica is None else wait_for(asked.replica, moment)
    with asked.place.at(moment) as connection, judged_at(connection, moment) as judged:
        told = partial(tell, judged, moment, show_cpf=asked.cpf_shown)
        counts = judged.read(census(judged.sales))
        found = _answered(asked, connection, judged, moment, counts, told, of_now=of_now)
        found.result.read_rows(), found.result.read_completions()  # as long as the judged sales are there
    if asked.replica is None:
        return found
    source = replace(found.result.source, replica=f"{asked.replica.address}, {behind:.1f} s behind")
    return replace(found, result=replace(found.result, source=source))


def _answered(
    asked: _Asked,
    connection: Connection,
    judged: Judged,
    moment: datetime,
    counts: pd.DataFrame,
    told: Callable[[Collection[str]], pd.DataFrame],
    *,
    of_now: bool,
) -> _Found:
    """Return everything that is said of the judged sales, but for the life of their findings."""
    file_findings = tuple(integrity_findings_at(connection, moment)) if asked.with_files else ()
    with_files = {sale_id for finding in file_findings for sale_id in finding.sale_ids}
    seals = tables.custody_seals
    seal = sa.select(seals.c.hash).where(seals.c.sealed_at <= moment).order_by(seals.c.number.desc()).limit(1)
    embedded = {"database": asked.database.embedded, "bucket": asked.embedded_bucket}
    hidden, copied = hidden_and_copied(connection, asked.database.mapped)
    result = AuditResult(
        as_of=moment,
        made_at=asked.now,
        source=Source(
            database=asked.database.address,
            embedded=tuple(name for name, is_embedded in embedded.items() if is_embedded),
            last_sync=last_sync(connection, moment),
            seal=connection.scalar(seal),
            records_assumed_at=records_assumed_at(connection),
            picture_since=picture_since(connection, moment),
            records_of_unknown_partners=records_of_unknown_partners(connection, moment) if asked.with_files else 0,
            hidden_rows=hidden,
            copied_rows=copied,
        ),
        counts=counts,
        open_by_age=judged.read(by_age(judged.sales, moment)),
        read_rows=cache(partial(told, with_files)),
        cpf_shown=asked.cpf_shown,
        file_findings=file_findings,
        of_now=of_now,
        verification=asked.verification,
        read_faults=cache(partial(faults_at, asked.place, moment)),
        read_withdrawals=cache(partial(withdrawals_at, asked.place, moment)),
        read_completions=cache(partial(completed_by_partner, judged)),
        read_completed=cache(partial(completed_at, asked.place, moment)),
        read_evidence=partial(evidence_at, asked.place, moment),
        life=NO_LIFE,
    ).evaluated()
    return _Found(result, present_file_findings(file_findings, sales_of(judged, file_findings)))


def _checked(as_of: datetime | None, now: datetime) -> datetime | None:
    if as_of is None:
        return None
    if as_of.tzinfo is None:
        raise InvalidInput("The moment of an audit needs an offset, as in 2026-11-20T18:00-03:00.")
    if as_of > now or as_of.year < _FIRST_YEAR:
        raise InvalidInput("The moment of an audit must lie in the past, and not before 1970.")
    return as_of


def last_sync(connection: Reader, moment: datetime) -> LastSync | None:
    """Return the last reading of the bucket by then."""
    syncs = tables.bucket_syncs
    row = connection.execute(
        sa.select(syncs.c.finished_at, syncs.c.bucket, syncs.c.source)
        .where(syncs.c.finished_at <= moment)
        .order_by(syncs.c.finished_at.desc(), syncs.c.id.desc())
        .limit(1)
    ).one_or_none()
    return None if row is None else LastSync(*row)


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
