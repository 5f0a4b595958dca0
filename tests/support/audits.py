"""Audits of a test's database: their folders, and the numbers and lists in them."""

from __future__ import annotations

import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from toolkit.audit.folder import Audit
from toolkit.audit.publish import AuditPlan
from toolkit.audit.run import make_audit
from toolkit.bucket.file_store import FolderStore
from toolkit.contract.deadlines import Clock, Deadlines
from toolkit.database.connection import Database
from toolkit.reports.audited import Audited
from toolkit.reports.reading import read_audited

DEADLINES = Deadlines(ZoneInfo("America/Sao_Paulo"))


def plan_in(folder: Path, deadlines: Deadlines = DEADLINES, *, embedded_bucket: bool = False) -> AuditPlan:
    """The plan of audits below a folder."""
    (folder / "audits").mkdir(parents=True, exist_ok=True)
    store = FolderStore(folder / "audits", str(folder / "audits"))
    return AuditPlan(store=store, work=folder / "work", deadlines=deadlines, embedded_bucket=embedded_bucket)


def audited(
    database: Database,
    *,
    clock: Clock,
    as_of: datetime | None = None,
    deadlines: Deadlines = DEADLINES,
    partner: str | None = None,
    embedded_bucket: bool = False,
) -> Audited:
    """The numbers and lists of an audit of now, or of a past moment, of which nothing else is kept."""
    with tempfile.TemporaryDirectory() as folder:
        plan = plan_in(Path(folder), deadlines, embedded_bucket=embedded_bucket)
        made = make_audit(database, plan, clock=clock, as_of=as_of)
        return read_audited(made if partner is None else made.for_partner(partner), whole=True)


def made_audit(database: Database, folder: Path, *, clock: Clock, as_of: datetime | None = None) -> Audit:
    """An audit whose folder is kept."""
    return make_audit(database, plan_in(folder), clock=clock, as_of=as_of)


def of_partner(database: Database, result: Audited, partner: str) -> Audited:
    """The sales of one partner in the audit of the same moment."""
    return audited(database, clock=lambda: result.made_at + timedelta(days=1), as_of=result.as_of, partner=partner)
