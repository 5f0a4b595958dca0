"""Credentials for one file: what is stored, what is answered, and what is refused."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from tests.contract.bodies import UPLOAD
from tests.integration.uploaded_sales import rows
from toolkit.errors import BucketError, BucketUnavailable, InvalidField, InvalidFields, SaleNotFound
from toolkit.operations.request import IssuedCredentials, UploadLimits, request_upload
from toolkit.settings import AwsSettings
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database
from toolkit.storage.tables import sales

LIMITS = UploadLimits(ttl_seconds=900, max_bytes=1_000_000)
BODY = {**UPLOAD, "fileName": "contrato assinado.pdf"}
CONTRACT_FIELDS = [
    "bucket",
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Date",
    "X-Amz-Security-Token",
    "key",
    "Policy",
    "X-Amz-Signature",
]

Ask = Callable[..., IssuedCredentials]


@pytest.fixture
def ask(database: Database, bucket: Bucket, clock: Any) -> Ask:
    for sale_id, group in (("VND-1", "A"), ("VND-D", "D")):
        with database.transaction() as connection:
            connection.execute(
                sa.insert(sales),
                {
                    "id": sale_id,
                    "utility_group": group,
                    "is_client_financial_responsible": True,
                    "created_at": clock.now,
                },
            )

    def ask(sale_id: str = "VND-1", body: dict[str, Any] = BODY, bucket: Bucket = bucket) -> IssuedCredentials:
        return request_upload(
            database, bucket, sale_id, body, requested_by="partner-1", limits=LIMITS, clock=clock
        )

    return ask


def records(database: Database) -> list[tuple[Any, ...]]:
    return rows(database, "SELECT id, sale_id, file_name, object_key, requested_by, expires_at FROM evidences")


def test_the_answer_has_the_contracts_fields_and_the_record_is_stored(
    ask: Ask, database: Database, clock: Any
) -> None:
    issued = ask()
    assert list(issued.fields) == CONTRACT_FIELDS
    assert all(isinstance(value, str) and value for value in issued.fields.values())
    key = f"evidences/2026/03/02/{issued.id}/contrato assinado.pdf"
    assert issued.fields["key"] == key
    expires_at = clock.now + timedelta(seconds=900)
    assert issued.expires_at == expires_at
    assert records(database) == [(issued.id, "VND-1", "contrato assinado.pdf", key, "partner-1", expires_at)]


def test_asking_again_makes_another_record_under_another_key(ask: Ask, database: Database) -> None:
    assert ask().fields["key"] != ask().fields["key"]
    assert len(records(database)) == 2


def test_evidence_type_missing_for_a_sale_of_group_d_is_the_contracts_own_case(ask: Ask) -> None:
    body = {name: value for name, value in BODY.items() if name != "evidenceType"}
    with pytest.raises(InvalidFields) as of_d:
        ask("VND-D", body)
    assert of_d.value.invalid == (InvalidField("evidenceType", "Required"),)
    assert of_d.value.summary == "evidenceType is required for a sale of utility group D"
    with pytest.raises(InvalidFields) as of_a:
        ask("VND-1", body | {"fileName": ""})
    assert of_a.value.summary is None
    assert of_a.value.invalid == (
        InvalidField("evidenceType", "Required"),
        InvalidField("fileName", "Must not be empty"),
    )


def test_an_invalid_body_comes_before_an_unknown_sale(ask: Ask) -> None:
    with pytest.raises(InvalidFields):
        ask("nobody", {})


@pytest.mark.parametrize(
    "sale_id",
    [
        "nobody",
        "",
        " ",
        "x" * 5000,
        "VND-1\x00",
        "\x00",
        "VND-1 ",
        "'; DROP TABLE sales; --",
        "\ud800",
        "../VND-1",
    ],
)
def test_an_unknown_sale_is_not_found_whatever_its_id_looks_like(
    ask: Ask, database: Database, sale_id: str
) -> None:
    with pytest.raises(SaleNotFound):
        ask(sale_id)
    with pytest.raises(InvalidFields):
        ask(sale_id, {})
    assert records(database) == []


def test_nothing_is_stored_where_no_form_can_be_signed(ask: Ask, database: Database) -> None:
    unreachable = Bucket(
        "evidence",
        AwsSettings("AKIAEXAMPLE", "secret", s3_endpoint="http://127.0.0.1:1", sts_endpoint="http://127.0.0.1:1"),
    )
    with pytest.raises(BucketUnavailable):
        ask(bucket=unreachable)
    with pytest.raises(BucketError):
        ask(bucket=Bucket("evidence", AwsSettings("AKIA", "s", "token", session_ends=datetime.now(UTC))))
    assert records(database) == []


def test_credentials_are_in_no_repr_and_no_log(ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "toolkit"), caplog.at_level(logging.DEBUG, "sqlalchemy"):
        issued = ask()
    shown = repr(issued) + caplog.text
    for secret in ("X-Amz-Security-Token", "X-Amz-Signature", "Policy"):
        assert issued.fields[secret] not in shown
