"""Run an audit: observe the sales and the bucket, then judge."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from toolkit.domain.masking import Unmasking
from toolkit.entrypoints.application_context import ApplicationContext
from toolkit.entrypoints.kept_seals import keep_seal
from toolkit.entrypoints.snapshot_auditing import audit_of_moved
from toolkit.errors import ObservationsMoved
from toolkit.operations.judge.audit import AuditResult, run_audit
from toolkit.operations.observe.bucket_sync import Synced, sync_bucket
from toolkit.operations.observe.delivered import (
    Inventory,
    Journal,
    TakenOver,
    find_inventory,
    find_journal,
    take_over,
)
from toolkit.operations.observe.disappearance import Tolerance
from toolkit.operations.private_folder import PrivateFolder
from toolkit.operations.progress import Progress
from toolkit.operations.prove.custody_log.sealing import record_and_seal_report, seal_events
from toolkit.operations.verify.contents.queue import Budget
from toolkit.operations.verify.contents.verification import verify_contents


def audit(
    application: ApplicationContext,
    *,
    as_of: datetime | None = None,
    sync: bool = True,
    confirmed: bool = False,
    everything: bool = False,
    verify: bool = True,
    unmasking: Unmasking | None = None,
    with_file_findings: bool = False,
    synced: Callable[[Synced], object] | None = None,
    progress: Progress | None = None,
) -> AuditResult:
    """Judge all sales, of now where ``as_of`` is ``None``.

    An audit of now looks at the sales and the bucket first, verifies contents within the budget of the settings
    unless ``verify`` is off, and seals the custody log; with ``sync`` off it does nothing of this;
    an audit of the past takes what was seen then, from a snapshot where that was moved there. ``confirmed`` takes
    a mass disappearance for true; ``everything`` judges also the sales that did not change since the last audit,
    and compares; ``with_file_findings`` also looks at the files themselves, as ``toolkit evidence findings`` does.
    ``unmasking`` has CPFs shown whole. ``synced`` is told what was read of the bucket.
    """
    verification = None
    if sync and as_of is None:
        looked = sync_now(application, confirmed=confirmed, progress=progress)
        if synced is not None:
            synced(looked)
        if verify:
            verification = verify_contents(
                application.database,
                application.bucket,
                clock=application.clock,
                budget=Budget(application.settings.verify_seconds, application.settings.verify_bytes),
                progress=progress,
            )
        newest = seal_events(application.database, application.clock, application.log_keys)
        keep_seal(application, newest.hash if newest is not None else None)
    try:
        return run_audit(
            application.database,
            clock=application.clock,
            as_of=as_of,
            embedded_bucket=application.settings.evidence_bucket is None,
            unmasking=unmasking,
            with_file_findings=with_file_findings,
            verification=verification,
            deadlines=application.deadlines,
            replica=application.replica,
            everything=everything,
        )
    except ObservationsMoved:
        if as_of is None or unmasking is not None:
            raise
        return audit_of_moved(application, as_of, with_file_findings=with_file_findings)


def sync_now(
    application: ApplicationContext,
    *,
    full: bool = False,
    confirmed: bool = False,
    progress: Progress | None = None,
) -> Synced:
    """Observe the sales, their records and the bucket, as the settings say."""
    settings = application.settings
    return sync_bucket(
        application.database,
        application.bucket,
        clock=application.clock,
        full=full,
        every_key_within=timedelta(days=settings.picture_days),
        tolerance=Tolerance(settings.disappearance_percent, confirmed),
        progress=progress,
    )


def take_over_delivered(
    application: ApplicationContext,
    *,
    inventory: str | None,
    journal: str | None,
    confirmed: bool,
    progress: Progress,
) -> TakenOver:
    """Take over an S3 Inventory or a journal of S3 Metadata, which are at an address, instead of a listing.

    ``inventory`` names a ``manifest.json``, or a folder or prefix in which the newest one is taken.

    Raises:
        UnreadableFile: a file is missing or is not the one that its manifest names.
    """
    settings = application.settings
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with PrivateFolder(settings.home) as scratch:
        delivery: Inventory | Journal
        if inventory is not None:
            place, manifest = inventory, None
            around, _, name = inventory.rpartition("/")
            if name == "manifest.json":
                # Its files lie in a folder beside its own.
                around = str(Path.cwd()) if inventory == name else around
                place, slash, folder = around.rpartition("/")
                place, manifest = place if slash else ".", f"{folder}/{name}"
            delivery = find_inventory(application.file_store(place), manifest, scratch)
        else:
            assert journal is not None
            delivery = find_journal(application.file_store(journal), scratch)
        return take_over(
            application.database,
            application.bucket,
            delivery,
            scratch,
            clock=application.clock,
            memory=settings.engine_memory,
            tolerance=Tolerance(settings.disappearance_percent, confirmed),
            progress=progress,
        )


def witnessed(application: ApplicationContext, files: Mapping[str, str]) -> str | None:
    """Record the SHA-256 of each file of a report in the custody log; the hash of the seal that covers it.

    ``None`` where none does yet: an older transaction is under way, and the next seal will.
    """
    seal = record_and_seal_report(application.database, files, application.clock, application.log_keys)
    keep_seal(application, seal)
    return seal
