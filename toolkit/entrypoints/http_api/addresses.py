"""Read the address of a request: one valid ``Host``, and the path by its encoded segments.

Of two hosts, a proxy and this server could take different ones. Servers hand over the path already decoded, and
with it ``/sales/a%2Fb/evidences`` looks like another path: an encoded slash belongs to an id, only a bare one
separates.
"""

import re
from typing import Final
from urllib.parse import quote, unquote, unquote_to_bytes

from starlette.convertors import Convertor, register_url_convertor
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from toolkit.domain.fields import REQUIRED
from toolkit.entrypoints.http_api.answers import invalid
from toolkit.errors import InvalidField

SALE_EVIDENCES: Final = "/sales/{sale_id:encoded}/evidences"
HOST: Final = "Host"

_HOST: Final = re.compile(r"([A-Za-z0-9._~!$&'()*+,;=%-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{0,5})?")
"""A name or an address and a port (RFC 9110, section 7.2)."""


class Addresses:
    """Answers 400 where ``Host`` is missing, repeated or no host; HTTP/1.0 knows none.

    Gives each segment of a path one spelling: percent-encoded only where it must be.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            reason = _fault(scope)
            if reason is not None:
                refusal = invalid([InvalidField(HOST, reason)])
                refusal.headers["Connection"] = "close"
                await refusal(scope, receive, send)
                return
            if b"%" in scope["raw_path"]:
                segments = scope["raw_path"].split(b"/")
                scope["path"] = "/".join(quote(unquote_to_bytes(segment), safe="") for segment in segments)
        await self._app(scope, receive, send)


def _fault(scope: Scope) -> str | None:
    hosts = Headers(scope=scope).getlist(HOST)
    if not hosts:
        return None if scope["http_version"] == "1.0" else REQUIRED
    if len(hosts) > 1:
        return "Must not be repeated"
    return None if _HOST.fullmatch(hosts[0]) else "Must be a host name or address, with or without a port"


class _EncodedSegment(Convertor[str]):
    """One segment, decoded, which may be empty; what is not UTF-8 becomes surrogates, which no stored text has."""

    regex = "[^/]*"

    def convert(self, value: str) -> str:
        return unquote(value, errors="surrogateescape")

    def to_string(self, value: str) -> str:
        return quote(value, safe="", errors="surrogateescape")


register_url_convertor("encoded", _EncodedSegment())
