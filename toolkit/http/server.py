"""Run the interface on Granian until SIGTERM or SIGINT, and end without dropping what was begun.

Granian bounds heads (size, number and time), framing and connections itself, and closes a connection after a
request whose length can be read in two ways.
"""

import asyncio
import gc
import os
import re
import signal
import socket
from contextlib import suppress
from typing import Final

import psutil
import uvloop
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server
from starlette.types import ASGIApp

from toolkit.errors import ToolkitError
from toolkit.http import logs

HEAD_SECONDS: Final = 10
"""Time for the request line and the headers to arrive whole; an idle connection is kept as long."""

HEAD_MAX: Final = 128 * 1024  # bytes in a head: a sale id of thousands of encoded characters still fits
CONNECTIONS_MAX: Final = 1000  # connections at the same time; the next ones wait until one ends
SEND_SECONDS: Final = 20  # time for a caller to take what was answered

_BACKLOG: Final = 1024
_HOST: Final = re.compile(r"[0-9A-Za-z.:%_-]{1,253}")


def free_address(host: str, port: int) -> int:
    """Return the port if the server can listen at ``host`` and ``port``; for 0 a free one.

    Raises:
        ToolkitError: the address is taken, not of this machine, or needs other rights.
    """
    if not _HOST.fullmatch(host):
        raise ToolkitError(
            "The host to listen on is not an address, such as 127.0.0.1, nor a name of this machine."
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.create_server((host, port), family=family) as tried:
            found: int = tried.getsockname()[1]
            return found
    except OSError as error:
        raise ToolkitError(
            "Cannot listen on {} port {}: {}. Try another --port.", host, port, error.strerror
        ) from None


def run(app: ASGIApp, host: str, port: int) -> None:
    """Serve ``app`` until the process is asked to end; a second signal ends it at once."""
    gc.freeze()  # what is loaded by now stays: collecting garbage among it would halt all requests for a while
    uvloop.run(_run(server_of(app, host, port), host, port))
    logs.write("ended")
    logs.flush()


def server_of(app: ASGIApp, host: str, port: int) -> Server:
    """Return the server, ready to serve ``app``."""
    return Server(
        app,
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=round(HEAD_SECONDS * 1000), max_buffer_size=HEAD_MAX),
        websockets=False,
        backlog=_BACKLOG,
        backpressure=CONNECTIONS_MAX,
        log_enabled=False,
    )


async def _run(server: Server, host: str, port: int) -> None:
    ending = False

    def end() -> None:
        nonlocal ending
        if ending:
            os._exit(1)
        ending = True
        logs.write("ending")
        server.stop()  # type: ignore[no-untyped-call]  # Granian says no type

    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, end)
    serving = asyncio.create_task(server.serve())
    if await listening(port, serving):
        url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        logs.write("listening", url=url, docs=f"{url}/docs")
    await serving


async def listening(port: int, serving: "asyncio.Task[None]") -> bool:
    """Wait until the server listens, and let the system drop connections whose answers nobody takes."""
    while not serving.done():
        for each in psutil.Process().net_connections("tcp"):
            if each.status == psutil.CONN_LISTEN and each.laddr[1] == port:
                with socket.socket(fileno=os.dup(each.fd)) as shared, suppress(AttributeError):
                    # Connections inherit it; only Linux has it.
                    shared.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(SEND_SECONDS * 1000))
                return True
        await asyncio.sleep(0.01)
    return False
