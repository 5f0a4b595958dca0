"""The password of a database on another machine is never sent where somebody could read it."""

import socket
import threading
from contextlib import contextmanager, suppress

import pytest

from tests.support.waiting import PATIENCE
from toolkit.database.connection import Database
from toolkit.errors import DatabaseError

PASSWORD = "pass-word-7"
CLEARTEXT = b"R" + (8).to_bytes(4, "big") + (3).to_bytes(4, "big")


@contextmanager
def eavesdropper():
    """A server that has no TLS and asks for the password in clear text: its port, and what it was sent."""
    received = bytearray()
    listening = socket.create_server(("127.0.0.1", 0))

    def serve():
        with suppress(OSError):
            while True:
                peer, _ = listening.accept()
                with peer, suppress(OSError):
                    peer.settimeout(PATIENCE)
                    while data := peer.recv(4096):
                        received.extend(data)
                        if PASSWORD.encode() in received:
                            break
                        peer.sendall(b"N" if len(data) == 8 else CLEARTEXT)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listening.getsockname()[1], received
    finally:
        listening.close()


@pytest.mark.parametrize(
    ("options", "is_sent"),
    [
        ("", False),
        ("&sslmode=require", False),
        ("&sslmode=prefer", False),
        ("&sslmode=disable", False),
        ("&require_auth=password", False),
        ("&sslmode=disable&require_auth=password", True),
    ],
)
def test_a_password_is_sent_in_clear_only_where_the_address_says_so(options, is_sent):
    with eavesdropper() as (port, received):
        # The name is that of another machine; this one's address stands in for it.
        url = f"postgresql+psycopg://u:{PASSWORD}@db.example.com:{port}/d?hostaddr=127.0.0.1{options}"
        with pytest.raises(DatabaseError) as refused, Database(url).transaction():
            pass
    assert (PASSWORD.encode() in received) is is_sent
    assert PASSWORD not in str(refused.value)
    if not is_sent:
        assert "Another machine is reached by TLS with a verified certificate" in str(refused.value)
