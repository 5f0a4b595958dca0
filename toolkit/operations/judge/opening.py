"""Open one evidence file through a link that lives for minutes, noting first who asked for it and why."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import sqlalchemy as sa

from toolkit.domain.fields import MISLEADING, NOT_MISLEADING, TRIMMED
from toolkit.domain.people import person
from toolkit.errors import EvidenceNotFound, InvalidInput
from toolkit.operations import Clock
from toolkit.operations.observe.belonging import check_bucket
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database
from toolkit.storage.identifiers import new_id
from toolkit.storage.tables import evidence_openings, evidences

LONGEST_SECONDS: Final = 900
"""The longest life of a link."""


@dataclass(frozen=True, slots=True)
class Link:
    """An address under which whoever has it reads the file until ``expires_at``."""

    evidence_id: UUID
    sale_id: str
    url: str
    expires_at: datetime


def open_evidence(
    database: Database,
    bucket: Bucket,
    evidence_id: UUID,
    *,
    reason: str,
    opened_by: str,
    account: str | None = None,
    seconds: int,
    clock: Clock,
) -> Link:
    """Make a link to the file of one record; the custody log is told before the link is handed out.

    ``account`` is who is signed in, and kept beside the name.

    Raises:
        InvalidInput: the reason or the name is missing, or the life is too long.
        EvidenceNotFound: no evidence record has this id, or no file lies under its key.
        WrongBucket: the database belongs to another bucket.
        BucketError: the bucket could not be asked.
    """
    reason, opened_by = reason.strip(TRIMMED), opened_by.strip(TRIMMED)
    if not reason or not person(opened_by) or MISLEADING.search(reason + opened_by):
        raise InvalidInput(f"To open a file, say who opens it and why; the texts {NOT_MISLEADING}.")
    if not 1 <= seconds <= LONGEST_SECONDS:
        raise InvalidInput(f"A link lives for 1 to {LONGEST_SECONDS} seconds.")
    with database.transaction() as connection:
        check_bucket(connection, bucket)
        query = sa.select(evidences.c.sale_id, evidences.c.object_key).where(evidences.c.id == evidence_id)
        record = connection.execute(query).one_or_none()
    if record is None:
        raise EvidenceNotFound(f"There is no evidence record with the id {evidence_id}.")
    if bucket.head(record.object_key) is None:
        raise EvidenceNotFound(f"There is no file in the bucket for the record {evidence_id}.")
    opened_at = clock()
    expires_at = opened_at + timedelta(seconds=seconds)
    opening = {
        "id": new_id(),
        "evidence_id": evidence_id,
        "reason": reason,
        "opened_by": opened_by,
        "account": account,
        "opened_at": opened_at,
        "expires_at": expires_at,
    }
    with database.transaction() as connection:
        connection.execute(sa.insert(evidence_openings), opening)
    return Link(evidence_id, record.sale_id, bucket.presign_get(record.object_key, seconds), expires_at)
