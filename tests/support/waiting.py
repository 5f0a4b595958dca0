"""Wait for what another thread or process does, by looking for it; processes and ports of this machine."""

import os
import secrets
import signal
import socket
import subprocess
import time
from contextlib import contextmanager, suppress

import sqlalchemy as sa

PATIENCE = 300
"""Seconds after which something that was waited for counts as not happening; a busy machine needs far less."""


def wait_until(happened, *, step=0.01):
    """Look again and again until it happened; fail when it does not."""
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, "what the test waits for did not happen"
        time.sleep(step)


@contextmanager
def started(command, ready, *, log=None, ends_by=signal.SIGTERM, **options):
    """A process with its children, once it is ready, which end afterwards; ``log`` tells why it did not start."""
    process = subprocess.Popen(command, start_new_session=True, **options)
    try:
        wait_until(lambda: process.poll() is not None or ready(), step=0.02)
        assert process.poll() is None, log.read_text() if log else f"{command} ended"
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, ends_by)
        process.wait(PATIENCE)


def sessions_waiting(database):
    """Count the sessions of this database that wait for a lock that another one holds."""
    return database.run(sa.Connection.scalar, sa.text(_WAITING))


_WAITING = """
    SELECT count(*)
    FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


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
