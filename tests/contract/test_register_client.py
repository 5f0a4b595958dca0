"""Contract, "1. Register client" and "Errors / Client registration", table by table."""

import json
from uuid import UUID

import pytest

from tests.support.client_rows import FIELDS
from tests.support.request_bodies import ABSENT, CLIENT, changed
from toolkit.database.tables import addresses, clients

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
