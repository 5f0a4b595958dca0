"""Bound uvicorn's HTTP connections: size and time of heads, framing, bodies and answers that nobody reads.

uvicorn alone waits for ever for the end of a request's head and for whoever does not read an answer, keeps any
number of requests meanwhile, and goes on reading a body whose request was answered early.
"""

import asyncio
from collections import deque
from typing import Any, Final

from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from toolkit.entrypoints.http_api.access_log import REQUEST_ID, new_request_id
from toolkit.entrypoints.http_api.answers import failure, invalid
from toolkit.entrypoints.http_api.logs import write
from toolkit.errors import InvalidField

HEAD_SECONDS: Final = 10
"""Time for the request line and the headers to arrive whole."""

HEAD_MAX: Final = 128 * 1024
"""Bytes in an unfinished head: a sale id of thousands of encoded characters still fits."""

FRAMING_MAX: Final = 128 * 1024
"""Bytes around the chunks of a body: their sizes and extensions, and trailers, of which nothing is kept."""

REST_SECONDS: Final = 2
"""The rest of a body is read and thrown away for so long after an early answer; closing at once would lose it."""

CONNECTIONS_MAX: Final = 1000
"""Connections at the same time; one more is closed at once."""

KEEP_ALIVE_SECONDS: Final = 15

SEND_SECONDS: Final = 20
"""Time for a caller to take what was answered."""

UNANSWERED_MAX: Final = 100
"""Requests of one connection that wait for their answers; with one more it ends."""


class Connection(HttpToolsProtocol):
    """One connection; ``_deadline`` runs while a head or an unwanted rest of a body is awaited.

    ``_unsent`` runs while there is something that the caller does not take.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._in_body = False
        self._framing_bytes = 0
        self._unanswered: deque[RequestResponseCycle] = deque()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Await the first head."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # so that anything unsent is told
        if len(self.connections) > CONNECTIONS_MAX:
            transport.close()
        else:
            self._start(HEAD_SECONDS, self._head_too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop the deadline, and tell all requests that wait for an answer; uvicorn tells the last one only."""
        self._stop()
        for cycle in self._unanswered:
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Give the caller some time to take what it asked for."""
        super().pause_writing()
        self._unsent = self.loop.call_later(SEND_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: the caller took all of it."""
        super().resume_writing()
        self._unsent.cancel()

    def data_received(self, data: bytes) -> None:
        """Feed the parser; a head that began with these bytes has its deadline from now on."""
        if not self._in_body and self._deadline is None:
            self._start(HEAD_SECONDS, self._head_too_slow)
        self._framing_bytes += len(data) if self._in_body else 0
        super().data_received(data)
        if self._in_body and self._framing_bytes > FRAMING_MAX and not self.transport.is_closing():
            self._too_much_framing()
        if self._deadline is not None and not self._in_body and not self.transport.is_closing():
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_MAX:
                self._refuse(failure(431))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; what comes after the body as a trailer is none, and nobody here asked for trailers."""
        if not self._in_body:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Leave the body to whoever reads it."""
        self._stop()
        self._in_body = True
        self._framing_bytes = 0
        super().on_headers_complete()
        self._unanswered.append(self.cycle)
        if len(self._unanswered) > UNANSWERED_MAX:
            self.transport.abort()

    def on_body(self, body: bytes) -> None:
        """Hand over a part of the body."""
        self._framing_bytes -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Await the head of another request: the next bytes begin one."""
        self._stop()
        self._in_body = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Read on for a while where the answer came before the end of the body."""
        self._unanswered.popleft()
        super().on_response_complete()
        if self._in_body and self.cycle.response_complete and not self.transport.is_closing():
            self._start(REST_SECONDS, self.transport.close)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  # uvicorn's signature and text
        """Answer what is not HTTP."""
        self._refuse(invalid([InvalidField("request", "Must be HTTP/1.1")]))

    def _too_much_framing(self) -> None:
        if self.cycle.response_started:
            self.transport.close()
        else:
            self._refuse(failure(413))

    def _head_too_slow(self) -> None:
        if self._head_bytes:
            self._refuse(failure(408))
        else:
            self.transport.close()

    def _refuse(self, response: Response) -> None:
        """Answer without asking the application, and close."""
        self._stop()
        request_id = new_request_id()
        write("refused", requestId=request_id, status=response.status_code)
        response.headers["Connection"] = "close"
        response.headers[REQUEST_ID] = request_id
        head = b"".join(b"%s: %s\r\n" % header for header in response.raw_headers)
        self.transport.write(STATUS_LINE[response.status_code] + head + b"\r\n" + bytes(response.body))
        self.transport.close()

    def _start(self, seconds: float, then: Any) -> None:
        self._deadline = self.loop.call_later(seconds, then)

    def _stop(self) -> None:
        self._head_bytes = 0
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
