"""Check the bearer token and the quotas of a request before anything else (contract, "Authentication")."""

from collections.abc import Container
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from toolkit.entrypoints.http_api.answers import failure, retry_later
from toolkit.entrypoints.http_api.quotas import SharedQuotas
from toolkit.entrypoints.http_api.revocations import Revocations
from toolkit.entrypoints.tokens import Bearer, InvalidToken, TokenChecks
from toolkit.errors import DatabaseUnavailable

TOKENS_KEPT: Final = 1000
"""Verified tokens to keep: a partner sends the same one many times, and only its expiry is checked again."""

_NETWORK: Final = (1 << 64) - 1
"""The network part of an IPv6 address: one caller has all addresses of a network."""


class Authentication:
    """Lets a request pass when its token is valid, and notes its bearer in the request's state.

    Paths that do not exist are no exception: without a token nobody learns which ones do. ``open_paths``
    need none.
    """

    def __init__(
        self,
        app: ASGIApp,
        checks: TokenChecks,
        revocations: Revocations,
        quotas: SharedQuotas,
        open_paths: Container[str],
    ) -> None:
        self._app = app
        self._checks = checks
        self._verified = lru_cache(TOKENS_KEPT)(checks.bearer_of)
        self._revocations = revocations
        self._quotas = quotas
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and scope["path"] not in self._open_paths:
            state = scope.setdefault("state", {})
            refusal = await self._refusal(scope, state)
            if refusal is not None:
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _refusal(self, scope: Scope, state: dict[str, object]) -> Response | None:
        headers = Headers(scope=scope)
        try:
            bearer: Bearer = self._verified(_bearer_token(headers))
            self._checks.check_expiry(bearer)
            await self._revocations.check(bearer)
        except InvalidToken as error:
            wait = self._quotas.wrong_token(self._address(scope, headers))
            return failure(401, str(error)) if not wait else retry_later(wait)
        except DatabaseUnavailable as error:
            state["reason"] = type(error).__name__
            return failure(503)
        state["subject"], state["bearer"] = bearer.subject, bearer
        wait = self._quotas.request(bearer.subject)
        return retry_later(wait) if wait else None

    def _address(self, scope: Scope, headers: Headers) -> str:
        """Return the sender's address; ``X-Forwarded-For`` counts where a trusted proxy sent it."""
        client = scope.get("client")
        address = str(client[0]) if client else ""
        if address in self._quotas.trusted_proxies:
            # Some proxies add a line of their own behind the caller's.
            named = ",".join(headers.getlist("x-forwarded-for"))
            address = named.rpartition(",")[2].strip() or address
        try:
            parsed = ip_address(address)
        except ValueError:
            return address
        if isinstance(parsed, IPv6Address):
            return str(parsed.ipv4_mapped or IPv6Address(int(parsed) & ~_NETWORK))
        return address


def _bearer_token(headers: Headers) -> str:
    sent = headers.getlist("authorization")
    if not sent:
        raise InvalidToken("A bearer token is required")
    scheme, _, token = sent[0].partition(" ")
    if len(sent) > 1 or scheme.lower() != "bearer" or not token.strip():
        raise InvalidToken("The Authorization header must be: Bearer <ACCESS_TOKEN>")
    return token.strip()
