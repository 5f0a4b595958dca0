"""Audit a snapshot: the same judgement as on the database, without touching it.

A snapshot holds no CPFs, no texts of withdrawals and no history of findings; the result says so.
"""

from collections.abc import Callable
from datetime import datetime

import ibis
import pandas as pd
from ibis import Table

from toolkit.domain.versions import rules_fingerprint, toolkit_version
from toolkit.operations import Clock
from toolkit.operations.judge.audit.census import by_partner, census, to_act_on
from toolkit.operations.judge.audit.details import FAULTS, WITHDRAWN
from toolkit.operations.judge.audit.engines import Engine, bound
from toolkit.operations.judge.audit.expression import missing_evidence
from toolkit.operations.judge.audit.life import NO_LIFE
from toolkit.operations.judge.audit.observed import evidences_at, objects_at, sales_at
from toolkit.operations.judge.audit.result import AuditResult
from toolkit.operations.judge.audit.rows import told_rows
from toolkit.operations.judge.audit.source import LastSync, Source
from toolkit.operations.snapshot import Snapshot
from toolkit.operations.snapshot.contents import CLOSINGS, CONTENTS, Content
from toolkit.operations.snapshot.manifest import File


def audit_snapshot(
    snapshot: Snapshot,
    path_of: Callable[[File], str],
    engine: Engine,
    *,
    clock: Clock,
    as_of: datetime | None = None,
) -> AuditResult:
    """Judge all sales as of a moment up to the snapshot's own, which is the default.

    ``path_of`` tells where the engine finds a file.

    Raises:
        NothingEvaluated: the snapshot holds no sale of that moment.
    """
    moment = as_of or snapshot.moment
    found = {content.name: _table(engine, snapshot, content, path_of) for content in CONTENTS}
    judged = missing_evidence(sales_at(moment), evidences_at(moment), objects_at(moment), moment)
    audited = engine.kept(bound(judged, found))
    told = told_rows(_read(engine, to_act_on(audited, _no_clients(audited))), moment, show_cpf=False)
    newest = snapshot.manifests[-1]
    last_sync, picture_since = _last_sync(engine, found["bucket_syncs"], moment)
    return AuditResult(
        as_of=moment,
        made_at=clock(),
        source=Source(
            database=newest.database,
            embedded=("database",) if newest.embedded else (),
            toolkit=toolkit_version(),
            rules=rules_fingerprint(),
            last_sync=last_sync,
            picture_since=picture_since,
            seal=newest.seal,
            records_assumed_at=newest.records_assumed_at,
            snapshot=f"{snapshot.address} of {newest.moment.isoformat(timespec='seconds')}",
        ),
        counts=_read(engine, census(audited)),
        read_rows=lambda: told,
        read_faults=lambda: pd.DataFrame(columns=list(FAULTS)),
        read_withdrawals=lambda: pd.DataFrame(columns=list(WITHDRAWN)),
        completions=_read(engine, by_partner(audited)),
        life=NO_LIFE,
        of_now=False,
    ).evaluated()


def _table(engine: Engine, snapshot: Snapshot, content: Content, path_of: Callable[[File], str]) -> Table:
    """Return the rows of all exports, ended where a later export says so."""
    rows = engine.parquet([path_of(file) for file in snapshot.files(content.name, "rows")], content.schema)
    rows = rows.select(*content.schema.names)
    if not content.closes:
        return rows
    closings = engine.parquet([path_of(file) for file in snapshot.files(content.name, "closings")], CLOSINGS)
    ended = closings.select(closed="id", ended_at="gone_at")
    found = rows.left_join(ended, rows.id == ended.closed)
    return found.mutate(gone_at=ibis.coalesce(found.gone_at, found.ended_at)).select(*content.schema.names)


def _no_clients(audited: Table) -> Table:
    """Return a table of clients without rows: their CPFs stay in the database."""
    return audited.filter(ibis.literal(False)).select(id=audited.client_id, cpf=ibis.null("string"))


def _last_sync(engine: Engine, syncs: Table, moment: datetime) -> tuple[LastSync | None, datetime | None]:
    """Return the last reading of the bucket, and when the oldest part of the picture was read by then."""
    before = syncs.filter(syncs.finished_at <= ibis.literal(moment))
    newest = engine.read(before.order_by(ibis.desc("finished_at"), ibis.desc("id")).limit(1)).to_pylist()
    if not newest:
        return None, None
    (row,) = newest
    return LastSync(row["finished_at"], row["bucket"], row["source"]), row["picture_since"]


def _read(engine: Engine, query: Table) -> pd.DataFrame:
    found: pd.DataFrame = engine.read(query).to_pandas(timestamp_as_object=False)
    return found
