"""Log one line of JSON for each request, and answer 500 for an exception that nothing else handled.

A line holds ids, times and counts. It never holds a body, a query, a header, a token or the address of a
person; a path is logged as its pattern, because people put anything into a path.
"""

import random
import re
import time
from typing import Final
from uuid import UUID

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolkit.entrypoints.http_api.answers import failure
from toolkit.entrypoints.http_api.logs import fault, write

REQUEST_ID: Final = "X-Request-ID"

_HARMLESS: Final = re.compile(r"(?=.*[A-Za-z])[A-Za-z0-9._-]{1,64}")
"""A caller's request id: a short plain name with a letter in it, so that no CPF or phone number is one."""

_CLIENT_LEFT: Final = 499


class AccessLog:
    """Gives each request an id, answers 500 where nothing else did, and writes its line."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        request_id = _request_id(Headers(scope=scope))
        status: int | None = None

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[REQUEST_ID] = request_id
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except ClientDisconnect:
            status = _CLIENT_LEFT
        except Exception as error:
            write("fault", requestId=request_id, **fault(error))
            if status is None:
                await failure(500)(scope, receive, send_with_id)
        finally:
            state = scope.get("state", {})
            write(
                "request",
                requestId=request_id,
                method=scope["method"],
                route=getattr(scope.get("route"), "path_format", None),
                status=status,
                milliseconds=round((time.perf_counter() - began) * 1000, 1),
                subject=state.get("subject"),
                reason=state.get("reason"),
            )


def new_request_id() -> str:
    """Return a UUID that names one request. It is no secret, so ordinary random numbers serve."""
    return str(UUID(int=random.getrandbits(128), version=4))


def _request_id(headers: Headers) -> str:
    sent = headers.get(REQUEST_ID, "")
    return sent if _HARMLESS.fullmatch(sent) else new_request_id()
