"""Ask for new credentials where those of a line ran out before its file was sent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Row

from toolkit.errors import CredentialsExpired
from toolkit.operations import Clock
from toolkit.operations.credentials import UploadLimits, request_upload
from toolkit.operations.uploads.credentials_file import CredentialsLine
from toolkit.partner import FormPolicy
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database
from toolkit.storage.tables import evidences, withdrawals


@dataclass(frozen=True, slots=True)
class Renewal:
    """Access to the database and the bucket for an upload that may ask for new credentials."""

    database: Database
    bucket: Bucket
    limits: UploadLimits
    clock: Clock

    def renewed(self, line: CredentialsLine) -> CredentialsLine | None:
        """The line with a new record and form for the same file; ``None`` where the file is there already.

        Raises:
            CredentialsExpired: the record is not ours, or was withdrawn: nothing new is asked for.
        """
        record = self._record(line)
        if record is None:
            raise CredentialsExpired
        if self.bucket.head(record.object_key) is not None:
            return None
        fresh = request_upload(
            self.database,
            self.bucket,
            record.sale_id,
            {
                "fileName": record.file_name,
                "fileFormat": record.file_format,
                "type": record.type,
                "evidenceType": record.evidence_type,
            },
            requested_by=record.requested_by,
            limits=self.limits,
            clock=self.clock,
        )
        return replace(line, id=fresh.id, url=fresh.url, fields=fresh.fields, policy=FormPolicy.of(fresh.fields))

    def _record(self, line: CredentialsLine) -> Row[Any] | None:
        withdrawn = sa.select(withdrawals.c.evidence_id).where(withdrawals.c.evidence_id == evidences.c.id)
        query = sa.select(evidences).where(evidences.c.id == line.id, ~withdrawn.exists())
        with self.database.transaction() as connection:
            return connection.execute(query).one_or_none()
