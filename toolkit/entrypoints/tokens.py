"""Bearer tokens: which key they are checked with, what makes one valid, and issuing them for a trial.

The contract leaves open how a token is obtained and what it claims ("Authentication"). Demanded here are
an expiry and a subject: every evidence record carries who asked for it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from toolkit.domain.fields import UNSTORABLE
from toolkit.errors import SettingsError
from toolkit.settings import Settings

Algorithm = Literal["HS256", "RS256", "ES256"]
PublicKey = RSAPublicKey | EllipticCurvePublicKey

SECRET_MIN_BYTES: Final = 32
"""An HS256 secret shorter than its hash can be guessed from one token (RFC 7518, section 3.2)."""

RSA_MIN_BITS: Final = 2048

SUBJECT_MAX: Final = 200
"""Characters in a subject: it names a partner's system and is stored with every record."""

CLOCK_SKEW: Final = 5
"""Seconds by which an issuer's clock may be ahead: a fresh token is not refused as not yet valid."""

_MAKE_A_SECRET: Final = "Make one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'"  # noqa: S105  # advice


class InvalidToken(Exception):
    """The token does not open the door; the text says why to its bearer and repeats nothing of it."""


@dataclass(frozen=True, slots=True)
class Bearer:
    """The subject of a verified token and its expiry, in seconds since 1970."""

    subject: str
    expires: float

    def check(self) -> None:
        """Refuse a token from the second on in which it expires: clocks that differ only excuse its start."""
        if self.expires <= time.time():
            raise InvalidToken("The bearer token has expired")


@dataclass(frozen=True, slots=True)
class TokenKey:
    """One key with the one algorithm that it is for, and what tokens must name where that is configured.

    The algorithm follows from the configuration, never from the token.
    """

    algorithm: Algorithm
    key: str | PublicKey = field(repr=False)
    audience: str | None = None
    issuer: str | None = None

    @classmethod
    def from_settings(cls, settings: Settings) -> TokenKey:
        """The key that the environment gives.

        Raises:
            SettingsError: there is none, there are two, or it is weak or unreadable.
        """
        if settings.jwt_secret and settings.jwt_public_key:
            raise SettingsError(
                "TOOLKIT_JWT_SECRET and TOOLKIT_JWT_PUBLIC_KEY are both set; tokens are checked with one key: "
                "unset the other"
            )
        if settings.jwt_secret:
            return cls("HS256", _strong(settings.jwt_secret), settings.jwt_audience, settings.jwt_issuer)
        if settings.jwt_public_key:
            key = _public_key(settings.jwt_public_key)
            algorithm: Algorithm = "RS256" if isinstance(key, RSAPublicKey) else "ES256"
            return cls(algorithm, key, settings.jwt_audience, settings.jwt_issuer)
        raise SettingsError(
            "There is no key to check bearer tokens with: set TOOLKIT_JWT_SECRET (HS256) or "
            f"TOOLKIT_JWT_PUBLIC_KEY (RS256 or ES256, PEM). {_MAKE_A_SECRET}"
        )

    def bearer_of(self, token: str) -> Bearer:
        """Whose token it is, and until when.

        Raises:
            InvalidToken: malformed, wrongly signed, of another algorithm, expired, not yet valid, without expiry
                or subject, or for another audience or from another issuer than configured.
        """
        try:
            claims = jwt.decode(
                token,
                self.key,
                algorithms=[self.algorithm],
                audience=self.audience,
                issuer=self.issuer,
                leeway=CLOCK_SKEW,
                options={"require": ["exp", "sub"], "verify_aud": self.audience is not None},
            )
        except jwt.ExpiredSignatureError:
            raise InvalidToken("The bearer token has expired") from None
        except (jwt.PyJWTError, ValueError, TypeError, ArithmeticError, RecursionError):
            raise InvalidToken("The bearer token is not valid") from None
        bearer = Bearer(claims["sub"], _moment(claims["exp"]))
        if not _is_usable(bearer.subject):
            raise InvalidToken("The bearer token names no usable subject")
        bearer.check()
        return bearer


def issue(settings: Settings, subject: str, ttl: timedelta, now: datetime) -> str:
    """A token for trying the interface out, signed with ``TOOLKIT_JWT_SECRET``.

    Raises:
        SettingsError: there is no secret to sign with; whoever holds the private key of a public one issues its
            tokens.
    """
    if settings.jwt_secret is None:
        raise SettingsError(f"Tokens are signed with TOOLKIT_JWT_SECRET, which is not set. {_MAKE_A_SECRET}")
    key = TokenKey.from_settings(settings)
    if not _is_usable(subject):
        raise SettingsError(f"The subject must be plain text of 1 to {SUBJECT_MAX} characters, such as partner-a")
    claims: dict[str, Any] = {"sub": subject, "iat": now, "exp": now + ttl}
    if key.audience is not None:
        claims["aud"] = key.audience
    if key.issuer is not None:
        claims["iss"] = key.issuer
    return jwt.encode(claims, settings.jwt_secret, algorithm=key.algorithm)


def _strong(secret: str) -> str:
    try:
        jwt.get_algorithm_by_name("HS256").prepare_key(secret)
    except jwt.InvalidKeyError:
        raise SettingsError(
            "TOOLKIT_JWT_SECRET looks like a public key, which is no secret; TOOLKIT_JWT_PUBLIC_KEY is for those"
        ) from None
    if len(secret.encode()) < SECRET_MIN_BYTES:
        raise SettingsError(
            f"TOOLKIT_JWT_SECRET is too short to be safe: at least {SECRET_MIN_BYTES} bytes. {_MAKE_A_SECRET}"
        )
    return secret


def _public_key(pem: str) -> PublicKey:
    # Line breaks often reach an environment variable as the two characters \n.
    text = pem.replace("\\n", "\n")
    if "PRIVATE KEY" in text:
        raise SettingsError("TOOLKIT_JWT_PUBLIC_KEY holds a private key; give the public one, and renew this pair")
    try:
        key = load_pem_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise SettingsError(
            "TOOLKIT_JWT_PUBLIC_KEY is no public key in PEM form (-----BEGIN PUBLIC KEY-----)"
        ) from None
    if isinstance(key, RSAPublicKey) and key.key_size >= RSA_MIN_BITS:
        return key
    if isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1):
        return key
    raise SettingsError(
        f"TOOLKIT_JWT_PUBLIC_KEY must be an RSA key of {RSA_MIN_BITS} bits or more (RS256) or a P-256 key (ES256)"
    )


def _moment(exp: object) -> float:
    if isinstance(exp, bool) or not isinstance(exp, int | float):
        raise InvalidToken("The bearer token is not valid")
    return float(exp)


def _is_usable(subject: str) -> bool:
    return bool(subject.strip()) and len(subject) <= SUBJECT_MAX and not UNSTORABLE.search(subject)
