"""Contract, "2. Request evidence upload credentials", and the upload of section 3 with what it answers."""

import json
from datetime import UTC, datetime, timedelta
from urllib.parse import quote
from uuid import UUID, uuid4

import httpx
import pytest

from tests.contract.conftest import SUBJECT
from tests.contract.test_register_client import errors
from tests.support.request_bodies import ABSENT, UPLOAD, changed
from tests.support.waiting import PATIENCE
from toolkit.contract.evidence import KIND_OF, EvidenceType, FileKind
from toolkit.database.tables import evidences

SIGNED = ("Algorithm", "Credential", "Date", "Security-Token")
FIELDS = ["bucket", *(f"X-Amz-{name}" for name in SIGNED), "key", "Policy", "X-Amz-Signature"]
AUDIO = {"fileName": "gravação.mp3", "fileFormat": "audio/mpeg", "type": "audio/mp3", "evidenceType": "POV"}

BY_TYPE = {
    kind: (AUDIO if KIND_OF[kind] is FileKind.AUDIO else UPLOAD) | {"evidenceType": kind} for kind in EvidenceType
}


@pytest.fixture(scope="module")
def sales(service):
    """A sale of each utility group."""
    return {group: service.sale(f"VND-{uuid4()}-{group}", group) for group in "ABCD"}


@pytest.fixture
def sale(sales):
    return sales["A"]


def ask(partner, sale_id, body=UPLOAD):
    content = json.dumps(body).encode()  # httpx itself cannot write an unpaired surrogate
    headers = {"Content-Type": "application/json"}
    return partner.put(f"/sales/{quote(sale_id, safe='')}/evidences", content=content, headers=headers)


@pytest.mark.parametrize("evidence_type", BY_TYPE)
def test_credentials_are_answered_and_the_record_is_stored(partner, service, sale, evidence_type):
    before = datetime.now(UTC)

    answer = ask(partner, sale, BY_TYPE[evidence_type])

    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    body = answer.json()
    assert set(body) == {"id", "url", "fields"}
    assert list(body["fields"]) == FIELDS
    assert all(isinstance(value, str) and value for value in body["fields"].values())
    record = service.rows(evidences, id=UUID(body["id"]))[0]
    assert record["object_key"] == body["fields"]["key"]
    day = f"{record['requested_at'].astimezone(UTC):%Y/%m/%d}"
    assert record["object_key"] == f"evidences/{day}/{body['id']}/{record['file_name']}"
    assert (record["sale_id"], record["evidence_type"]) == (sale, evidence_type)
    assert (record["file_name"], record["file_format"], record["type"]) == tuple(
        BY_TYPE[evidence_type][name] for name in ("fileName", "fileFormat", "type")
    )
    assert record["requested_by"] == SUBJECT
    assert before - timedelta(seconds=1) <= record["requested_at"] <= datetime.now(UTC)
    assert record["expires_at"] > record["requested_at"]


def test_the_file_is_posted_with_the_fields_as_the_contract_says(partner, sale, s3, service):
    body = ask(partner, sale).json()
    content = b"%PDF-1.4 made for a test"

    # Section 3: the fields, acl=private, and the file last.
    posted = httpx.post(
        body["url"],
        data={**body["fields"], "acl": "private"},
        files={"file": ("contratante.pdf", content)},
        trust_env=False,
        timeout=PATIENCE,
    )

    assert posted.is_success, posted.text
    kept = s3.get_object(Bucket=service.environ["EVIDENCE_BUCKET"], Key=body["fields"]["key"])
    assert kept["Body"].read() == content


@pytest.mark.parametrize("field", UPLOAD)
@pytest.mark.parametrize("value", [ABSENT, None], ids=["absent", "null"])
@pytest.mark.parametrize("group", "ABC")
def test_what_is_missing_is_Required(partner, sales, field, value, group):  # noqa: N802
    assert errors(ask(partner, sales[group], changed(UPLOAD, field, value))) == {field: "Required"}


@pytest.mark.parametrize("value", [ABSENT, None], ids=["absent", "null"])
def test_a_sale_of_group_d_without_evidence_type_is_the_contracts_own_400(partner, sales, value):
    answer = ask(partner, sales["D"], changed(UPLOAD, "evidenceType", value))

    assert errors(answer) == {"evidenceType": "Required"}
    assert "group D" in answer.json()["message"]


@pytest.mark.parametrize(
    ("body", "invalid"),
    [
        (changed(UPLOAD, "evidenceType", "RG"), ["evidenceType"]),
        (changed(UPLOAD, "evidenceType", "pov"), ["evidenceType"]),
        (changed(UPLOAD, "evidenceType", 1), ["evidenceType"]),
        (changed(UPLOAD, "evidenceType", "POV"), ["fileFormat", "type"]),
        (changed(AUDIO, "evidenceType", "KYC"), ["fileFormat", "type"]),
        (changed(UPLOAD, "fileFormat", "image/jpeg"), ["fileFormat"]),
        (changed(UPLOAD, "type", "pdf"), ["type"]),
        (changed(AUDIO, "type", "audio/"), ["type"]),
        (changed(AUDIO, "fileFormat", "audio/" + "a" * 250), ["fileFormat"]),
        (changed(UPLOAD, "fileName", ""), ["fileName"]),
        ({}, ["evidenceType", "fileName", "fileFormat", "type"]),
    ],
    ids=repr,
)
def test_an_invalid_body_names_its_fields(partner, sale, body, invalid):
    assert sorted(errors(ask(partner, sale, body))) == sorted(invalid)


SAFE = [
    *("contrato João & Filhos (1).pdf", "nota 😀.pdf", ".oculto.pdf", "...pdf", "100% certo?#1+1=2.pdf"),
    *("a;b='c\"<d>.pdf", "$HOME $(id) `id`.pdf", "NUL", "é" * 127),
]
REFUSED = [
    *(
        "..",
        ".",
        "../../etc/passwd",
        "/etc/passwd",
        "..\\..\\boot.ini",
        "pasta/contrato.pdf",
        "contrato\u0000.pdf",
    ),
    *("contrato\r\nX-Evil: 1.pdf", "contrato\u001b[2J.pdf", "contrato\u202efdp.exe", "contrato\ud800.pdf"),
    *("${filename}", "a${filename}.pdf", "é" * 128, "a" * 5000 + ".pdf"),
]


@pytest.mark.parametrize("file_name", SAFE, ids=lambda value: ascii(value[:24]))
def test_a_file_name_is_data(partner, service, sale, file_name):
    answer = ask(partner, sale, {**UPLOAD, "fileName": file_name})

    assert answer.status_code == 200
    key = answer.json()["fields"]["key"]
    assert key.endswith("/" + file_name)
    assert key.count("/") == service.rows(evidences, object_key=key)[0]["object_key"].count("/") == 5


@pytest.mark.parametrize("file_name", REFUSED, ids=lambda value: ascii(value[:24]))
def test_a_file_name_is_never_a_path(partner, sale, file_name):
    assert list(errors(ask(partner, sale, {**UPLOAD, "fileName": file_name}))) == ["fileName"]


@pytest.mark.parametrize(
    "sale_id",
    [
        *("unknown", "a/b", "../clients", ".", "%2F", "%00", "vênda ção", "'; DROP TABLE sales; --"),
        *("\u0000", "a\u0000b", "\n", " ", "😀😀", "x" * 101, "ã" * 5000),
        "d1e23295-d55f-433c-9666-3c2d8d4d6f10",
    ],
    ids=lambda value: ascii(value[:24]),
)
def test_an_unknown_sale_is_a_404_whatever_its_id_looks_like(partner, sale_id):
    answer = ask(partner, sale_id)

    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json()) == {"message", "code"}
    assert answer.json()["code"] == 404


def test_a_sale_id_that_is_not_utf8_is_a_404_and_none_at_all_a_400(partner):
    assert partner.put("/sales/%FF%FE/evidences", json=UPLOAD).status_code == 404
    assert errors(partner.put("/sales//evidences", json=UPLOAD)) == {"saleId": "Required"}


@pytest.mark.parametrize(
    "sale_id", ["2026/03 Ação & 100%", "a/evidences", "😀", "..", "a\x1bb", "V\u202e10", "x" * 100], ids=ascii
)
def test_a_known_sale_is_found_by_any_id(partner, service, sale_id):
    service.sale(sale_id)

    answer = ask(partner, sale_id) if sale_id != ".." else partner.put("/sales/%2E%2E/evidences", json=UPLOAD)

    assert answer.status_code == 200
    assert service.rows(evidences, id=UUID(answer.json()["id"]))[0]["sale_id"] == sale_id
