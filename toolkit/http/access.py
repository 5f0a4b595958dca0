"""Let a request pass with one valid host, a valid bearer token and room in the rate limits.

Nothing else is judged before (contract, "Authentication"): without a token nobody learns which paths exist.
"""

import re
from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import Depends, Path
from pydantic import Field, PlainValidator
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from throttled import MemoryStore, RateLimiterType, Throttled, rate_limiter

from toolkit.contract import fields
from toolkit.contract.people import PartnerAccess, TokenScope
from toolkit.errors import DatabaseUnavailable, InvalidField
from toolkit.evidence.access import Revocations, is_revoked
from toolkit.http.answers import failure, invalid, retry_later
from toolkit.http.backend import Watched
from toolkit.http.tokens import Bearer, InvalidToken, TokenChecks
from toolkit.settings import Quotas

TOKENS_KEPT: Final = 1000
"""Verified tokens to keep: a partner sends the same one many times, and only its expiry is checked again."""

CALLERS_KEPT: Final = 1 << 14
"""Callers whose requests are counted; beyond them the one that was quiet for longest is forgotten."""

_NETWORK: Final = (1 << 64) - 1
"""The bits below the network part of an IPv6 address: one caller has all addresses of a network."""

HOST: Final = "Host"
_HOST: Final = re.compile(r"([A-Za-z0-9._~!$&'()*+,;=%-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{0,5})?")
"""A name or an address and a port (RFC 9110, section 7.2)."""


def needs(purpose: TokenScope) -> Any:
    """Return the dependency that gives what a token may be used for ``purpose`` within, else 403."""

    async def access(request: Request) -> PartnerAccess:
        if purpose not in request.state.scopes:
            raise HTTPException(403)
        found: PartnerAccess = request.state.access
        return found

    return Depends(access)


Asking = Annotated[PartnerAccess, needs(TokenScope.REQUEST_EVIDENCE)]
"""The partner that asks about its sales, and what it is bound by."""


def _given(sale_id: str) -> str:
    if not sale_id:
        raise fields.invalid(fields.REQUIRED)
    return sale_id


SaleIdInPath = Annotated[
    str,
    PlainValidator(_given, json_schema_input_type=Annotated[str, Field(min_length=1)]),
    Path(
        alias="saleId",
        description="The sale id returned when the sale was created, percent-encoded.",
        examples=["VND-2026-0001"],
    ),
]


@dataclass
class AccessControl:
    """Answers 400 for a wrong host, 401 for a wrong token and 429 above a limit; ``open_paths`` need no token."""

    app: ASGIApp
    checks: TokenChecks
    revocations: Watched[Revocations]
    limits: "RateLimits"
    open_paths: Container[str]

    def __post_init__(self) -> None:
        self.verified = lru_cache(TOKENS_KEPT)(self.checks.bearer_of)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = _host_refusal(scope)
        if refusal is None:
            # Servers hand over the path decoded, where an encoded slash of an id looks like one that separates.
            scope["path"] = quote(scope["raw_path"], safe="/%")
            if scope["path"] not in self.open_paths:
                refusal = self._refusal(scope, scope.setdefault("state", {}))
        await (refusal or self.app)(scope, receive, send)

    def _refusal(self, scope: Scope, state: dict[str, object]) -> Response | None:
        try:
            bearer: Bearer = self.verified(_bearer_token(Headers(scope=scope)))
            self.checks.check_expiry(bearer)
            if is_revoked(self.revocations.get(), bearer.token_id, bearer.subject, bearer.issued):
                raise InvalidToken("The bearer token was revoked")
        except InvalidToken as error:
            client = scope.get("client")
            wait = self.limits.wrong_token(client[0] if client else "")
            return failure(401, str(error)) if not wait else retry_later(wait)
        except DatabaseUnavailable as error:
            state["reason"] = type(error).__name__
            return failure(503)
        subject, settings = bearer.subject, self.checks.settings
        # Without a partner in the token, its subject is the partner.
        named = subject, bearer.partner or subject
        state["access"] = PartnerAccess(*named, settings.unassigned_sales, settings.quotas.open_forms)
        state["subject"], state["scopes"] = subject, bearer.scopes
        wait = self.limits.request(subject)
        return retry_later(wait) if wait else None


def _host_refusal(scope: Scope) -> Response | None:
    """Refuse a missing, repeated or wrong host: a proxy and this server could take different ones."""
    hosts = Headers(scope=scope).getlist(HOST)
    if len(hosts) == 1 and (_HOST.fullmatch(hosts[0]) or (not hosts[0] and scope["http_version"] != "1.1")):
        return None
    reason = "Must not be repeated" if len(hosts) > 1 else "Must be a host name or address, with or without a port"
    refusal = invalid([InvalidField(HOST, reason)])
    refusal.headers["Connection"] = "close"
    return refusal


def _bearer_token(headers: Headers) -> str:
    sent = headers.getlist("authorization")
    if not sent:
        raise InvalidToken("A bearer token is required")
    scheme, _, token = sent[0].partition(" ")
    if len(sent) > 1 or scheme.lower() != "bearer" or not token.strip():
        raise InvalidToken("The Authorization header must be: Bearer <ACCESS_TOKEN>")
    return token.strip()


class RateLimits:
    """Counts requests by subject, and those without a valid token by address, in this process.

    A caller may send a minute's worth at once, and after that as fast as its rate. Both answers are the seconds
    to wait, 0 where there is room.
    """

    def __init__(self, quotas: Quotas) -> None:
        self._requests, self._wrong_tokens = (
            Throttled(
                using=RateLimiterType.GCRA.value,
                quota=rate_limiter.per_min(count, burst=count),
                store=MemoryStore(options={"MAX_SIZE": CALLERS_KEPT}),
            )
            for count in (quotas.requests, quotas.wrong_tokens)
        )

    def request(self, subject: str) -> float:
        """Count a request of ``subject``."""
        return self._requests.limit(subject).state.retry_after

    def wrong_token(self, address: str) -> float:
        """Count a request without a valid token from an address."""
        with suppress(ValueError):
            parsed = ip_address(address)
            if isinstance(parsed, IPv6Address):
                address = str(parsed.ipv4_mapped or IPv6Address(int(parsed) & ~_NETWORK))
        return self._wrong_tokens.limit(address).state.retry_after
