"""Bearer tokens: the keys that check them, the checks, and issuing them for a trial.

The contract leaves open how a token is obtained and what it claims ("Authentication"). Demanded here are
an expiry that is not far away and a subject: every evidence record carries who asked for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal, Self
from uuid import uuid4

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from pydantic import BaseModel, ConfigDict, FiniteFloat

from toolkit.contract.deadlines import Clock, wall_clock
from toolkit.contract.people import NAME_MAX, TokenScope, is_plain_name
from toolkit.errors import SettingsError
from toolkit.message import Message
from toolkit.settings import Settings

Algorithm = Literal["HS256", "RS256", "ES256"]
PublicKey = RSAPublicKey | EllipticCurvePublicKey

SECRET_MIN_BYTES: Final = 32
"""An HS256 secret shorter than its hash can be guessed from one token (RFC 7518, section 3.2)."""

SECRET_MIN_VARIETY: Final = 8
"""Different bytes in a secret; 32 random hexadecimal digits practically always have more."""

RSA_MIN_BITS: Final = 2048

MAKE_A_SECRET: Final = Message("Make one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'")

_SECRET: Final = "TOOLKIT_JWT_SECRET"  # noqa: S105  # the name of a variable
_PUBLIC: Final = "TOOLKIT_JWT_PUBLIC_KEY"
_SET: Final = "TOOLKIT_JWT_JWKS"


@dataclass(frozen=True, slots=True)
class Key:
    """One key with the one algorithm that it is for."""

    algorithm: Algorithm
    value: str | bytes | PublicKey = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenKeys:
    """The keys by their ids (``kid``); the algorithm follows from the key, never from the token.

    A key without an id checks tokens that name none, and where it is the only one all others, too.
    """

    by_id: Mapping[str | None, Key]

    @classmethod
    def from_settings(cls, settings: Settings) -> TokenKeys:
        """Return the keys that the environment gives.

        Raises:
            SettingsError: there is none, there are two sources, or a key is weak or unreadable.
        """
        sources = {_SECRET: settings.jwt_secret, _PUBLIC: settings.jwt_public_key, _SET: settings.jwt_jwks}
        if sum(value is not None for value in sources.values()) != 1:
            raise SettingsError(
                "The keys that check bearer tokens come from one variable: set exactly one of {} (HS256), {} "
                "(RS256 or ES256, PEM) and {} (a file with a JSON Web Key Set). {}",
                _SECRET,
                _PUBLIC,
                _SET,
                MAKE_A_SECRET,
            )
        if settings.jwt_secret is not None:
            return cls({None: _key(settings.jwt_secret, _SECRET)})
        if settings.jwt_public_key is not None:
            return cls({None: _key(_from_pem(settings.jwt_public_key), _PUBLIC)})
        assert settings.jwt_jwks is not None
        return cls(_key_set(settings.jwt_jwks))

    def of(self, key_id: str | None) -> Key | None:
        """Return the key for a token that names this id, or none."""
        return self.by_id.get(None if self.by_id.keys() == {None} else key_id)

    def signing(self) -> tuple[str | None, Key] | None:
        """Return the first secret and its id, to sign with; ``None`` where there are public keys only."""
        secrets = [(key_id, key) for key_id, key in self.by_id.items() if key.algorithm == "HS256"]
        return min(secrets, key=lambda each: each[0] is not None, default=None)


def _key(value: object, name: str) -> Key:
    """Return the key, with the one algorithm that it is for, unless it protects nothing."""
    match value:
        case str() | bytes():
            _check_secret(value, name)
            return Key("HS256", value)
        case RSAPublicKey() if value.key_size >= RSA_MIN_BITS:
            return Key("RS256", value)
        case EllipticCurvePublicKey(curve=SECP256R1()):
            return Key("ES256", value)
    raise SettingsError(
        "{} must be a public RSA key of {} bits or more (RS256) or a public P-256 key (ES256)", name, RSA_MIN_BITS
    )


def _check_secret(secret: str | bytes, name: str) -> None:
    content = secret.encode() if isinstance(secret, str) else secret
    try:
        jwt.get_algorithm_by_name("HS256").prepare_key(secret)
    except jwt.InvalidKeyError:
        raise SettingsError(
            "{} looks like a public key, which is no secret; {} is for those", name, _PUBLIC
        ) from None
    if len(content) < SECRET_MIN_BYTES or len(set(content)) < SECRET_MIN_VARIETY:
        raise SettingsError(
            "{} can be guessed: it needs at least {} bytes, {} of them different. {}",
            name,
            SECRET_MIN_BYTES,
            SECRET_MIN_VARIETY,
            MAKE_A_SECRET,
        )


def _from_pem(pem: str) -> object:
    try:
        # Line breaks often reach an environment variable as the two characters \n.
        return load_pem_public_key(pem.replace("\\n", "\n").encode())
    except (ValueError, UnsupportedAlgorithm):
        raise SettingsError("{} is not a public key in PEM form (-----BEGIN PUBLIC KEY-----)", _PUBLIC) from None


def _key_set(path: Path) -> dict[str | None, Key]:
    try:
        given = jwt.PyJWKSet.from_json(path.read_text("utf-8"))
    except OSError as error:
        raise SettingsError("{}: {} cannot be read: {}", _SET, path, error.strerror) from None
    except (jwt.PyJWTError, ValueError, TypeError, AttributeError, RecursionError):
        raise SettingsError("{}: {} is not a JSON Web Key Set with a usable key", _SET, path) from None
    keys: dict[str | None, Key] = {}
    for each in given.keys:
        name = f"{_SET}: key {each.key_id} of {path}"
        if each.public_key_use not in (None, "sig"):
            continue
        if each.key_id in keys:
            raise SettingsError("{}: several keys have this kid, or none", name)
        keys[each.key_id] = _key(each.key, name)
        if each.algorithm_name != keys[each.key_id].algorithm:
            raise SettingsError("{} is for another algorithm than HS256, RS256 or ES256", name)
    if not keys:
        raise SettingsError("{}: {} is not a JSON Web Key Set with a usable key", _SET, path)
    return keys


CLOCK_SKEW: Final = 5
"""Seconds by which an issuer's clock may be ahead: a fresh token is not refused as not yet valid."""

ALL_SCOPES: Final = frozenset(TokenScope)


class InvalidToken(Exception):
    """The token is not valid; the text says why to its bearer and repeats nothing of it."""


_NOT_VALID: Final = "The bearer token is not valid"
_EXPIRED: Final = "The bearer token has expired"
_NO_NAME: Final = "The bearer token names no usable subject, partner or id"


@dataclass(frozen=True, slots=True)
class Bearer:
    """The claims of a verified token: times in seconds since 1970, ``None`` for a claim that is not there."""

    subject: str
    expires: float
    issued: float | None = None
    token_id: str | None = None
    partner: str | None = None
    scopes: frozenset[str] = ALL_SCOPES


class _Claims(BaseModel):
    """The claims that are read, of exactly their types; ``TOOLKIT_JWT_PARTNER_CLAIM`` names one more."""

    model_config = ConfigDict(strict=True, hide_input_in_errors=True)

    sub: str
    exp: FiniteFloat
    iat: FiniteFloat | None = None
    nbf: FiniteFloat | None = None
    jti: str | None = None
    scope: str | list[str] | None = None

    @property
    def scopes(self) -> frozenset[str]:
        """A token without a scope may be used for everything that the contract describes."""
        if self.scope is None:
            return ALL_SCOPES
        return frozenset(self.scope.split() if isinstance(self.scope, str) else self.scope)


@dataclass(frozen=True, slots=True)
class TokenChecks:
    """The keys, the settings that say what tokens must claim, and the clock that judges their times."""

    keys: TokenKeys
    settings: Settings
    clock: Clock

    @classmethod
    def from_settings(cls, settings: Settings, clock: Clock = wall_clock) -> Self:
        """Read the checks from the settings; raises ``SettingsError`` as ``TokenKeys.from_settings`` does."""
        return cls(TokenKeys.from_settings(settings), settings, clock)

    def bearer_of(self, token: str) -> Bearer:
        """Check a token, and return the subject, the scopes and the expiry that it claims.

        Raises:
            InvalidToken: malformed, wrongly signed, of another algorithm, expired, not yet valid, without expiry
                or subject, longer valid than allowed, or for another audience or issuer than configured.
        """
        try:
            return self._bearer(self._claims(token))
        except (jwt.PyJWTError, ValueError, TypeError, ArithmeticError, RecursionError):
            raise InvalidToken(_NOT_VALID) from None

    def check_expiry(self, bearer: Bearer) -> None:
        """Refuse a token from the second on in which it expires: the leeway for clocks is only for its start."""
        if bearer.expires <= self.clock().timestamp():
            raise InvalidToken(_EXPIRED)

    def _claims(self, token: str) -> Mapping[str, Any]:
        key = self._key(token)
        audience = self.settings.jwt_audience
        claims: Mapping[str, Any] = jwt.decode(
            token,
            key.value,
            algorithms=[key.algorithm],
            audience=audience,
            issuer=self.settings.jwt_issuer,
            options={
                "require": ["exp", "sub"],
                "verify_aud": audience is not None,
                # PyJWT would judge times by the wall clock; they are judged below, by the clock that was given.
                "verify_exp": False,
                "verify_iat": False,
                "verify_nbf": False,
            },
        )
        return claims

    def _key(self, token: str) -> Key:
        key = self.keys.of(jwt.get_unverified_header(token).get("kid"))
        if key is None:
            raise InvalidToken("The bearer token is signed with a key that is not known here")
        return key

    def _bearer(self, claims: Mapping[str, Any]) -> Bearer:
        found = _Claims.model_validate(claims)
        partner = self.settings.jwt_partner_claim
        names = [found.sub, *([claims[partner]] if partner in claims else ())]
        names += [] if found.jti is None else [found.jti]
        # An empty claim says that the subject acts for no partner; it does not make the subject one.
        if not all(isinstance(name, str) and is_plain_name(name) for name in names):
            raise InvalidToken(_NO_NAME)
        bearer = Bearer(found.sub, found.exp, found.iat, found.jti, claims.get(partner), found.scopes)
        self.check_expiry(bearer)
        now, longest = self.clock().timestamp(), self.settings.jwt_max_ttl + CLOCK_SKEW
        if max(found.iat or 0, found.nbf or 0) > now + CLOCK_SKEW:
            raise InvalidToken(_NOT_VALID)
        if found.exp > now + longest or (found.iat is not None and found.exp > found.iat + longest):
            raise InvalidToken(f"The bearer token is valid for longer than {self.settings.jwt_max_ttl} seconds")
        return bearer


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token, and the id under which it can be revoked."""

    text: str = field(repr=False)
    id: str
    expires_at: datetime


def issue(
    settings: Settings,
    subject: str,
    ttl: timedelta,
    now: datetime,
    *,
    partner: str | None = None,
    scopes: Sequence[TokenScope] = (),
) -> IssuedToken:
    """Sign a token with ``TOOLKIT_JWT_SECRET``, or with the first secret of ``TOOLKIT_JWT_JWKS``.

    Without ``scopes`` it may be used for everything.

    Raises:
        SettingsError: there is no secret to sign with (whoever holds the private key of a public one issues its
            tokens), the name of the subject or partner cannot be used, or it would live for too long.
    """
    signing = TokenKeys.from_settings(settings).signing()
    if signing is None:
        raise SettingsError("Tokens are signed with {}, which is not set. {}", _SECRET, MAKE_A_SECRET)
    for what, name in (("subject", subject), ("partner", partner)):
        if name is not None and not is_plain_name(name):
            raise SettingsError(
                "The {} must be plain text of 1 to {} characters, such as partner-a, without control or "
                "text-direction characters",
                what,
                NAME_MAX,
            )
    if ttl.total_seconds() > settings.jwt_max_ttl:
        raise SettingsError("A token may live for {} seconds at most (TOOLKIT_JWT_MAX_TTL)", settings.jwt_max_ttl)
    key_id, key = signing
    claims: dict[str, Any] = {"sub": subject, "iat": now, "exp": now + ttl, "jti": str(uuid4())}
    if partner is not None:
        claims[settings.jwt_partner_claim] = partner
    if scopes:
        claims["scope"] = " ".join(scopes)
    if settings.jwt_audience is not None:
        claims["aud"] = settings.jwt_audience
    if settings.jwt_issuer is not None:
        claims["iss"] = settings.jwt_issuer
    assert isinstance(key.value, str | bytes)
    headers = None if key_id is None else {"kid": key_id}
    text = jwt.encode(claims, key.value, algorithm=key.algorithm, headers=headers)
    return IssuedToken(text, claims["jti"], now + ttl)
