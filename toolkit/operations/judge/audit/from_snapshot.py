"""Audit a snapshot: the same judgement and the same report as of the database.

The sales are judged by the chosen engine; the lists behind the numbers are read on this machine.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import ibis
import pandas as pd
import sqlalchemy as sa

from toolkit.domain.deadlines import Deadlines
from toolkit.domain.integrity import IntegrityFinding, IntegrityProblem
from toolkit.errors import InvalidInput
from toolkit.operations import Clock
from toolkit.operations.judge.audit.census import by_age
from toolkit.operations.judge.audit.engines import Engine, bound
from toolkit.operations.judge.audit.judgement import Judged, judging, sales_of
from toolkit.operations.judge.audit.life import ReadLife
from toolkit.operations.judge.audit.lists import Lists
from toolkit.operations.judge.audit.present import present_file_findings
from toolkit.operations.judge.audit.result import AuditResult
from toolkit.operations.judge.audit.run import DEFAULT_DEADLINES
from toolkit.operations.judge.audit.sale_evidence import SaleEvidence, evidence_in_snapshot
from toolkit.operations.judge.audit.snapshot_tables import SnapshotTables, cpfs_of, keys_of, table_of
from toolkit.operations.judge.audit.source import Source, last_sync
from toolkit.operations.snapshot.contents import CONTENTS, PSEUDONYM
from toolkit.operations.snapshot.rows import PathOf
from toolkit.operations.verify.integrity import EXAMPLES, integrity_findings_at, records_of_unknown_partners
from toolkit.storage.database import Database
from toolkit.storage.reader import DuckdbReader

_PICTURE_SINCE: Final = """
    SELECT picture_since FROM audit.bucket_syncs WHERE finished_at <= :moment ORDER BY id DESC LIMIT 1
"""

_EVERY: Final = 2**31 - 1


def audit_snapshot(
    tables: SnapshotTables,
    engine: Engine,
    *,
    clock: Clock,
    path_of: PathOf | None = None,
    as_of: datetime | None = None,
    deadlines: Deadlines = DEFAULT_DEADLINES,
    with_file_findings: bool = False,
) -> AuditResult:
    """Judge all sales as of a moment up to the snapshot's own, which is the default.

    Args:
        tables: the snapshot, as this machine reads it.
        engine: judges the sales.
        clock: tells now.
        path_of: where the engine finds a file, if not where this machine does.
        as_of: an aware moment.
        deadlines: the business days that each finding has.
        with_file_findings: also look for what is odd about the files, where the database can be asked for keys.

    Raises:
        NothingEvaluated: the snapshot holds no sale of that moment.
    """
    snapshot, people = tables.exported, tables.people
    newest = snapshot.manifests[-1]
    moment = as_of or snapshot.moment
    judged = _judged(tables, engine, moment, path_of or tables.path_of)
    with tables.snapshot() as reader:
        synced = last_sync(reader, moment, exported=True)
        since = reader.scalar(sa.text(_PICTURE_SINCE), {"moment": moment})
        files = _file_findings(people, reader, moment) if with_file_findings and people is not None else None
        unknown = records_of_unknown_partners(reader, moment) if with_file_findings else 0
    if people is not None:
        with people.snapshot() as connection:
            synced = last_sync(connection, moment)
    concerned = {sale_id for finding in files or () for sale_id in finding.sale_ids}
    lists = SnapshotLists(judged, tables, moment, concerned).with_sales()
    of_files = None if files is None else present_file_findings(files, sales_of(judged, files))
    return AuditResult(
        as_of=moment,
        made_at=clock(),
        source=Source(
            database=newest.database,
            embedded=("database",) if newest.embedded else (),
            last_sync=synced,
            picture_since=since,
            seal=newest.seal,
            records_assumed_at=newest.records_assumed_at,
            records_of_unknown_partners=unknown,
            hidden_rows=newest.hidden_rows,
            copied_rows=newest.copied_rows,
            snapshot=f"{snapshot.address} of {newest.moment.isoformat(timespec='seconds')}",
            other_deadlines=newest.deadlines not in {None, deadlines.told(newest.moment.year)},
            people_asked=people is not None,
        ),
        counts=judged.census(),
        open_by_age=judged.read(by_age(judged.sales, moment)),
        lists=lists,
        life=ReadLife(tables, lists, of_files, moment, deadlines),
        file_findings=tuple(files or ()),
        of_now=False,
    ).evaluated()


@dataclass(frozen=True, eq=False)
class SnapshotLists(Lists):
    """The lists as a snapshot holds them, with the CPFs that its database tells."""

    place: SnapshotTables

    def evidence(self, sale_ids: Sequence[str]) -> Iterator[SaleEvidence]:
        """Yield the evidence of these sales, with time lines where the database tells them."""
        return evidence_in_snapshot(self.place, self.moment, sale_ids)

    def _to_act_on(self) -> pd.DataFrame:
        found = super()._to_act_on()
        if self.place.people is not None:
            found["cpf"] = found["client_id"].map(cpfs_of(self.place.people, found["client_id"].dropna().unique()))
        return found


def _judged(tables: SnapshotTables, engine: Engine, moment: datetime, path_of: PathOf) -> Judged:
    contents = {content.name: content for content in CONTENTS}
    query = bound(judging(moment), lambda name: table_of(engine, tables.exported, contents[name], path_of))
    sales = engine.kept(query)
    nobody = sales.filter(ibis.literal(False)).select(id=sales.client_id, cpf=ibis.null("string"))
    return Judged(sales, nobody, lambda asked: engine.read(asked).to_pandas(timestamp_as_object=False))


def _file_findings(people: Database, reader: DuckdbReader, moment: datetime) -> list[IntegrityFinding]:
    """Return the findings about files by the keys of their objects, in the order of an audit of the database."""
    found = integrity_findings_at(reader, moment, layout=PSEUDONYM, examples=_EVERY)
    keys = keys_of(people, reader, {key for finding in found for key in finding.keys})
    if any(key not in keys for finding in found for key in finding.keys):
        raise InvalidInput(
            "The database tells the keys of this snapshot's objects no more, because observations were moved to "
            "another one. Ask that one, or the database, which finds it: toolkit report --as-of TIME"
        )
    place = {pseudonym: number for number, pseudonym in enumerate(keys)}
    told = []
    for finding in found:
        own = sorted(finding.keys, key=place.__getitem__)
        if finding.problem is IntegrityProblem.KEY_OUTSIDE_LAYOUT:
            own = own[:EXAMPLES]
        told.append((finding.problem, own, finding))
    gravest = list(IntegrityProblem)
    told.sort(key=lambda each: (gravest.index(each[0]), [place[key] for key in each[1]]))
    return [replace(finding, keys=tuple(keys[key] for key in own)) for _, own, finding in told]
