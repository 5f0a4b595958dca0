"""Run the interface on uvicorn until SIGTERM or SIGINT, and end without dropping what was begun."""

import gc
import re
import signal
import socket
from types import FrameType
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp

from toolkit.entrypoints.http_api import logs
from toolkit.entrypoints.http_api.app import OPERATION_SECONDS
from toolkit.entrypoints.http_api.bodies import BODY_SECONDS
from toolkit.entrypoints.http_api.connections import KEEP_ALIVE_SECONDS, Connection
from toolkit.errors import ToolkitError

_BACKLOG: Final = 1024

_FINISH_SECONDS: Final = BODY_SECONDS + OPERATION_SECONDS
"""Seconds that requests have to end which began before the signal."""

_HOST: Final = re.compile(r"[0-9A-Za-z.:%_-]{1,253}")


def listen(host: str, port: int) -> socket.socket:
    """Return a socket at ``host`` and ``port``; 0 lets the system choose a free one.

    Raises:
        ToolkitError: the address is taken, not of this machine, or needs other rights.
    """
    if not _HOST.fullmatch(host):
        raise ToolkitError(
            "The host to listen on is not an address, such as 127.0.0.1, nor a name of this machine."
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ToolkitError(f"Cannot listen on {host} port {port}: {error.strerror}. Try another --port.") from None


def run(app: ASGIApp, listening: socket.socket) -> None:
    """Serve ``app`` until the process is asked to end."""
    gc.freeze()  # what is loaded by now stays: collecting garbage among it would halt all requests for a while
    server_of(app).run(sockets=[listening])


def server_of(app: ASGIApp) -> uvicorn.Server:
    """Return the server, ready to run ``app``."""
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        loop="uvloop",
        lifespan="off",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_FINISH_SECONDS,
    )
    return _Server(config)


class _Server(uvicorn.Server):
    """Logs its address, and ends with status 0 after a signal to end."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listening in sockets or ():
            url = _url(listening)
            logs.write("listening", url=url, docs=f"{url}/docs")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        logs.write("ending", connections=len(self.server_state.connections), requests=len(self.server_state.tasks))
        await super().shutdown(sockets)
        logs.write("ended")
        logs.flush()

    def handle_exit(self, sig: int, frame: FrameType | None) -> Any:  # noqa: ARG002  # uvicorn's signature
        # uvicorn would note the signal and raise it again at the end.
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def _url(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
