"""Contract, sections 1 and 2 with their errors, table by table: clients and upload credentials."""

import json
from datetime import UTC, datetime, timedelta
from urllib.parse import quote
from uuid import UUID, uuid4

import pytest

from tests.contract.conftest import SUBJECT
from tests.support.client_rows import FIELDS
from tests.support.request_bodies import ABSENT, CLIENT, UPLOAD, changed
from toolkit.contract.evidence import KIND_OF, EvidenceType, FileKind
from toolkit.database.tables import addresses, clients, evidences

OPTIONAL_FIELDS = ("externalId", "rg", "email", "phoneNumber")
REQUIRED_FIELDS = ("address", *(field for field in FIELDS if field not in OPTIONAL_FIELDS))


def errors(answer):
    """The invalid fields of a 400 with their reasons; its shape is checked on the way."""
    assert answer.status_code == 400, answer.text
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert set(body) == {"message", "code", "invalidFieldsErrors"}
    assert isinstance(body["message"], str)
    assert body["code"] == 400
    assert all(set(item) == {"field", "message"} for item in body["invalidFieldsErrors"])
    found = {item["field"]: item["message"] for item in body["invalidFieldsErrors"]}
    assert len(found) == len(body["invalidFieldsErrors"]) > 0
    return found


def test_a_client_is_registered_with_its_address(partner, service):
    answer = partner.post("/clients", json=CLIENT)

    assert answer.status_code == 200
    body = answer.json()
    assert set(body) == {"message", "clientId", "addressId"}
    assert isinstance(body["message"], str)
    client = service.rows(clients, id=UUID(body["clientId"]))[0]
    address = service.rows(addresses, id=UUID(body["addressId"]))[0]
    assert address["client_id"] == client["id"]
    assert (client["cpf"], client["rg"], client["external_id"]) == ("52998224725", "12.345.678-9", "crm-4711")
    assert (address["zip_code"], address["city"]) == ("01310100", "São Paulo")


@pytest.mark.parametrize("value", [ABSENT, None, "  "], ids=["absent", "null", "blank"])
def test_each_request_registers_anew_with_or_without_the_optional_fields(partner, value):
    sent = [changed(CLIENT, field, value) | {"score": 10**300, "clientId": "mine"} for field in OPTIONAL_FIELDS]
    assert len({partner.post("/clients", json=body).json()["clientId"] for body in sent}) == len(sent)


@pytest.mark.parametrize("field", REQUIRED_FIELDS)
@pytest.mark.parametrize("value", [ABSENT, None], ids=["absent", "null"])
def test_what_is_missing_is_Required(partner, field, value):  # noqa: N802
    assert errors(partner.post("/clients", json=changed(CLIENT, field, value))) == {field: "Required"}


def test_all_invalid_fields_are_named_at_once_and_nothing_is_kept(partner, service):
    body = changed(changed(CLIENT, "address.zipCode", "x"), "birthdate", ABSENT)
    body |= {"cpf": "529.982.247-24", "externalId": "invalid"}

    answer = partner.post("/clients", json=body)

    found = errors(answer)
    assert "529.982.247-24" not in answer.text
    assert list(found) == ["cpf", "birthdate", "address.zipCode"]
    assert found["birthdate"] == "Required"
    assert service.rows(clients, external_id="invalid") == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "Required"),
        (b" \r\n", "Required"),
        (b"{", "Must be valid JSON"),
        (b"{'cpf': 1}", "Must be valid JSON"),
        (b'{"cpf": NaN}', "Must be valid JSON"),
        (b'{"cpf": -Infinity}', "Must be valid JSON"),
        (b'{"cpf": "1"} {}', "Must be valid JSON"),
        (b"[]", "Must be an object"),
        (b"null", "Must be an object"),
        (b'"cpf"', "Must be an object"),
        (b"12345678901", "Must be an object"),
        (b"9" * 60_000, "Must be an object"),
        (b'{"cpf": "1", "cpf": "2"}', "Must not repeat a field"),
        (b'{"x": {"a": 1, "a": 2}}', "Must not repeat a field"),
        (b'{"cpf": "\xff\xfe"}', "Must be UTF-8"),
        ('{"cpf": "1"}'.encode("utf-16"), "Must be UTF-8"),
        (b"[" * 60_000, "Must not be nested so deeply"),
        (b'{"a":' * 12_000, "Must not be nested so deeply"),
    ],
    ids=lambda value: repr(value[:20]),
)
def test_a_broken_body_is_named_body(partner, content, reason):
    assert errors(post(partner, content)) == {"body": reason}


CONTENT_TYPES = {
    **dict.fromkeys(["Application/JSON", 'application/json;charset="UTF-8"', "application/json; version=1"], 200),
    **dict.fromkeys(["", "text/plain", "application/jsonx", "application/json; charset=latin1"], 400),
}


@pytest.mark.parametrize(("content_type", "status"), CONTENT_TYPES.items())
def test_json_in_utf8_is_taken_and_nothing_else(partner, content_type, status):
    answer = post(partner, json.dumps(CLIENT, ensure_ascii=False).encode("utf-8-sig"), content_type)

    assert answer.status_code == status
    assert status == 200 or list(errors(answer)) == ["Content-Type"]


def test_a_text_of_255_characters_is_kept_whole(partner, service):
    name = "Ã" * 255

    answer = post(partner, json.dumps({**CLIENT, "firstName": f" {name} "}, ensure_ascii=False).encode())

    assert answer.status_code == 200
    assert service.rows(clients, id=UUID(answer.json()["clientId"]))[0]["first_name"] == name


@pytest.mark.parametrize("length", [256, 50_000])
def test_no_text_is_longer_than_that(partner, length):
    for field in FIELDS:
        assert list(errors(partner.post("/clients", json=changed(CLIENT, field, "7" * length)))) == [field]


def post(partner, content, content_type="application/json"):
    return partner.post("/clients", content=content, headers={"Content-Type": content_type})


SIGNED = ("Algorithm", "Credential", "Date", "Security-Token")
FORM_FIELDS = ["bucket", *(f"X-Amz-{name}" for name in SIGNED), "key", "Policy", "X-Amz-Signature"]
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
    assert list(body["fields"]) == FORM_FIELDS
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


@pytest.mark.parametrize("field", UPLOAD)
@pytest.mark.parametrize("value", [ABSENT, None], ids=["absent", "null"])
@pytest.mark.parametrize("group", "ABC")
def test_what_is_missing_in_a_request_is_Required(partner, sales, field, value, group):  # noqa: N802
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
