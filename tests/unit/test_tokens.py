"""Tokens are accepted and refused under each kind of key, and so are the keys."""

from datetime import timedelta
from functools import partial

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from tests.conftest import SettableClock
from tests.support.crafted_keys import claims as crafted_claims
from tests.support.crafted_keys import private_pem, public_pem, signed, token
from toolkit.errors import SettingsError
from toolkit.evidence.access import is_revoked
from toolkit.http.tokens import CLOCK_SKEW, Bearer, InvalidToken, TokenChecks, issue
from toolkit.settings import Settings

SECRET = "not-a-secret-but-long-enough-for-tests"
RSA = rsa.generate_private_key(65537, 2048)
P256 = ec.generate_private_key(ec.SECP256R1())

CLOCK = SettableClock()
NOW = int(CLOCK().timestamp())
claims = partial(crafted_claims, now=NOW)


def key(**environ):
    return TokenChecks(Settings.from_environment(environ), CLOCK)


HS256 = key(TOOLKIT_JWT_SECRET=SECRET)
RS256 = key(TOOLKIT_JWT_PUBLIC_KEY=public_pem(RSA))
ES256 = key(TOOLKIT_JWT_PUBLIC_KEY=public_pem(P256))
STRICT = key(TOOLKIT_JWT_SECRET=SECRET, TOOLKIT_JWT_AUDIENCE="sales", TOOLKIT_JWT_ISSUER="https://issuer")
NAMED = {"aud": "sales", "iss": "https://issuer"}

GOOD = {
    "HS256": (HS256, token(claims(), SECRET)),
    "RS256": (RS256, signed(claims(), RSA)),
    "ES256": (ES256, signed(claims(), P256)),
    "fraction": (HS256, token(claims(exp=NOW + 86_399.5), SECRET)),
    "fast clock": (HS256, token(claims(iat=NOW + CLOCK_SKEW - 1, nbf=NOW + CLOCK_SKEW - 1), SECRET)),
    "nothing configured": (HS256, token(claims(aud="somebody", iss="someone"), SECRET)),
    "no iat": (HS256, token(claims(iat=None), SECRET, kid="key-1")),
    "audience": (STRICT, token(claims(**NAMED), SECRET)),
    "audience among others": (STRICT, token(claims(**NAMED | {"aud": ["sales", "other"]}), SECRET)),
}


@pytest.mark.parametrize(("checked_with", "good"), GOOD.values(), ids=GOOD)
def test_a_good_token_names_its_bearer(checked_with, good):
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
    "exp is infinite": token(b'{"sub": "a", "exp": Infinity}', SECRET),
    "exp is no number": token(b'{"sub": "a", "exp": NaN}', SECRET),
    "exp is too large for a float": token(claims(exp=10**400), SECRET),
    "exp is in two days": token(claims(iat=None, exp=NOW + 2 * 86_400), SECRET),
    "exp is two days after iat": token(claims(iat=NOW - 86_400 - 60, exp=NOW + 60), SECRET),
    "iat is too large for a float": token(claims(iat=-(10**400)), SECRET),
    "not yet valid": token(claims(nbf=NOW + 86_400), SECRET),
    "issued tomorrow": token(claims(iat=NOW + 86_400), SECRET),
    "no subject": token(claims(sub=None), SECRET),
    "subject is a number": token(claims(sub=7), SECRET),
    "subject is blank": token(claims(sub="  "), SECRET),
    "subject is of two lines": token(claims(sub="partner\u2028a"), SECRET),
    "partner is a number": token(claims(partner=7), SECRET),
    "partner is null": token({**claims(), "partner": None}, SECRET),
    "partner is a list": token(claims(partner=["Luz"]), SECRET),
    "partner is blank": token(claims(partner=" "), SECRET),
    "partner holds what nobody sees": token(claims(partner="Luz\u200b"), SECRET),
    "id is a number": token(claims(jti=7), SECRET),
    "id holds what nobody sees": token(claims(jti="a\u200b"), SECRET),
    "scope is a number": token(claims(scope=7), SECRET),
    "scope is a list of numbers": token(claims(scope=[7]), SECRET),
    "subject holds half a character": token(claims(sub="a\ud800"), SECRET),
    "another secret": token(claims(), SECRET + "x"),
    "alg none": jwt.encode(claims(), None, "none"),
    "alg none with a signature": token(claims(), SECRET, alg="none"),
    "HS384": token(claims(), SECRET, alg="HS384"),
    "RS256": signed(claims(), RSA),
    "ES256": signed(claims(), P256),
    "claims are a list": token([1], SECRET),
    "claims are deep": token(b'{"a":' * 100_000, SECRET),
    "critical header": token(claims(), SECRET, crit=["exp"]),
}


REFUSED = {name: (HS256, bad) for name, bad in BAD.items()} | {
    "a public RSA key as the secret": (RS256, token(claims(), public_pem(RSA))),
    "a public RSA key as the secret under another name": (RS256, token(claims(), public_pem(RSA), alg="RS256")),
    "a public RSA key as the secret without its last line break": (
        RS256,
        token(claims(), public_pem(RSA).strip()),
    ),
    "a public P-256 key as the secret": (ES256, token(claims(), public_pem(P256))),
    "another RSA key": (RS256, signed(claims(), rsa.generate_private_key(65537, 2048))),
    "another P-256 key": (ES256, signed(claims(), ec.generate_private_key(ec.SECP256R1()))),
    "RS512": (RS256, signed(claims(), RSA, alg="RS512")),
    "RS256 for a P-256 key": (ES256, signed(claims(), RSA)),
    "alg none for an RSA key": (RS256, jwt.encode(claims(), None, "none")),
    "HS256 for an RSA key": (RS256, token(claims(), SECRET)),
    "another audience": (STRICT, token(claims(**NAMED | {"aud": "other"}), SECRET)),
    "a list of other audiences": (STRICT, token(claims(**NAMED | {"aud": ["other"]}), SECRET)),
    "no audience": (STRICT, token(claims(iss="https://issuer"), SECRET)),
    "another issuer": (STRICT, token(claims(**NAMED | {"iss": "https://evil"}), SECRET)),
    "no issuer": (STRICT, token(claims(aud="sales"), SECRET)),
}


@pytest.mark.parametrize(("checked_with", "bad"), REFUSED.values(), ids=REFUSED)
def test_a_bad_token_is_refused(checked_with, bad):
    with pytest.raises(InvalidToken):
        checked_with.bearer_of(bad)


def test_a_verified_token_is_refused_from_the_second_of_its_expiry_on():
    HS256.check_expiry(Bearer(sub="partner-a", exp=NOW + 0.001))
    with pytest.raises(InvalidToken, match="expired"):
        HS256.check_expiry(Bearer(sub="partner-a", exp=NOW))


def test_a_token_says_what_it_may_be_used_for():
    def scopes(**changes):
        return HS256.bearer_of(token(claims(**changes), SECRET)).scopes

    assert scopes() == {"clients:register", "evidence:request"}
    assert scopes(scope="evidence:request openid") == {"evidence:request", "openid"}
    assert scopes(scope=["clients:register"]) == {"clients:register"}
    assert scopes(scope="") == frozenset()


def test_the_partner_is_named_by_the_claim_that_is_configured():
    sent = token(claims(partner="A", tenant="B"), SECRET)
    assert key(TOOLKIT_JWT_SECRET=SECRET, TOOLKIT_JWT_PARTNER_CLAIM="tenant").bearer_of(sent).partner == "B"


REFUSED_KEYS = [
    ({"SECRET": SECRET, "PUBLIC_KEY": public_pem(RSA)}, "set either"),
    ({"SECRET": "x" * 31}, "at least 32 bytes"),
    ({"SECRET": "abcacbbbacbacbabcabcbacbacbabcabcbacb"}, "can be guessed"),
    ({"SECRET": public_pem(RSA)}, "TOOLKIT_JWT_PUBLIC_KEY"),
    ({"SECRET": "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ"}, "TOOLKIT_JWT_PUBLIC_KEY"),
    ({"PUBLIC_KEY": "hello"}, "PEM"),
    ({"PUBLIC_KEY": private_pem(RSA)}, "PEM"),
    ({"PUBLIC_KEY": public_pem(rsa.generate_private_key(65537, 1024))}, "2048"),
    ({"PUBLIC_KEY": public_pem(ec.generate_private_key(ec.SECP384R1()))}, "P-256"),
    ({"PUBLIC_KEY": public_pem(ed25519.Ed25519PrivateKey.generate())}, "P-256"),
]


@pytest.mark.parametrize(("environ", "hint"), REFUSED_KEYS)
def test_a_key_that_protects_nothing_is_refused_with_a_hint(environ, hint):
    with pytest.raises(SettingsError, match=hint) as refusal:
        key(**{f"TOOLKIT_JWT_{name}": value for name, value in environ.items()})

    for value in environ.values():
        assert value not in str(refusal.value)


def test_an_issued_token_has_an_id_and_tells_its_life():
    issued = issue(HS256.settings, "crm-7", timedelta(seconds=60), CLOCK())
    bearer = HS256.bearer_of(issued.text)
    assert (bearer.token_id, bearer.issued, bearer.expires) == (issued.id, NOW, NOW + 60)
    assert SECRET not in repr(HS256)


@pytest.mark.parametrize(
    ("environ", "subject", "hint"),
    [
        ({"TOOLKIT_JWT_SECRET": SECRET, "TOOLKIT_JWT_MAX_TTL": "59"}, "partner-a", "59 seconds"),
        ({"TOOLKIT_JWT_PUBLIC_KEY": public_pem(RSA)}, "partner-a", "TOOLKIT_JWT_SECRET"),
        *(({"TOOLKIT_JWT_SECRET": SECRET}, name, "subject") for name in ("", " ", "a\0b", "x" * 201, "a\u202eb")),
    ],
)
def test_no_token_is_issued_that_would_be_refused(environ, subject, hint):
    with pytest.raises(SettingsError, match=hint):
        issue(Settings.from_environment(environ), subject, timedelta(seconds=60), CLOCK())


@pytest.mark.parametrize(("issued", "is_refused"), [(99.0, True), (100.0, True), (100.5, False), (None, True)])
def test_a_revoked_subject_s_tokens_are_refused_up_to_the_moment_of_the_revocation(issued, is_refused):
    assert is_revoked({(None, "crm-7"): 100.0}, None, "crm-7", issued) is is_refused


def test_the_algorithm_follows_from_the_key_and_never_from_the_token(monkeypatch):
    accepted = []
    monkeypatch.setattr(jwt, "decode", lambda *_, algorithms, **__: accepted.append(algorithms) or claims())
    for alg in ("HS256", "RS256", "none"):
        HS256.bearer_of(token(claims(), SECRET, alg=alg))

    assert accepted == [["HS256"]] * 3
