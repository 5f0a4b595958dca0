"""Serve ``/openapi.json``, and ``/docs`` to read it and to send requests from a browser, without a token."""

import json
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolkit.entrypoints.http_api.openapi import document

_FILES: Final = {
    "/docs": ("docs.html", "text/html"),
    "/docs/docs.js": ("docs.js", "text/javascript"),
    "/docs/docs.css": ("docs.css", "text/css"),
}

_HEADERS: Final = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def page_routes() -> list[Route]:
    """Return the routes of the documents, which do not change while the server runs; none needs a token."""
    templates = files("toolkit.entrypoints.http_api") / "templates"
    routes = [Route("/openapi.json", _text(json.dumps(document()), "application/json"))]
    for path, (name, media_type) in _FILES.items():
        routes.append(Route(path, _text((templates / name).read_text("utf-8"), media_type)))
    return routes


def _text(text: str, media_type: str) -> Callable[[Request], Awaitable[Response]]:
    async def page(request: Request) -> Response:  # noqa: ARG001  # Starlette's signature
        return Response(text, headers=_HEADERS, media_type=media_type)

    return page
