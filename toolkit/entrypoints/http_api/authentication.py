"""The bearer token, asked for before anything else is looked at (contract, "Authentication")."""

from __future__ import annotations

from collections.abc import Container
from functools import lru_cache
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from toolkit.entrypoints.http_api.answers import failure
from toolkit.entrypoints.tokens import InvalidToken, TokenKey

TOKENS_KEPT: Final = 1000
"""Tokens whose signature was found good: a partner sends the same one for a while, and only time changes it."""


class Authentication:
    """Lets a request through when its token is valid, and notes its subject in the request's state.

    Paths that do not exist are no exception: without a token nobody learns which ones do. ``open_paths``
    need none.
    """

    def __init__(self, app: ASGIApp, key: TokenKey, open_paths: Container[str]) -> None:
        self._app = app
        self._verified = lru_cache(TOKENS_KEPT)(key.bearer_of)
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and scope["path"] not in self._open_paths:
            try:
                bearer = self._verified(_bearer_token(Headers(scope=scope)))
                bearer.check()
            except InvalidToken as error:
                await failure(401, str(error))(scope, receive, send)
                return
            scope.setdefault("state", {})["subject"] = bearer.subject
        await self._app(scope, receive, send)


def _bearer_token(headers: Headers) -> str:
    sent = headers.getlist("authorization")
    if not sent:
        raise InvalidToken("A bearer token is required")
    scheme, _, token = sent[0].partition(" ")
    if len(sent) > 1 or scheme.lower() != "bearer" or not token.strip():
        raise InvalidToken("The Authorization header must be: Bearer <ACCESS_TOKEN>")
    return token.strip()
