"""Check bearer tokens, and read what they claim about their bearer."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import jwt

from toolkit.domain.clock import Clock, wall_clock
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
        key_id = jwt.get_unverified_header(token).get("kid") if self.keys.by_id else None
        key = self.keys.of(key_id)
        if key is None:
            raise InvalidToken("The bearer token is signed with a key that is not known here")
        return key

    def _partner(self, claims: Mapping[str, Any]) -> str | None:
        """Return the partner that the token names, ``None`` where it has no such claim.

        An empty claim says that the subject acts for no partner; it does not make the subject one.
        """
        name = self.settings.jwt_partner_claim
        if name in claims and claims[name] is None:
            raise InvalidToken(_NO_NAME)
        return _text(claims.get(name))

    def _bearer(self, claims: Mapping[str, Any]) -> Bearer:
        expires, issued, not_before = (_moment(claims.get(name)) for name in ("exp", "iat", "nbf"))
        if expires is None:
            raise InvalidToken(_NOT_VALID)
        bearer = Bearer(
            claims["sub"],
            expires,
            issued,
            _text(claims.get("jti")),
            self._partner(claims),
            _scopes(claims.get("scope")),
        )
        if not all(
            is_plain_name(name) for name in (bearer.subject, bearer.partner, bearer.token_id) if name is not None
        ):
            raise InvalidToken(_NO_NAME)
        self.check_expiry(bearer)
        now, longest = self.clock().timestamp(), self.settings.jwt_max_ttl + CLOCK_SKEW
        if max(issued or 0, not_before or 0) > now + CLOCK_SKEW:
            raise InvalidToken(_NOT_VALID)
        if expires > now + longest or (issued is not None and expires > issued + longest):
            raise InvalidToken(f"The bearer token is valid for longer than {self.settings.jwt_max_ttl} seconds")
        return bearer


def _moment(value: object) -> float | None:
    if value is None:
        return None
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
    """Read the claim `scope`; a token without it may be used for everything that the contract describes."""
    if value is None:
        return ALL_SCOPES
    names = value.split() if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InvalidToken(_NOT_VALID)
    return frozenset(names)
