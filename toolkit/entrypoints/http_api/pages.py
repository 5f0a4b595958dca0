"""Serve ``/openapi.json``, and ``/docs`` to read it and to send requests from a browser, without a token."""

import json
from importlib.resources import files
from typing import Final

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
    texts = {path: ((templates / name).read_text("utf-8"), kind) for path, (name, kind) in _FILES.items()}
    texts["/openapi.json"] = json.dumps(document()), "application/json"
    return [
        Route(path, Response(text, headers=_HEADERS, media_type=media_type), methods=["GET"])
        for path, (text, media_type) in texts.items()
    ]
