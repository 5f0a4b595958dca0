"""Which tokens open the door, under each kind of key, and which keys are taken."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.crafted_tokens import claims, private_pem, public_pem, signed, token, unsigned
from toolkit.entrypoints.tokens import CLOCK_SKEW, Bearer, InvalidToken, TokenKey, issue
from toolkit.errors import SettingsError
from toolkit.settings import Settings

SECRET = "not-a-secret-but-long-enough-for-tests"
RSA = rsa.generate_private_key(65537, 2048)
P256 = ec.generate_private_key(ec.SECP256R1())

NOW = int(time.time())


def key(**environ: str) -> TokenKey:
    return TokenKey.from_settings(Settings.from_environment(environ))


HS256 = key(TOOLKIT_JWT_SECRET=SECRET)
RS256 = key(TOOLKIT_JWT_PUBLIC_KEY=public_pem(RSA))
ES256 = key(TOOLKIT_JWT_PUBLIC_KEY=public_pem(P256))


@pytest.mark.parametrize(
    ("checked_with", "good"),
    [
        (HS256, token(claims(), SECRET)),
        (RS256, signed(claims(), RSA)),
        (ES256, signed(claims(), P256)),
        (HS256, token(claims(exp=NOW + 86_400.5), SECRET)),
        (HS256, token(claims(iat=NOW + CLOCK_SKEW - 1, nbf=NOW + CLOCK_SKEW - 1), SECRET)),
        (HS256, token(claims(aud="somebody", iss="someone"), SECRET)),
        (HS256, token(claims(iat=None), SECRET, kid="key-1")),
    ],
    ids=["HS256", "RS256", "ES256", "fraction", "fast clock", "nothing configured", "no iat"],
)
def test_a_good_token_names_its_bearer(checked_with: TokenKey, good: str) -> None:
    assert checked_with.bearer_of(good).subject == "partner-a"


BAD = {
    "empty": "",
    "no token": "hello",
    "two parts": "a.b",
    "four parts": token(claims(), SECRET) + ".x",
    "not base64": "€.€.€",
    "expired": token(claims(exp=NOW - 1), SECRET),
    "expired at 1970": token(claims(exp=0), SECRET),
    "no exp": token(claims(exp=None), SECRET),
    "exp is text": token(claims(exp=str(NOW + 86_400)), SECRET),
    "exp is true": token(claims(exp=True), SECRET),
    "exp is a list": token(claims(exp=[NOW + 86_400]), SECRET),
    "exp is infinite": token(b'{"sub": "a", "exp": Infinity}', SECRET),
    "exp is no number": token(b'{"sub": "a", "exp": NaN}', SECRET),
    "not yet valid": token(claims(nbf=NOW + 86_400), SECRET),
    "issued tomorrow": token(claims(iat=NOW + 86_400), SECRET),
    "no subject": token(claims(sub=None), SECRET),
    "subject is a number": token(claims(sub=7), SECRET),
    "subject is blank": token(claims(sub="  "), SECRET),
    "subject is too long": token(claims(sub="x" * 201), SECRET),
    "subject holds NUL": token(claims(sub="a\0b"), SECRET),
    "subject holds half a character": token(claims(sub="a\ud800"), SECRET),
    "another secret": token(claims(), SECRET + "x"),
    "alg none": unsigned(claims()),
    "alg None": unsigned(claims(), "None"),
    "no alg": unsigned(claims(), ""),
    "alg none with a signature": token(claims(), SECRET, alg="none"),
    "HS384": token(claims(), SECRET, alg="HS384"),
    "HS512": token(claims(), SECRET, alg="HS512"),
    "RS256": signed(claims(), RSA),
    "ES256": signed(claims(), P256),
    "claims are a list": token([1], SECRET),
    "claims are deep": token(b'{"a":' * 100_000, SECRET),
    "critical header": token(claims(), SECRET, crit=["exp"]),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_bad_token_opens_nothing(bad: str) -> None:
    with pytest.raises(InvalidToken):
        HS256.bearer_of(bad)


@pytest.mark.parametrize(
    ("checked_with", "bad"),
    [
        (RS256, token(claims(), public_pem(RSA))),
        (RS256, token(claims(), public_pem(RSA), alg="RS256")),
        (RS256, token(claims(), public_pem(RSA).strip())),
        (ES256, token(claims(), public_pem(P256))),
        (RS256, signed(claims(), rsa.generate_private_key(65537, 2048))),
        (ES256, signed(claims(), ec.generate_private_key(ec.SECP256R1()))),
        (RS256, signed(claims(), RSA, alg="RS512")),
        (ES256, signed(claims(), RSA)),
        (RS256, unsigned(claims())),
        (RS256, token(claims(), SECRET)),
    ],
)
def test_a_public_key_is_never_taken_for_a_secret(checked_with: TokenKey, bad: str) -> None:
    with pytest.raises(InvalidToken):
        checked_with.bearer_of(bad)


@pytest.mark.parametrize(
    ("names", "good"),
    [
        ({"aud": "sales"}, True),
        ({"aud": ["sales", "other"]}, True),
        ({"aud": "other"}, False),
        ({"aud": ["other"]}, False),
        ({"aud": None}, False),
        ({"aud": "sales", "iss": "https://evil"}, False),
        ({"aud": "sales", "iss": None}, False),
        ({"aud": 7}, False),
    ],
)
def test_audience_and_issuer_are_asked_for_where_they_are_configured(names: dict[str, Any], good: bool) -> None:
    strict = key(TOOLKIT_JWT_SECRET=SECRET, TOOLKIT_JWT_AUDIENCE="sales", TOOLKIT_JWT_ISSUER="https://issuer")
    sent = token(claims(**{"iss": "https://issuer", **names}), SECRET)

    if good:
        assert strict.bearer_of(sent).subject == "partner-a"
    else:
        with pytest.raises(InvalidToken):
            strict.bearer_of(sent)


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_whatever_is_sent_instead_of_a_token_is_refused(text: str) -> None:
    with pytest.raises(InvalidToken):
        HS256.bearer_of(text)


@given(
    st.dictionaries(
        st.sampled_from(["exp", "nbf", "iat", "sub", "aud", "iss", "jti"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: st.lists(inner, max_size=2),
        ),
    )
)
def test_whatever_a_signed_token_claims_it_is_taken_or_refused(payload: dict[str, Any]) -> None:
    with suppress(InvalidToken):
        assert HS256.bearer_of(token(payload, SECRET)).subject == payload["sub"]


def test_a_verified_token_is_refused_from_the_second_of_its_expiry_on() -> None:
    Bearer("partner-a", time.time() + 60).check()
    with pytest.raises(InvalidToken, match="expired"):
        Bearer("partner-a", time.time()).check()


SHORT = {"TOOLKIT_JWT_SECRET": "x" * 31}
REFUSED_KEYS = {
    "none": ({}, "no key"),
    "short secret": (SHORT, "at least 32 bytes"),
    "public key as secret": ({"TOOLKIT_JWT_SECRET": public_pem(RSA)}, "TOOLKIT_JWT_PUBLIC_KEY"),
    "ssh key as secret": (
        {"TOOLKIT_JWT_SECRET": "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ"},
        "TOOLKIT_JWT_PUBLIC_KEY",
    ),
    "both": ({"TOOLKIT_JWT_SECRET": SECRET, "TOOLKIT_JWT_PUBLIC_KEY": public_pem(RSA)}, "unset"),
    "no PEM": ({"TOOLKIT_JWT_PUBLIC_KEY": "hello"}, "PEM"),
    "private key": ({"TOOLKIT_JWT_PUBLIC_KEY": private_pem(RSA)}, "private"),
    "short RSA": ({"TOOLKIT_JWT_PUBLIC_KEY": public_pem(rsa.generate_private_key(65537, 1024))}, "2048"),
    "another curve": (
        {"TOOLKIT_JWT_PUBLIC_KEY": public_pem(ec.generate_private_key(ec.SECP384R1()))},
        "P-256",
    ),
    "Ed25519": ({"TOOLKIT_JWT_PUBLIC_KEY": public_pem(ed25519.Ed25519PrivateKey.generate())}, "P-256"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("environ", "hint"), REFUSED_KEYS.values(), ids=REFUSED_KEYS)
def test_a_key_that_protects_nothing_is_refused_with_a_hint(environ: dict[str, str], hint: str) -> None:
    with pytest.raises(SettingsError, match=hint) as refusal:
        key(**environ)

    for value in environ.values():
        assert value not in str(refusal.value)


def test_line_breaks_of_a_public_key_may_be_written_as_backslash_n() -> None:
    assert key(TOOLKIT_JWT_PUBLIC_KEY=public_pem(P256).replace("\n", "\\n")).algorithm == "ES256"


def test_keys_do_not_show_in_texts() -> None:
    assert SECRET not in repr(HS256)


def test_an_issued_token_is_good_until_its_time_is_over() -> None:
    settings = Settings.from_environment(
        {"TOOLKIT_JWT_SECRET": SECRET, "TOOLKIT_JWT_AUDIENCE": "sales", "TOOLKIT_JWT_ISSUER": "us"}
    )
    now = datetime.now(UTC).replace(microsecond=0)

    bearer = TokenKey.from_settings(settings).bearer_of(issue(settings, "partner-a", timedelta(seconds=60), now))

    assert bearer == Bearer("partner-a", now.timestamp() + 60)


@pytest.mark.parametrize("subject", ["", " ", "a\0b", "x" * 201])
def test_no_token_is_issued_to_a_subject_that_could_not_use_it(subject: str) -> None:
    settings = Settings.from_environment({"TOOLKIT_JWT_SECRET": SECRET})
    with pytest.raises(SettingsError, match="subject"):
        issue(settings, subject, timedelta(seconds=60), datetime.now(UTC))


def test_tokens_are_issued_with_the_secret_only() -> None:
    settings = Settings.from_environment({"TOOLKIT_JWT_PUBLIC_KEY": public_pem(RSA)})
    with pytest.raises(SettingsError, match="TOOLKIT_JWT_SECRET"):
        issue(settings, "partner-a", timedelta(seconds=60), datetime.now(UTC))
