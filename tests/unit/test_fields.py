"""The field rules of the contract, at their boundaries."""

import pytest

from toolkit.domain.clients import Client
from toolkit.domain.requests import parse
from toolkit.errors import InvalidFields


def body(**changes: object) -> dict[str, object]:
    """A valid registration; dotted names change the address, ``...`` removes a field."""
    address: dict[str, object] = {
        "neighborhood": "Centro",
        "installationNumber": "1234567",
        "address": "Rua das Flores",
        "addressNumber": "10",
        "city": "Campinas",
        "zipCode": "13010-000",
    }
    client: dict[str, object] = {
        "cpf": "529.982.247-25",
        "numberOnDealership": "7001",
        "enrollment": "88",
        "firstName": "Ana",
        "lastName": "Souza",
        "birthdate": "1980-02-29",
        "address": address,
    }
    for name, value in changes.items():
        target, field = (address, name[8:]) if name.startswith("address_") else (client, name)
        if value is ...:
            del target[field]
        else:
            target[field] = value
    return client


def reasons(**changes: object) -> dict[str, str]:
    """Field -> reason for a registration with these changes; empty when it is accepted."""
    try:
        parse(Client, body(**changes))
    except InvalidFields as error:
        return {item.field: item.message for item in error.invalid}
    return {}


def test_a_valid_client_is_kept_in_its_normal_form() -> None:
    client = parse(Client, body(email=" ana@Example.com ", phoneNumber="11987654321", rg="  ", externalId=None))
    assert client.cpf == "52998224725"
    assert client.address.zip_code == "13010000"
    assert client.email == "ana@example.com"
    assert client.rg is None
    assert client.external_id is None


@pytest.mark.parametrize(
    "name", ["cpf", "numberOnDealership", "enrollment", "firstName", "lastName", "birthdate", "address"]
)
@pytest.mark.parametrize("absent", [..., None])
def test_what_is_missing_is_required(name: str, absent: object) -> None:
    assert reasons(**{name: absent}) == {name: "Required"}


@pytest.mark.parametrize(
    "name", ["neighborhood", "installationNumber", "address", "addressNumber", "city", "zipCode"]
)
@pytest.mark.parametrize("absent", [..., None])
def test_what_is_missing_in_the_address_is_named_with_a_dot(name: str, absent: object) -> None:
    assert reasons(**{f"address_{name}": absent}) == {f"address.{name}": "Required"}


def test_all_invalid_fields_are_listed_at_once() -> None:
    found = reasons(cpf=..., birthdate="1980-13-01", phoneNumber="123", address_zipCode="123")
    assert list(found) == ["cpf", "birthdate", "phoneNumber", "address.zipCode"]


def test_an_empty_body_lists_every_required_field() -> None:
    with pytest.raises(InvalidFields) as caught:
        parse(Client, {})
    assert {item.field: item.message for item in caught.value.invalid} == dict.fromkeys(
        ["cpf", "numberOnDealership", "enrollment", "firstName", "lastName", "birthdate", "address"], "Required"
    )


@pytest.mark.parametrize("cpf", ["52998224725", "529.982.247-25", "00000000191", " 52998224725\n"])
def test_valid_cpf(cpf: str) -> None:
    assert reasons(cpf=cpf) == {}


@pytest.mark.parametrize(
    "cpf",
    [
        "52998224724",  # check digit
        "11111111111",  # repeated digits
        "191",  # the library would pad it
        "5-2998224725",  # the library would drop stray hyphens
        "529.982.24725",
        "529982247251",
        "5299822472５",  # a full-width digit
        52998224725,
        True,
        "",
        "  ",
        "529982\x0024725",
    ],
)
def test_invalid_cpf(cpf: object) -> None:
    assert list(reasons(cpf=cpf)) == ["cpf"]


@pytest.mark.parametrize("cep", ["01000-000", "01000000", "99999-999"])
def test_valid_cep(cep: str) -> None:
    assert reasons(address_zipCode=cep) == {}


@pytest.mark.parametrize("cep", ["00999-999", "1300-000", "13010 000", "130100000", "13010_000", 13010000])
def test_invalid_cep(cep: object) -> None:
    assert list(reasons(address_zipCode=cep)) == ["address.zipCode"]


@pytest.mark.parametrize(("text", "accepted"), [("ab", False), ("abc", True), (" ab ", False), ("日本語", True)])
def test_neighborhood_has_at_least_three_characters(text: str, accepted: bool) -> None:
    assert (reasons(address_neighborhood=text) == {}) is accepted


@pytest.mark.parametrize(("length", "accepted"), [(6, False), (7, True), (11, True), (12, False)])
def test_installation_number_has_seven_to_eleven_characters(length: int, accepted: bool) -> None:
    assert (reasons(address_installationNumber="9" * length) == {}) is accepted


@pytest.mark.parametrize("phone", ["1198765432", "119876543210", "(11)98765432", "+5511987654321", "１1987654321"])
def test_invalid_phone(phone: str) -> None:
    assert list(reasons(phoneNumber=phone)) == ["phoneNumber"]


@pytest.mark.parametrize("email", ["a@b", "Ana <ana@example.com>", "a b@example.com", "@example.com", "ana"])
def test_invalid_email(email: str) -> None:
    assert reasons(email=email) == {"email": "Must be a valid e-mail address"}


@pytest.mark.parametrize(
    "text", ["1981-02-29", "29/02/1980", "0", "1980-2-9", "1980-02-29T00:00:00", "１980-02-29", "0000-01-01"]
)
def test_invalid_birthdate(text: str) -> None:
    assert list(reasons(birthdate=text)) == ["birthdate"]


@pytest.mark.parametrize("name", ["email", "phoneNumber", "rg", "externalId"])
@pytest.mark.parametrize("blank", ["", "  ", "\u00a0", None, ...])
def test_a_blank_optional_field_is_absent(name: str, blank: object) -> None:
    base = {name: "x"} if blank is ... else {}
    assert reasons(**{**base, name: blank if blank is not ... else None}) == {}


@pytest.mark.parametrize("character", ["\x00", "\x1f", "\x7f", "\x85", "\ud800"])
def test_control_characters_are_invalid(character: str) -> None:
    assert reasons(firstName=f"A{character}na") == {"firstName": "Must not contain control characters"}


@pytest.mark.parametrize(
    "character", ["\u061c", "\u200e", "\u200f", "\u2028", "\u202a", "\u202e", "\u2066", "\u2069"]
)
@pytest.mark.parametrize("name", ["externalId", "rg", "enrollment", "firstName"])
def test_what_shows_a_text_in_another_order_is_invalid(name: str, character: str) -> None:
    assert reasons(**{name: f"4711{character}12"}) == {name: "Must not contain text-direction characters"}


@pytest.mark.parametrize("value", [1, 1.5, True, [], {}])
def test_other_json_types_are_not_strings(value: object) -> None:
    assert reasons(enrollment=value) == {"enrollment": "Must be a string"}


@pytest.mark.parametrize("value", ["Rua", 1, []])
def test_address_must_be_an_object(value: object) -> None:
    assert reasons(address=value) == {"address": "Must be an object"}


def test_unknown_fields_are_ignored_and_python_names_are_unknown() -> None:
    assert reasons(color="blue") == {}
    assert reasons(firstName=..., first_name="Ana") == {"firstName": "Required"}


def test_reasons_never_repeat_the_value() -> None:
    with pytest.raises(InvalidFields) as caught:
        parse(Client, body(cpf="52998224724", email="secret@", address_zipCode="4711"))
    for value in ("52998224724", "secret", "4711"):
        assert value not in str(caught.value)
        assert value not in repr(caught.value)
