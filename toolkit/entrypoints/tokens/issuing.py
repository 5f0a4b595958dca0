"""Issue a token for trying the interface out; in production an identity provider does that."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import jwt

from toolkit.domain.partners import NAME_MAX, Scope, is_plain_name
from toolkit.entrypoints.tokens.keys import MAKE_A_SECRET, TokenKeys
from toolkit.errors import SettingsError
from toolkit.settings import Settings


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
    scopes: Sequence[Scope] = (),
) -> IssuedToken:
    """Sign a token with ``TOOLKIT_JWT_SECRET``, or with the first secret of ``TOOLKIT_JWT_JWKS``.

    Without ``scopes`` it may be used for everything.

    Raises:
        SettingsError: there is no secret to sign with (whoever holds the private key of a public one issues its
            tokens), the name of the subject or partner cannot be used, or it would live for too long.
    """
    signing = None
    if settings.jwt_secret is not None or settings.jwt_jwks is not None:
        signing = TokenKeys.from_settings(settings).signing()
    if signing is None:
        raise SettingsError(f"Tokens are signed with TOOLKIT_JWT_SECRET, which is not set. {MAKE_A_SECRET}")
    for what, name in (("subject", subject), ("partner", partner)):
        if name is not None and not is_plain_name(name):
            raise SettingsError(
                f"The {what} must be plain text of 1 to {NAME_MAX} characters, such as partner-a, without control "
                "or text-direction characters"
            )
    if ttl.total_seconds() > settings.jwt_max_ttl:
        raise SettingsError(f"A token may live for {settings.jwt_max_ttl} seconds at most (TOOLKIT_JWT_MAX_TTL)")
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
