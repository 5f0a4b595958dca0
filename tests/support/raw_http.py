"""HTTP by hand, for what no good client sends; and a server in this process, whose bounds a test may set."""

import asyncio
import socket
import threading
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from datetime import timedelta
from http.client import parse_headers
from types import SimpleNamespace

import httpx
import uvloop

from tests.support.waiting import PATIENCE
from toolkit.contract.deadlines import wall_clock
from toolkit.http import server
from toolkit.http.app import create_app
from toolkit.http.backend import Backend
from toolkit.http.tokens import TokenChecks
from toolkit.kit.services import Services


class Wire:
    """One connection to a server on this machine."""

    def __init__(self, port, *, window=None):
        """Connect; ``window`` bounds the bytes that the system takes for a test which does not read them."""
        self._socket = socket.socket()
        if window is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        self._socket.settimeout(PATIENCE)
        self._socket.connect(("127.0.0.1", port))
        self._answers = self._socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._answers.close()
        self._socket.close()

    def send(self, *parts):
        self._socket.sendall(b"".join(parts))

    def end(self):
        """Send no more, and wait for what comes."""
        self._socket.shutdown(socket.SHUT_WR)

    def answer(self):
        """The next answer, read no further than its own end."""
        status_line = self._answers.readline()
        headers = parse_headers(self._answers)
        body = self._answers.read(int(headers.get("content-length", 0)))
        return httpx.Response(int(status_line.split()[1]), headers=headers.items(), content=body)

    def answers(self):
        """All answers, until the other side closes."""
        with suppress(ConnectionResetError):
            while self._answers.peek(1):
                yield self.answer()

    def is_closed(self):
        """Wait for the other side to close; ``False`` where it sends something instead."""
        try:
            return self._answers.read(1) == b""
        except ConnectionResetError:
            return True


def request(line, body=b"", *, token=None, **headers):
    """A request; ``_`` in the name of a header stands for ``-``. A body is announced unless a header does so."""
    sent = {"Host": "localhost", "Content-Type": "application/json"}
    if token is not None:
        sent["Authorization"] = f"Bearer {token}"
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    if body and "Transfer-Encoding" not in sent:
        sent.setdefault("Content-Length", str(len(body)))
    lines = [f"{line} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items()), "", ""]
    return "\r\n".join(lines).encode() + body


def chunks(parts):
    """The parts in chunked encoding, without the last chunk."""
    return (b"%x\r\n%s\r\n" % (len(part), part) for part in parts)


@contextmanager
def in_process(environ):
    """The same application on the same server, in a thread, with its address and the clock of its tokens."""
    application = Services(environ)
    backend = Backend(application)
    assert backend.open() == []
    clock = SimpleNamespace(ahead=timedelta())
    checks = TokenChecks(application.settings, lambda: wall_clock() + clock.ahead)
    port = server.free_address("127.0.0.1", 0)
    running = server.server_of(create_app(backend, checks), "127.0.0.1", port)
    ready = Future()

    async def serve():
        serving = asyncio.create_task(running.serve())
        await server.listening(port, serving)
        ready.set_result(asyncio.get_running_loop())
        await serving

    thread = threading.Thread(target=uvloop.run, args=(serve(),))
    thread.start()
    loop = ready.result(PATIENCE)
    try:
        yield SimpleNamespace(port=port, url=f"http://127.0.0.1:{port}", clock=clock)
    finally:
        loop.call_soon_threadsafe(running.stop)
        thread.join(PATIENCE)
        backend.close()
        application.close()
        assert not thread.is_alive()
