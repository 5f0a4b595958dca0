"""Ports of this machine."""

import secrets
import socket
from contextlib import suppress

from tests.support.waiting import PATIENCE


def listens(port):
    """Tell whether somebody answers at a port of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
    except OSError:
        return False
    return True


def free_port():
    """Return a port that nothing uses, below those that the system gives to whoever asks for any."""
    while True:
        with socket.socket() as sock, suppress(OSError):
            port = 20_000 + secrets.randbelow(12_000)
            sock.bind(("127.0.0.1", port))
            return port
