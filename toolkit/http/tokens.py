"""Bearer tokens: the key that checks them, the checks, and issuing them for a trial.

The contract leaves open how a token is obtained and what it claims ("Authentication"). Demanded here are
an expiry that is not far away and a subject: every evidence record carries who asked for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal
from uuid import uuid4

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

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


def key_of(settings: Settings) -> tuple[Algorithm, str | PublicKey]:
    """Return the one algorithm of bearer tokens, whatever a token says, and the key that checks them.

    Raises:
        SettingsError: there is no key, there are two, or it is weak or unreadable.
    """
    secret, pem = settings.jwt_secret, settings.jwt_public_key
    if secret is not None and pem is None:
        _check_secret(secret)
        return "HS256", secret
    if pem is not None and secret is None:
        try:
            # Line breaks often reach an environment variable as the two characters \n.
            public_key = load_pem_public_key(pem.replace("\\n", "\n").encode())
        except (ValueError, UnsupportedAlgorithm):
            raise SettingsError(
                "{} is not a public key in PEM form (-----BEGIN PUBLIC KEY-----)", _PUBLIC
            ) from None
        match public_key:
            case RSAPublicKey() if public_key.key_size >= RSA_MIN_BITS:
                return "RS256", public_key
            case EllipticCurvePublicKey(curve=SECP256R1()):
                return "ES256", public_key
        raise SettingsError(
            "{} must be a public RSA key of {} bits or more (RS256) or a public P-256 key (ES256)",
            _PUBLIC,
            RSA_MIN_BITS,
        )
    raise SettingsError(
        "The key that checks bearer tokens comes from one variable: set either {} (HS256) or {} (RS256 or "
        "ES256, PEM). {}",
        _SECRET,
        _PUBLIC,
        MAKE_A_SECRET,
    )


def _check_secret(secret: str) -> None:
    try:
        jwt.get_algorithm_by_name("HS256").prepare_key(secret)
    except jwt.InvalidKeyError:
        raise SettingsError(
            "{} looks like a public key, which is no secret; {} is for those", _SECRET, _PUBLIC
        ) from None
    content = secret.encode()
    if len(content) < SECRET_MIN_BYTES or len(set(content)) < SECRET_MIN_VARIETY:
        raise SettingsError(
            "{} can be guessed: it needs at least {} bytes, {} of them different. {}",
            _SECRET,
            SECRET_MIN_BYTES,
            SECRET_MIN_VARIETY,
            MAKE_A_SECRET,
        )


CLOCK_SKEW: Final = 5
"""Seconds by which an issuer's clock may be ahead: a fresh token is not refused as not yet valid."""


class InvalidToken(Exception):
    """The token is not valid; the text says why to its bearer and repeats nothing of it."""


_NOT_VALID: Final = "The bearer token is not valid"


class Bearer(BaseModel):
    """The claims of a verified token that are read, of exactly their types; times in seconds since 1970.

    ``partner`` is the claim that ``TOOLKIT_JWT_PARTNER_CLAIM`` names.
    """

    model_config = ConfigDict(strict=True, frozen=True, hide_input_in_errors=True)

    subject: str = Field(alias="sub")
    expires: FiniteFloat = Field(alias="exp")
    issued: FiniteFloat | None = Field(None, alias="iat")
    not_before: FiniteFloat | None = Field(None, alias="nbf")
    token_id: str | None = Field(None, alias="jti")
    partner: str | None = None
    scope: str | list[str] | None = None

    @property
    def scopes(self) -> frozenset[str]:
        """A token without a scope may be used for everything that the contract describes."""
        if self.scope is None:
            return frozenset(TokenScope)
        return frozenset(self.scope.split() if isinstance(self.scope, str) else self.scope)


class TokenChecks:
    """The checks of bearer tokens, by the settings and by the clock that judges their times."""

    def __init__(self, settings: Settings, clock: Clock = wall_clock) -> None:
        """Find the key; raises ``SettingsError`` as ``key_of`` does."""
        self.settings, self.clock = settings, clock
        self._algorithm, self._key = key_of(settings)

    def bearer_of(self, token: str) -> Bearer:
        """Check a token, and return the subject, the scopes and the expiry that it claims.

        Raises:
            InvalidToken: malformed, wrongly signed, of another algorithm, expired, not yet valid, without expiry
                or subject, longer valid than allowed, or for another audience or issuer than configured.
        """
        settings = self.settings
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key,
                algorithms=[self._algorithm],
                audience=settings.jwt_audience,
                issuer=settings.jwt_issuer,
                options={
                    "require": ["exp", "sub"],
                    "verify_aud": settings.jwt_audience is not None,
                    # PyJWT would judge times by the wall clock; they are judged by the clock that was given.
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                },
            )
            partner = claims.get(settings.jwt_partner_claim)
            bearer = Bearer.model_validate({**claims, "partner": partner})
        except (jwt.PyJWTError, ValueError, TypeError, ArithmeticError, RecursionError):
            raise InvalidToken(_NOT_VALID) from None
        # An empty claim says that the subject acts for no partner; it does not make the subject one.
        names = [bearer.subject, *([partner] if settings.jwt_partner_claim in claims else ())]
        names += [] if bearer.token_id is None else [bearer.token_id]
        if not all(name is not None and is_plain_name(name) for name in names):
            raise InvalidToken("The bearer token names no usable subject, partner or id")
        self.check_expiry(bearer)
        now, longest = self.clock().timestamp(), settings.jwt_max_ttl + CLOCK_SKEW
        if max(bearer.issued or 0, bearer.not_before or 0) > now + CLOCK_SKEW:
            raise InvalidToken(_NOT_VALID)
        ends, begins = bearer.expires, bearer.issued
        if ends > now + longest or (begins is not None and ends > begins + longest):
            raise InvalidToken(f"The bearer token is valid for longer than {settings.jwt_max_ttl} seconds")
        return bearer

    def check_expiry(self, bearer: Bearer) -> None:
        """Refuse a token from the second on in which it expires: the leeway for clocks is only for its start."""
        if bearer.expires <= self.clock().timestamp():
            raise InvalidToken("The bearer token has expired")


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
    """Sign a token with ``TOOLKIT_JWT_SECRET``.

    Without ``scopes`` it may be used for everything.

    Raises:
        SettingsError: there is no secret to sign with (whoever holds the private key of a public one issues its
            tokens), the name of the subject or partner cannot be used, or it would live for too long.
    """
    algorithm, key = key_of(settings)
    if not isinstance(key, str):
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
    claims: dict[str, Any] = {"sub": subject, "iat": now, "exp": now + ttl, "jti": str(uuid4())}
    optional = {settings.jwt_partner_claim: partner, "scope": " ".join(scopes) or None}
    optional |= {"aud": settings.jwt_audience, "iss": settings.jwt_issuer}
    claims |= {name: value for name, value in optional.items() if value is not None}
    text = jwt.encode(claims, key, algorithm=algorithm)
    return IssuedToken(text, claims["jti"], now + ttl)
