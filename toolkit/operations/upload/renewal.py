"""Ask for new credentials where those of a line ran out before its file was sent."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Row

from toolkit.domain.requests import parse
from toolkit.errors import CredentialsExpired
from toolkit.operations import Clock
from toolkit.operations.observe.belonging import check_bucket
from toolkit.operations.prove.custody_log.events import record_reissued
from toolkit.operations.request.existing_records import known_records, stage
from toolkit.operations.request.manifest import ManifestRow, Wanted
from toolkit.operations.request.single import UploadLimits, request_upload
from toolkit.operations.upload.credentials_file import CredentialsLine
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
        """Return the line with another form for the same file; ``None`` where the file is there already.

        What an earlier call asked for, and was killed before it was noted, is used again: a second record is
        made only where none of the same sale, type and file name lives longer than the line.

        Raises:
            CredentialsExpired: the record is not ours, or was withdrawn: nothing new is asked for.
        """
        record = self._record(line)
        if record is None:
            raise CredentialsExpired
        body = {
            "fileName": record.file_name,
            "fileFormat": record.file_format,
            "type": record.type,
            "evidenceType": record.evidence_type,
        }
        with self.database.transaction() as connection:
            check_bucket(connection, self.bucket)
            stage(connection, [Wanted(line.line, parse(ManifestRow, {**body, "saleId": record.sale_id}))])
            now = self.clock()
            known = known_records(connection, self.bucket, now).get(0)
            if known is not None and known.uploaded:
                return None
            if known is not None and known.expires_at and known.expires_at > line.policy.expires_at:
                form = self.bucket.presign_post(
                    known.object_key, max_bytes=self.limits.max_bytes, expires_at=known.expires_at
                )
                record_reissued(connection, [known.evidence_id], now)
                return _with_form(line, known.evidence_id, form.url, form.fields)
        fresh = request_upload(
            self.database,
            self.bucket,
            record.sale_id,
            body,
            requested_by=record.requested_by,
            limits=self.limits,
            clock=self.clock,
        )
        return _with_form(line, fresh.id, fresh.url, fresh.fields)

    def _record(self, line: CredentialsLine) -> Row[Any] | None:
        withdrawn = sa.select(withdrawals.c.evidence_id).where(withdrawals.c.evidence_id == evidences.c.id)
        query = sa.select(evidences).where(evidences.c.id == line.id, ~withdrawn.exists())
        with self.database.transaction() as connection:
            return connection.execute(query).one_or_none()


def _with_form(line: CredentialsLine, evidence_id: UUID, url: str, fields: Mapping[str, str]) -> CredentialsLine:
    return replace(line, id=evidence_id, url=url, fields=fields, policy=FormPolicy.of(fields))
