"""The field rules of the contract, at their boundaries."""

import pickle
from datetime import timedelta

import pytest

from tests.support.request_bodies import CLIENT, changed
from toolkit.contract.fields import parse
from toolkit.contract.people import mask_cpf
from toolkit.contract.resources import Client
from toolkit.errors import InvalidField, InvalidFields, SaleNotFound, TooManyForms


def reasons(field, value):
    """Field -> reason for a registration with this value; empty when it is accepted."""
    try:
        parse(Client, changed(CLIENT, field, value))
    except InvalidFields as error:
        return {item.field: item.message for item in error.invalid}
    return {}


@pytest.mark.parametrize(
    "error", [InvalidFields([InvalidField("cpf", "Required")]), SaleNotFound(), TooManyForms(timedelta(1))]
)
def test_a_pool_of_processes_hands_an_error_over(error):
    handed = pickle.loads(pickle.dumps(error))
    assert (type(handed), str(handed), vars(handed)) == (type(error), str(error), vars(error))


def test_an_address_of_mail_is_kept_in_its_normal_form():
    assert parse(Client, CLIENT | {"email": " ana@Example.com "}).email == "ana@example.com"


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("cpf", ["52998224725", "529.982.247-25", "00000000191", " 52998224725\n"]),
        ("address.zipCode", ["01000-000", "01000000", "99999-999"]),
        ("address.neighborhood", ["abc", "日本語"]),
        ("address.installationNumber", ["9" * 7, "9" * 11]),
    ],
)
def test_a_value_within_the_rule_of_its_field_is_taken(field, values):
    assert [reasons(field, value) for value in values] == [{}] * len(values)


INVALID = {
    "cpf": [
        "52998224724",  # check digit
        "11111111111",  # repeated digits
        "191",  # the library would pad it
        "5-2998224725",  # the library would drop stray hyphens
        "529.982.24725",
        "529982247251",
        "5299822472５",  # a full-width digit
        *(52998224725, True, "", "  ", "529982\x0024725"),
    ],
    "address.zipCode": ["00999-999", "1300-000", "13010 000", "130100000", "13010_000", 13010000],
    "address.neighborhood": ["ab", " ab "],
    "address.installationNumber": ["9" * 6, "9" * 12],
    "phoneNumber": ["1198765432", "119876543210", "(11)98765432", "+5511987654321", "１1987654321"],
    "email": ["a@b", "Ana <ana@example.com>", "a b@example.com", "@example.com", "ana"],
    "birthdate": [
        *("1981-02-29", "29/02/1980", "0", "1980-2-9", "1980-02-29T00:00:00", "１980-02-29", "0000-01-01")
    ],
    "enrollment": [1, 1.5, True, [], {}],
    "address": ["Rua", 1, []],
    "firstName": [f"A{odd}na" for odd in "\x00\x1f\x7f\x85\ud800"],
    "rg": [f"4{odd}1" for odd in "\u061c\u200e\u200f\u2028\u202a\u202e\u2066\u2069"],  # which turn the text
}


@pytest.mark.parametrize(
    ("field", "value"), [(field, each) for field, values in INVALID.items() for each in values]
)
def test_a_value_outside_the_rule_of_its_field_is_named_by_it(field, value):
    assert list(reasons(field, value)) == [field]


def test_a_control_character_is_called_one_and_a_long_address_is_not_looked_into():
    assert reasons("firstName", "A\x00na") == {"firstName": "Must not contain control characters"}
    marks = "".join(mark * 8_000 for mark in "\u0345\u0301\u0327\u0338")
    assert reasons("email", f"a{marks}@example.com") == {"email": "Must have at most 255 characters"}


def test_the_mask_of_a_cpf_hides_whatever_is_none():
    assert mask_cpf("12345678901") == "***.456.789-**"
    for text in ("1234567890", "123.456.789-01", "Ana Maria S", "١٢٣٤٥٦٧٨٩٠١", "1234567890²"):
        assert mask_cpf(text) == "***"
