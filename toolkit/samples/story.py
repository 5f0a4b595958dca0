"""Act for others in the demo: the sales system, partners' software, compliance.

The demo lets it happen on a real database and bucket. Each part looks first at what is there already, so that
a second telling adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final
from uuid import UUID

from toolkit.operations import Clock
from toolkit.operations.judge.completion import complete_sale
from toolkit.operations.judge.withdrawal import withdraw
from toolkit.operations.register.registration import client_ids
from toolkit.operations.request import UploadLimits, request_upload
from toolkit.operations.request.existing_records import StoredRecord, stored_records
from toolkit.operations.verify.contents.inspector import Inspector
from toolkit.partner import post_file
from toolkit.samples.dataset import SampleFile, Samples
from toolkit.samples.folder import PARTNER_FILES, manifest_row
from toolkit.samples.scenarios import Fate
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database

PARTNER: Final = "partner-software"
WITHDRAWN_BY: Final = "analyst@example.com"
APPROVED_BY: Final = "compliance-lead@example.com"

_MAX_BYTES: Final = 10_000_000
_PARTNER_LIMITS: Final = UploadLimits(ttl_seconds=600, max_bytes=_MAX_BYTES)
_SHORT_LIMITS: Final = UploadLimits(ttl_seconds=1, max_bytes=_MAX_BYTES)


def registered_clients(database: Database, samples: Samples) -> dict[str, UUID]:
    """Return the ids of the sample's clients in the database by ``externalId``, the oldest where there are two."""
    people = (*samples.csv_clients, *samples.xlsx_clients)
    return client_ids(database, [person.external_id for person in people])


def send_unchecked(database: Database, bucket: Bucket, samples: Samples, folder: Path, clock: Clock) -> int:
    """Ask for credentials and send every file, as a partner's software does; return how many were sent."""
    known, sent = _records(database, samples), 0
    for file in _files(samples, Fate.UNUSABLE, Fate.WITHDRAWN):
        if _name(file) in known:
            continue
        credentials = request_upload(
            database,
            bucket,
            file.sale_id,
            manifest_row(file),
            requested_by=PARTNER,
            limits=_PARTNER_LIMITS,
            clock=clock,
        )
        post_file(credentials.url, credentials.fields, folder / PARTNER_FILES / file.sale_id / file.name)
        sent += 1
    return sent


def let_lapse(database: Database, bucket: Bucket, samples: Samples, clock: Clock) -> int:
    """Ask for credentials that live one second, and send nothing; return how many were asked for."""
    known, asked = _records(database, samples), 0
    for file in _files(samples, Fate.LAPSED):
        if _name(file) in known:
            continue
        request_upload(
            database,
            bucket,
            file.sale_id,
            manifest_row(file),
            requested_by=PARTNER,
            limits=_SHORT_LIMITS,
            clock=clock,
        )
        asked += 1
    return asked


def withdraw_mistaken(database: Database, samples: Samples, clock: Clock) -> int:
    """Withdraw the records that the scenarios mark, as compliance does; return their number."""
    records = _records(database, samples)
    wrong = (records[_name(file)] for file in _files(samples, Fate.WITHDRAWN))
    left = sorted(record.id for record in wrong if not record.withdrawn)
    for evidence_id in left:
        withdraw(
            database,
            evidence_id,
            reason="Recording of another sale, sent by mistake",
            withdrawn_by=WITHDRAWN_BY,
            approved_by=APPROVED_BY,
            clock=clock,
        )
    return len(left)


def complete_what_may_be(database: Database, bucket: Bucket, samples: Samples, clock: Clock) -> int:
    """Complete the sales whose scenario says so; return how many were completed by this call."""
    completed = 0
    with Inspector() as inspector:
        for sale in samples.sales:
            if sale.scenario.completable:
                done = complete_sale(database, bucket, sale.id, clock, inspector)
                completed += done.completed_at is not None and not done.already
    return completed


def _files(samples: Samples, *fates: Fate) -> Iterator[SampleFile]:
    return (file for sale in samples.sales for file in sale.files if file.fate in fates)


_Name = tuple[str, str, str]


def _name(file: SampleFile) -> _Name:
    return file.sale_id, file.name, str(file.evidence_type)


def _records(database: Database, samples: Samples) -> dict[_Name, StoredRecord]:
    """Return the evidence records of the sample's sales, by the names of their files."""
    found = stored_records(database, [sale.id for sale in samples.sales])
    return {(record.sale_id, record.file_name, record.evidence_type): record for record in found}
