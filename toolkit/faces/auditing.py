"""An audit as people ask for it: look at the sales and the bucket first, then judge."""

from __future__ import annotations

from datetime import datetime

from toolkit.faces.workspace import Workspace
from toolkit.operations.audit import AuditResult, run_audit
from toolkit.operations.bucket_sync import sync_bucket
from toolkit.operations.custody_log import seal_events
from toolkit.operations.observation import observe_sales
from toolkit.operations.progress import Progress


def audit(
    workspace: Workspace,
    *,
    as_of: datetime | None = None,
    sync: bool = True,
    show_cpf: bool = False,
    with_doubts: bool = False,
    progress: Progress | None = None,
) -> AuditResult:
    """Judge all sales, of now where ``as_of`` is ``None``.

    An audit of now looks at the sales and the bucket first and seals the custody log, unless ``sync`` is off;
    an audit of the past takes what was seen then. ``with_doubts`` also looks at the files themselves, as
    ``toolkit evidence findings`` does.
    """
    if sync and as_of is None:
        observe_sales(workspace.database, workspace.clock)
        sync_bucket(workspace.database, workspace.bucket, clock=workspace.clock, progress=progress)
        seal_events(workspace.database, workspace.clock)
    return run_audit(
        workspace.database,
        clock=workspace.clock,
        as_of=as_of,
        embedded_bucket=workspace.settings.evidence_bucket is None,
        show_cpf=show_cpf,
        with_doubts=with_doubts,
    )
