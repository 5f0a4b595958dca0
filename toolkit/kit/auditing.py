"""Run an audit: observe the sales and the bucket, then judge."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

import sqlalchemy as sa

from toolkit.atomic_files import PrivateFolder
from toolkit.audit.folder import Audit, latest_audit, list_audits, open_audit
from toolkit.audit.inventory import Inventory, find_inventory
from toolkit.audit.object_history import Synced
from toolkit.audit.observe_bucket import sync_bucket
from toolkit.contract.people import Unmasking
from toolkit.database.service import clients
from toolkit.database.tables import audit_runs
from toolkit.kit.context import ApplicationContext
from toolkit.log.events import record_unmasking
from toolkit.log.sealing import record_and_seal_report, seal_events
from toolkit.progress import Progress
from toolkit.reports.audited import Audited
from toolkit.reports.reading import read_audited


def audit(
    application: ApplicationContext,
    *,
    as_of: datetime | None = None,
    sync: bool = True,
    confirmed: bool = False,
    verify: bool = True,
    place: str | None = None,
    spark: bool = False,
    synced: Callable[[Synced], object] | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Judge all sales, of now where ``as_of`` is ``None``, and return the folder of the audit.

    An audit of now looks at the sales and the bucket first, verifies contents within the time of the settings
    unless ``verify`` is off, and seals the custody log; with ``sync`` off it does nothing of this;
    an audit of the past takes what was seen then. ``confirmed`` takes a mass disappearance for true; ``place`` is
    where the folder goes instead of ``TOOLKIT_AUDITS``; ``spark`` has a cluster judge. ``synced`` is told what was
    read of the bucket.
    """
    from toolkit.audit.run import make_audit  # heavy, and reports of a folder do without
    from toolkit.evidence.contents import verify_contents

    plan = application.audit_plan(place, spark=spark)
    verified = None if as_of is not None else False
    if sync and as_of is None:
        looked = sync_now(application, confirmed=confirmed, progress=progress)
        if synced is not None:
            synced(looked)
        if verify:
            verify_contents(
                application.database,
                application.bucket,
                clock=application.clock,
                seconds=application.settings.verify_seconds,
                progress=progress,
            )
            verified = True
        newest = seal_events(application.database, application.clock, application.log_keys)
        application.keep_seal(newest.hash if newest is not None else None)
    return make_audit(
        application.database,
        plan,
        clock=application.clock,
        as_of=as_of,
        verified_first=verified,
        replica=application.replica,
    )


def earlier_audit(application: ApplicationContext, place: str) -> Audit:
    """Open an audit that was made before: a folder, an address in a bucket, or ``latest``.

    Raises:
        UnreadableFile: there is none, or a file of it is not what was written.
    """
    plan = application.audit_plan()
    if place == "latest":
        return latest_audit(plan.store, plan.work / "copies")
    around, _, name = place.rstrip("/").rpartition("/")
    found = open_audit(name, application.file_store(around or "."), plan.work / "copies")
    found.verify()
    return found


def last_audit(application: ApplicationContext) -> Audit | None:
    """Open the newest audit of now of this database (several may share a store), ``None`` where there is none."""
    plan = application.audit_plan()
    with application.database.transaction() as connection:
        runs = set(map(str, connection.scalars(sa.select(audit_runs.c.id))))
    for name in reversed(list_audits(plan.store)):
        found = open_audit(name, plan.store, plan.work / "copies")
        if found.facts.run in runs:
            return found
    return None


def whole_cpfs(application: ApplicationContext, judged: Audit, unmasking: Unmasking) -> dict[str, str]:
    """Return the whole CPF of each client whose masked one is in the audit, which the custody log then tells."""
    wanted = [
        UUID(client_id) for client_id in judged.sql("SELECT client_id FROM clients")["client_id"].to_pylist()
    ]
    with application.database.transaction() as connection:
        record_unmasking(connection, unmasking, "CPFs of an audit", application.clock())
        of_these = clients.c.id == sa.any_(sa.cast(wanted, sa.ARRAY(sa.Uuid)))
        rows = connection.execute(sa.select(clients.c.id, clients.c.cpf).where(of_these))
        return {str(client_id): cpf for client_id, cpf in rows}


def sync_now(
    application: ApplicationContext,
    *,
    full: bool = False,
    inventory: str | None = None,
    confirmed: bool = False,
    progress: Progress | None = None,
) -> Synced:
    """Observe the sales, their records and the bucket, as the settings say.

    ``inventory`` names an S3 Inventory that is taken over instead of a listing: its ``manifest.json``, or a folder
    or prefix in which the newest one is taken.

    Raises:
        UnreadableFile: a file is missing or is not the one that its manifest names.
    """
    settings = application.settings
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with PrivateFolder(settings.home) as scratch:
        return sync_bucket(
            application.database,
            application.bucket,
            clock=application.clock,
            full=full,
            inventory=None if inventory is None else _inventory(application, inventory, scratch),
            every_key_within=timedelta(days=settings.relist_days),
            confirmed=confirmed,
            progress=progress,
        )


def _inventory(application: ApplicationContext, address: str, scratch: Path) -> Inventory:
    around, _, name = address.rpartition("/")
    if name != "manifest.json":
        return find_inventory(application.file_store(address), None, scratch)
    # Its files lie in a folder beside its own.
    place, slash, folder = (around or str(Path.cwd())).rpartition("/")
    return find_inventory(application.file_store(place if slash else "."), f"{folder}/{name}", scratch)


def record_report(application: ApplicationContext, files: Mapping[str, str]) -> str | None:
    """Record the SHA-256 of each file of a report in the custody log; the hash of the seal that covers it.

    ``None`` where none does yet: an older transaction is under way, and the next seal will.
    """
    seal = record_and_seal_report(application.database, files, application.clock, application.log_keys)
    application.keep_seal(seal)
    return seal


def as_audited(
    judged: Audit, partner: str | None = None, cpfs: Mapping[str, str] | None = None, *, whole: bool = False
) -> Audited:
    """Return the numbers and lists of an audit, or of one partner's sales in it, all of them read now.

    Those of a partner are without what is compliance's own, unless ``whole``.
    """
    own = replace(judged) if partner is None else judged.for_partner(partner)
    return read_audited(own, cpfs=cpfs, whole=whole)  # the memory of its queries goes with it
