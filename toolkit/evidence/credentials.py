"""Issue upload credentials for one file (contract, "2. Request evidence upload credentials")."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa

from toolkit.bucket.client import Bucket
from toolkit.contract.deadlines import Clock
from toolkit.contract.evidence import EvidenceRequest, UtilityGroup, object_key
from toolkit.contract.fields import REQUIRED, parse
from toolkit.contract.people import PartnerAccess
from toolkit.contract.sales import is_possible_sale_id
from toolkit.database.belonging import BUCKET_OF_DATABASE, check_bucket
from toolkit.database.connection import Database, Lock, take_for
from toolkit.database.service import Service, one_row
from toolkit.database.tables import evidence_requests, new_id
from toolkit.errors import InvalidField, InvalidFields, SaleNotFound, TooManyForms
from toolkit.evidence.access import only_sale, own_sale, own_sale_parameters
from toolkit.log.events import RECORD_ISSUED

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
    access: PartnerAccess | None = None,
    account: str | None = None,
    limits: UploadLimits,
    clock: Clock,
) -> IssuedCredentials:
    """Validate ``body`` (contract names), sign a form, and store the evidence record, every time anew.

    ``access`` is what a partner is bound by; without it an operator asks, who may ask for every sale. ``account``
    is who is signed in, where ``requested_by`` may be another name.

    Raises:
        InvalidFields: every invalid field of the body at once, whether the sale is known or not.
        SaleNotFound: no sale has this id, whatever it looks like, or it is not the partner's.
        DatabaseError: several sales have it.
        WrongBucket: the database belongs to another bucket.
        TooManyForms: the sale has as many valid credentials for this type as ``access`` allows.
        BucketError: the form cannot be signed. In all these cases nothing was stored.
    """
    database.service.require("add_records")
    asked = {**own_sale_parameters(access, sale_id), "requested_by": requested_by}
    request = _parsed(database, body, asked)
    if not is_possible_sale_id(sale_id):
        raise SaleNotFound
    evidence_id, requested_at = new_id(), clock()
    form = bucket.presign_post(
        object_key(evidence_id, request.file_name, requested_at),
        max_bytes=limits.max_bytes,
        expires_at=requested_at + timedelta(seconds=limits.ttl_seconds),
    )
    record = request.model_dump(mode="json") | {
        "id": evidence_id,
        "object_key": form.fields["key"],
        "requested_at": requested_at,
        "expires_at": form.expires_at,
        "account": account or requested_by,
    }
    _store(database, bucket, record | asked, None if access is None else access.open_forms)
    return IssuedCredentials(evidence_id, sale_id, request.file_name, form.url, form.fields, form.expires_at)


def _store(database: Database, bucket: Bucket, record: Mapping[str, Any], open_forms: int | None) -> None:
    """Store the record where the bucket is the database's, and the sale the requester's own with room for a form.

    Far below the limit nobody waits for anybody. Near it the requests for a sale come one after the other, so
    that those that come at once do not pass it together.
    """
    record = {**record, "bucket": bucket.address}
    with database.statement() as connection:
        issue = _issue(database.service)  # only now it is known how the values are converted
        far_below = None if open_forms is None else open_forms // 2
        if connection.execute(issue, {**record, "open_forms": far_below}).rowcount:
            return
    with database.transaction() as connection:
        check_bucket(connection, bucket)
        take_for(connection, Lock.OPEN_FORMS, record["sale_id"])
        if connection.execute(issue, {**record, "open_forms": open_forms}).rowcount:
            return
        only_sale(connection.execute(_own_group_query(database.service), record).fetchmany(2), record["sale_id"])
        open_until = connection.execute(_open_until(database.service), record).scalar_one()
    raise TooManyForms(open_until - record["requested_at"])


def _open_forms(service: Service) -> str:
    return f"""
    SELECT expires_at FROM {service.one("records", "sale_id", ":sale_id")} AS record
    WHERE evidence_type = :evidence_type AND expires_at > :requested_at
"""


@cache
def _issue(service: Service) -> sa.TextClause:
    """Return the statement that finds the sale, stores the record and records the event, all at once."""
    condition = f"""
        FROM own_sale
        WHERE coalesce({BUCKET_OF_DATABASE} = :bucket, TRUE) AND (SELECT count(*) FROM own_sale) = 1
          AND (
              CAST(:open_forms AS bigint) IS NULL
              OR (SELECT count(*) FROM ({_open_forms(service)} LIMIT :open_forms) AS open) < :open_forms
          )
    """
    return service.over(
        "add_records",
        f"""
        {own_sale(service)},
        {one_row("new_records", condition)},
        asked AS (
            INSERT INTO {evidence_requests} (evidence_id, account, partner)
            SELECT new_records.id, :account, own_sale.acting_partner FROM new_records, own_sale
        ),
        told AS ({RECORD_ISSUED})
        """,
    )


@cache
def _open_until(service: Service) -> sa.TextClause:
    """Return the query for the time at which the first of the open forms of a sale ends."""
    return sa.text(f"SELECT min(open.expires_at) FROM ({_open_forms(service)}) AS open")


@cache
def _own_group_query(service: Service) -> sa.TextClause:
    return sa.text(f"WITH {own_sale(service)} SELECT utility_group FROM own_sale")


def _parsed(database: Database, body: Mapping[str, Any], asked: Mapping[str, Any]) -> EvidenceRequest:
    try:
        return parse(EvidenceRequest, body)
    except InvalidFields as error:
        if InvalidField(EVIDENCE_TYPE, REQUIRED) not in error.invalid:
            raise
        # Only whose sale it is learns that it is there, and of which group.
        if not is_possible_sale_id(asked["sale_id"]) or _own_group(database, asked) != UtilityGroup.D:
            raise
        raise InvalidFields(error.invalid, REQUIRED_FOR_GROUP_D) from None


def _own_group(database: Database, asked: Mapping[str, Any]) -> str | None:
    with database.statement() as connection:
        group: str | None = connection.execute(_own_group_query(database.service), asked).scalars().first()
    return group
