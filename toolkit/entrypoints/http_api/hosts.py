"""Demand one valid ``Host`` in each request: of two, a proxy and this server could take different ones."""

import re
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from toolkit.domain.fields import REQUIRED
from toolkit.entrypoints.http_api.answers import invalid
from toolkit.errors import InvalidField

HOST: Final = "Host"

_HOST: Final = re.compile(r"([A-Za-z0-9._~!$&'()*+,;=%-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{0,5})?")
"""A name or an address and a port (RFC 9110, section 7.2)."""


class OneHost:
    """Answers 400 where ``Host`` is missing, repeated or no host; HTTP/1.0 knows none."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        reason = _fault(scope) if scope["type"] == "http" else None
        if reason is None:
            await self._app(scope, receive, send)
        else:
            refusal = invalid([InvalidField(HOST, reason)])
            refusal.headers["Connection"] = "close"
            await refusal(scope, receive, send)


def _fault(scope: Scope) -> str | None:
    hosts = Headers(scope=scope).getlist(HOST)
    if not hosts:
        return None if scope["http_version"] == "1.0" else REQUIRED
    if len(hosts) > 1:
        return "Must not be repeated"
    return None if _HOST.fullmatch(hosts[0]) else "Must be a host name or address, with or without a port"
