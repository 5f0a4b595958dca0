"""The log on stderr: one JSON object a line, without values that could be personal data or secrets.

Each request has a line, with ids, times and counts. It never holds a body, a query, a header, a token or the
address of a person; a path is logged as its pattern, because people put anything into a path.
"""

import asyncio
import json
import logging
import queue
import re
import sys
import threading
import time
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolkit.errors import InvalidField, ToolkitError
from toolkit.http.answers import EVERYWHERE, failure, invalid

_PACKAGE: Final = Path(__file__).parents[1]

_LINES_WAITING: Final = 10_000
"""Lines kept for a reader that is slow; further ones are lost, and their number is told."""

_FLUSH_SECONDS: Final = 2

REQUEST_ID: Final = "X-Request-ID"

_HARMLESS: Final = re.compile(r"(?=.*[A-Za-z])[A-Za-z0-9._-]{1,64}")
"""A caller's request id: a short plain name with a letter in it, so that no CPF or phone number is one."""

_CLIENT_LEFT: Final = 499

REST_SECONDS: Final = 2
"""Before an early answer the rest of a body is read and thrown away for so long; else the answer could be lost."""


class RequestLog:
    """Gives each request an id, answers 500 where nothing else did, adds usual headers, and writes its line."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        headers, method = Headers(scope=scope), scope["method"]
        sent_id = headers.get(REQUEST_ID, "")
        request_id = sent_id if _HARMLESS.fullmatch(sent_id) else str(uuid4())
        status: int | None = None
        read_whole = "content-length" not in headers and "transfer-encoding" not in headers

        async def noted_receive() -> Message:
            nonlocal read_whole
            message = await receive()
            read_whole = read_whole or message["type"] != "http.request" or not message.get("more_body")
            return message

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                answered = MutableHeaders(scope=message)
                for name, value in {**EVERYWHERE, REQUEST_ID: request_id}.items():
                    answered.setdefault(name, value)
                if not read_whole and status != 408 and "expect" not in headers:
                    await _read_rest()
            await send(message)

        async def _read_rest() -> None:
            try:
                async with asyncio.timeout(REST_SECONDS):
                    while not read_whole:
                        await noted_receive()
            except TimeoutError:
                return

        scope["method"] = "GET" if method == "HEAD" else method  # the server leaves the body of the answer away
        try:
            await self._app(scope, noted_receive, send_with_id)
        except ClientDisconnect:  # or its chunks are none
            await invalid([InvalidField("request", "Must be HTTP/1.1")])(scope, receive, send_with_id)
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
                method=method,
                route=getattr(scope.get("route"), "path_format", None),
                status=status,
                milliseconds=round((time.perf_counter() - began) * 1000, 1),
                subject=state.get("subject"),
                reason=state.get("reason"),
            )


_lines: "queue.Queue[str]" = queue.Queue(_LINES_WAITING)
_lost = 0


def start() -> None:
    """Start the log; messages of libraries become lines of the same form."""
    threading.Thread(target=_write_lines, daemon=True).start()
    logging.basicConfig(handlers=[_Lines()], level=logging.WARNING, force=True)


def _write_lines() -> None:
    """Write to stderr, so that no request waits for a slow reader; one that is gone harms nobody."""
    global _lost
    while True:
        line = _lines.get()
        if _lost and _lines.empty():
            lost, _lost = _lost, 0
            line += _line("lost", lines=lost)
        with suppress(OSError, ValueError):
            sys.stderr.write(line)
            sys.stderr.flush()
        _lines.task_done()


def write(event: str, **fields: Any) -> None:
    """Log one event; ``fields`` are ids, times, counts and names of things."""
    global _lost
    try:
        _lines.put_nowait(_line(event, **fields))
    except queue.Full:
        _lost += 1


def flush() -> None:
    """Wait until all lines so far are written, but not for long: the reader may have stopped."""
    with _lines.all_tasks_done:
        _lines.all_tasks_done.wait_for(lambda: not _lines.unfinished_tasks, _FLUSH_SECONDS)


def fault(error: BaseException) -> dict[str, str]:
    """Return the kind and place of an error, without its text, which may repeat a caller's data.

    The text of the toolkit's own errors is made for people and holds nothing of the kind.
    """
    described = {"error": type(error).__name__, "place": _place(error)}
    if isinstance(error, ToolkitError):
        described["message"] = str(error)
    return described


class _Lines(logging.Handler):
    """Logs the place of a library's message without its text, which may hold anything."""

    def emit(self, record: logging.LogRecord) -> None:
        raised = record.exc_info[1] if record.exc_info else None
        place = f"{Path(record.pathname).name}:{record.lineno}"
        write("library", logger=record.name, loggedAt=place, **(fault(raised) if raised is not None else {}))


def _line(event: str, **fields: Any) -> str:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = {"time": now, "event": event, **fields}
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"


def _place(error: BaseException) -> str:
    """Return the innermost line of ours that was running, else the innermost of all."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "unknown"
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(_PACKAGE)]
    frame = (ours or frames)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}"
