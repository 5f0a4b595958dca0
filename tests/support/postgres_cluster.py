"""A PostgreSQL cluster as a company runs one: over TCP, with roles, a pooler in front and a replica behind."""

import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from tests.conftest import FAST_FOLDER
from tests.support.waiting import PATIENCE, wait_until
from toolkit.embedded.postgres import programs
from toolkit.embedded.servers import Account, server_account

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


@dataclass(frozen=True)
class Cluster:
    """A running server; ``superuser`` may do everything in it, and no role needs a password."""

    port: int
    folder: Path
    account: Account
    programs: Path
    superuser: str = "company"

    def url(self, database: str, role: str | None = None, *, port: int | None = None) -> str:
        return f"postgresql+psycopg://{role or self.superuser}@127.0.0.1:{port or self.port}/{database}"

    def execute(self, database: str, *statements: str) -> None:
        with psycopg.connect(self._conninfo(database), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def value(self, database: str, query: str, port: int | None = None) -> Any:
        with psycopg.connect(self._conninfo(database, port), autocommit=True) as connection:
            row = connection.execute(query).fetchone()
        assert row is not None
        return row[0]

    def _conninfo(self, database: str, port: int | None = None) -> str:
        return f"host=127.0.0.1 port={port or self.port} user={self.superuser} dbname={database}"


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """A new cluster, gone with its data at the end."""
    with tempfile.TemporaryDirectory(prefix="cluster-", dir=FAST_FOLDER) as name:
        folder = Path(name)
        account = server_account(folder)
        account.give(folder)
        found = programs(folder, account)
        data, port = folder / "data", free_port()
        _run(account, found / "initdb", "-D", data, "-U", "company", "--auth=trust", "--no-sync", "-E", "UTF8")
        cluster = Cluster(port, folder, account, found)
        with _served(account, found, data, port):
            yield cluster


@contextmanager
def replica_of(cluster: Cluster, *settings: str) -> Iterator[int]:
    """A streaming replica of the cluster, with ``name=value`` settings of its own; its port."""
    port = free_port()
    data = cluster.folder / f"replica-{port}"
    _run(
        cluster.account,
        *(cluster.programs / "pg_basebackup", "-D", data, "-R", "--no-sync", "-c", "fast"),
        *("-h", "127.0.0.1", "-p", str(cluster.port), "-U", cluster.superuser),
    )
    with _served(cluster.account, cluster.programs, data, port, *settings):
        yield port


@contextmanager
def pooler_of(cluster: Cluster) -> Iterator[int]:
    """PgBouncer in transaction mode in front of the cluster, with few server connections; its port."""
    assert PGBOUNCER is not None
    port, settings = free_port(), cluster.folder / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\n* = host=127.0.0.1 port={cluster.port} user={cluster.superuser}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        "pool_mode = transaction\ndefault_pool_size = 12\nmax_client_conn = 100\n"
        "ignore_startup_parameters = extra_float_digits\n"
    )
    cluster.account.give(settings)
    with _started(cluster.account, PGBOUNCER, settings) as server:
        wait_until(lambda: listens(port) or server.poll() is not None)
        yield port


def listens(port: int) -> bool:
    """Tell whether somebody answers at a port of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
    except OSError:
        return False
    return True


def free_port() -> int:
    """Return a port that nothing uses, below those that the system gives to whoever asks for any."""
    while True:
        with socket.socket() as sock, suppress(OSError):
            port = 20_000 + secrets.randbelow(12_000)
            sock.bind(("127.0.0.1", port))
            return port


@contextmanager
def _served(account: Account, found: Path, data: Path, port: int, *settings: str) -> Iterator[None]:
    usual = (f"port={port}", "listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off")
    options = [word for setting in (*usual, *settings) for word in ("-c", setting)]
    with _started(account, found / "postgres", "-D", data, *options) as server:
        wait_until(lambda: _ready(found, port) or server.poll() is not None, step=0.1)
        yield


@contextmanager
def _started(account: Account, *command: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    server = subprocess.Popen(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **_as(account),
    )
    try:
        yield server
    finally:
        server.send_signal(signal.SIGINT)  # PostgreSQL and PgBouncer end at once, without waiting for clients
        server.wait(PATIENCE)


def _run(account: Account, *command: str | Path) -> None:
    subprocess.run([str(part) for part in command], check=True, capture_output=True, **_as(account))


def _as(account: Account) -> dict[str, Any]:
    if account.ids is None:
        return {"cwd": "/"}
    return {"cwd": "/", "user": account.ids[0], "group": account.ids[1], "extra_groups": []}


def _ready(found: Path, port: int) -> bool:
    done = subprocess.run([found / "pg_isready", "-h", "127.0.0.1", "-p", str(port), "-q"], check=False)
    return done.returncode == 0
