"""Whether a bearer token is valid, and what it says about its bearer."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import jwt

from toolkit.domain.partners import Scope, is_plain_name
from toolkit.entrypoints.tokens.keys import Key, TokenKeys
from toolkit.settings import Settings

CLOCK_SKEW: Final = 5
"""Seconds by which an issuer's clock may be ahead: a fresh token is not refused as not yet valid."""

ALL_SCOPES: Final = frozenset(Scope)


class InvalidToken(Exception):
    """The token is not valid; the text says why to its bearer and repeats nothing of it."""


_NOT_VALID: Final = "The bearer token is not valid"
_EXPIRED: Final = "The bearer token has expired"


@dataclass(frozen=True, slots=True)
class Bearer:
    """What a verified token says: times are seconds since 1970, ``None`` stands for a claim that is not there."""

    subject: str
    expires: float
    issued: float | None = None
    token_id: str | None = None
    partner: str | None = None
    scopes: frozenset[str] = ALL_SCOPES

    def check(self) -> None:
        """Refuse a token from the second on in which it expires: clocks that differ only excuse its start."""
        if self.expires <= time.time():
            raise InvalidToken(_EXPIRED)


@dataclass(frozen=True, slots=True)
class TokenChecks:
    """The keys, and what tokens must claim."""

    keys: TokenKeys
    max_seconds: int
    partner_claim: str
    audience: str | None = None
    issuer: str | None = None

    @classmethod
    def from_settings(cls, settings: Settings) -> TokenChecks:
        """What the environment demands; raises ``SettingsError`` as ``TokenKeys.from_settings`` does."""
        return cls(
            TokenKeys.from_settings(settings),
            settings.jwt_max_ttl,
            settings.jwt_partner_claim,
            settings.jwt_audience,
            settings.jwt_issuer,
        )

    def bearer_of(self, token: str) -> Bearer:
        """Whose token it is, what it may be used for, and until when.

        Raises:
            InvalidToken: malformed, wrongly signed, of another algorithm, expired, not yet valid, without expiry
                or subject, longer valid than allowed, or for another audience or issuer than configured.
        """
        try:
            return self._bearer(self._claims(token))
        except jwt.ExpiredSignatureError:
            raise InvalidToken(_EXPIRED) from None
        except (jwt.PyJWTError, ValueError, TypeError, ArithmeticError, RecursionError):
            raise InvalidToken(_NOT_VALID) from None

    def _claims(self, token: str) -> Mapping[str, Any]:
        key = self._key(token)
        claims: Mapping[str, Any] = jwt.decode(
            token,
            key.value,
            algorithms=[key.algorithm],
            audience=self.audience,
            issuer=self.issuer,
            leeway=CLOCK_SKEW,
            options={"require": ["exp", "sub"], "verify_aud": self.audience is not None},
        )
        return claims

    def _key(self, token: str) -> Key:
        key_id = jwt.get_unverified_header(token).get("kid") if self.keys.by_id else None
        key = self.keys.of(key_id)
        if key is None:
            raise InvalidToken("The bearer token is signed with a key that is not known here")
        return key

    def _bearer(self, claims: Mapping[str, Any]) -> Bearer:
        expires, issued = _moment(claims["exp"]), None
        if claims.get("iat") is not None:
            issued = _moment(claims["iat"])
        bearer = Bearer(
            claims["sub"],
            expires,
            issued,
            _text(claims.get("jti")),
            _text(claims.get(self.partner_claim)),
            _scopes(claims.get("scope")),
        )
        if not all(
            is_plain_name(name) for name in (bearer.subject, bearer.partner, bearer.token_id) if name is not None
        ):
            raise InvalidToken("The bearer token names no usable subject, partner or id")
        bearer.check()
        longest = self.max_seconds + CLOCK_SKEW
        if expires > time.time() + longest or (issued is not None and expires > issued + longest):
            raise InvalidToken(f"The bearer token is valid for longer than {self.max_seconds} seconds")
        return bearer


def _moment(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidToken(_NOT_VALID)
    moment = float(value)
    if not math.isfinite(moment):
        raise InvalidToken(_NOT_VALID)
    return moment


def _text(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InvalidToken(_NOT_VALID)
    return value


def _scopes(value: object) -> frozenset[str]:
    """A token that says nothing about scopes may be used for everything that the contract describes."""
    if value is None:
        return ALL_SCOPES
    names = value.split() if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InvalidToken(_NOT_VALID)
    return frozenset(names)
