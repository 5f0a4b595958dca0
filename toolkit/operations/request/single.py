"""Issue upload credentials for one file (contract, "2. Request evidence upload credentials")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.domain.evidence import EvidenceRequest, UtilityGroup, object_key
from toolkit.domain.fields import REQUIRED
from toolkit.domain.requests import parse
from toolkit.domain.sales import is_possible_sale_id
from toolkit.errors import InvalidField, InvalidFields, SaleNotFound
from toolkit.operations import Clock
from toolkit.operations.prove.custody_log import TELL_ISSUED
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database
from toolkit.storage.identifiers import new_id
from toolkit.storage.tables import evidences, sales

EVIDENCE_TYPE: Final = "evidenceType"

REQUIRED_FOR_GROUP_D: Final = "evidenceType is required for a sale of utility group D"
"""The contract's own case: ``evidenceType`` missing for a sale of utility group D."""


@dataclass(frozen=True, slots=True)
class UploadLimits:
    """The life of upload credentials in seconds, and the largest file in bytes."""

    ttl_seconds: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class IssuedCredentials:
    """The contract's answer: ``id`` of the record, where to post the file, and the form fields that allow it."""

    id: UUID
    sale_id: str
    file_name: str
    url: str
    fields: dict[str, str] = field(repr=False)
    expires_at: datetime


def request_upload(
    database: Database,
    bucket: Bucket,
    sale_id: str,
    body: Mapping[str, Any],
    *,
    requested_by: str,
    limits: UploadLimits,
    clock: Clock,
) -> IssuedCredentials:
    """Validate ``body`` (contract names), sign a form, and store the evidence record, every time anew.

    Raises:
        InvalidFields: every invalid field of the body at once, whether the sale is known or not.
        SaleNotFound: no sale has this id, whatever it looks like.
        BucketError: the form cannot be signed. In all these cases nothing was stored.
    """
    request = _parsed(database, sale_id, body)
    if not is_possible_sale_id(sale_id):
        raise SaleNotFound
    evidence_id, requested_at = new_id(), clock()
    form = bucket.presign_post(
        object_key(evidence_id, request.file_name, requested_at),
        max_bytes=limits.max_bytes,
        expires_at=requested_at + timedelta(seconds=limits.ttl_seconds),
    )
    record = {
        "id": evidence_id,
        "sale_id": sale_id,
        "file_name": request.file_name,
        "file_format": request.file_format,
        "type": request.type,
        "evidence_type": request.evidence_type.value,
        "object_key": form.fields["key"],
        "requested_by": requested_by,
        "requested_at": requested_at,
        "expires_at": form.expires_at,
    }
    with database.statement() as connection:
        if connection.execute(_ISSUE_FOR_KNOWN_SALE, record).first() is None:
            raise SaleNotFound
    return IssuedCredentials(evidence_id, sale_id, request.file_name, form.url, form.fields, form.expires_at)


_COLUMNS: Final = evidences.columns.keys()

_ISSUE_FOR_KNOWN_SALE: Final = sa.text(
    f"""
    WITH record AS (
        INSERT INTO audit_service.evidences ({", ".join(_COLUMNS)})
        SELECT {", ".join(f":{name}" for name in _COLUMNS)}
        FROM audit_service.sales WHERE id = :sale_id
        RETURNING *
    )
    {TELL_ISSUED}
    RETURNING id
    """  # noqa: S608  # made of the names of our columns
).bindparams(*(sa.bindparam(column.name, type_=column.type) for column in evidences.columns))
"""One statement looks for the sale, stores the record and tells of it: there is no moment in between."""


def _parsed(database: Database, sale_id: str, body: Mapping[str, Any]) -> EvidenceRequest:
    try:
        return parse(EvidenceRequest, body)
    except InvalidFields as error:
        if InvalidField(EVIDENCE_TYPE, REQUIRED) not in error.invalid:
            raise
        with database.transaction() as connection:
            if _utility_group(connection, sale_id) != UtilityGroup.D:
                raise
        raise InvalidFields(error.invalid, REQUIRED_FOR_GROUP_D) from None


def _utility_group(connection: Connection, sale_id: str) -> str | None:
    if not is_possible_sale_id(sale_id):
        return None
    group: str | None = connection.scalar(sa.select(sales.c.utility_group).where(sales.c.id == sale_id))
    return group
