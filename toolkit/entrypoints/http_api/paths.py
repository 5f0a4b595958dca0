"""Route by the encoded path: an encoded slash belongs to an id, only a bare one separates.

Servers hand over the path already decoded, and with it ``/sales/a%2Fb/evidences`` looks like another path.
"""

from typing import Final
from urllib.parse import quote, unquote, unquote_to_bytes

from starlette.convertors import Convertor, register_url_convertor
from starlette.types import ASGIApp, Receive, Scope, Send

SALE_EVIDENCES: Final = "/sales/{sale_id:encoded}/evidences"


class EncodedPaths:
    """Gives each segment of a path one spelling: percent-encoded only where it must be."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and b"%" in scope["raw_path"]:
            segments = scope["raw_path"].split(b"/")
            scope["path"] = "/".join(quote(unquote_to_bytes(segment), safe="") for segment in segments)
        await self._app(scope, receive, send)


class _EncodedSegment(Convertor[str]):
    """One segment, decoded, which may be empty; what is not UTF-8 becomes surrogates, which no stored text has."""

    regex = "[^/]*"

    def convert(self, value: str) -> str:
        return unquote(value, errors="surrogateescape")

    def to_string(self, value: str) -> str:
        return quote(value, safe="", errors="surrogateescape")


register_url_convertor("encoded", _EncodedSegment())
