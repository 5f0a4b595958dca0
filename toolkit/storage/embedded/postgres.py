"""Create the embedded PostgreSQL once, start it where it does not run, find it by its ``postmaster.pid``."""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

import psutil

from toolkit.storage.embedded import processes
from toolkit.storage.embedded.account import Account, check_reach, server_account
from toolkit.storage.embedded.data_directory_lock import claim, is_claimed
from toolkit.storage.embedded.home import ServiceStatus, alone, failure, folder_bytes, prepare, private_folder
from toolkit.storage.embedded.programs import DATABASE, USER, check_version, initialise, postgres_version, programs

NAME: Final = "PostgreSQL"

_FOLDER: Final = Path("postgres")
"""Below the home, as the following."""
_DATA: Final = _FOLDER / "data"
_LOG: Final = _FOLDER / "log"
_PID_FILE: Final = _DATA / "postmaster.pid"

_START_SECONDS: Final = 60
_STOP_SECONDS: Final = 30
_SOCKET: Final = ".s.PGSQL.5432"
_SOCKET_PATH_BYTES: Final = 103 if sys.platform == "darwin" else 107
_SHORT_PLACE: Final = Path("/tmp")  # noqa: S108  # only for private folders with names that nobody can foresee
_SHORT: Final = "evidence-toolkit-"
"""Prefix of the folders for the sockets of homes whose own paths cannot hold one."""

_SETTINGS: Final = {
    "listen_addresses": "",
    "max_connections": "100",
    "shared_buffers": "256MB",
    "work_mem": "32MB",
    "maintenance_work_mem": "128MB",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    "wal_level": "minimal",  # nothing is replicated from here
    "max_wal_senders": "0",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_min_messages": "log",  # a refused statement may quote a row, and rows are personal data
    "log_checkpoints": "off",
}


@dataclass(frozen=True, slots=True)
class _Running:
    process: psutil.Process
    socket_folder: Path
    ready: bool

    @property
    def url(self) -> str:
        # Percent-encoded throughout, so that libpq reads it as SQLAlchemy does.
        host = quote(str(self.socket_folder), safe="")
        return f"postgresql+psycopg://{USER}@/{DATABASE}?host={host}"


def url(home: Path) -> str:
    """Return the URL of the database; starts the server where it does not run."""
    running = _running(home)
    if running is None or not running.ready:
        prepare(home)
        with alone(home, "postgres"):
            running = _ready(home) or _start(home)
    return running.url


def status(home: Path) -> ServiceStatus:
    """Return the state of the server; starts nothing."""
    running = _running(home)
    return ServiceStatus(
        name=NAME,
        version=postgres_version(),
        pid=running.process.pid if running else None,
        address=str(running.socket_folder / _SOCKET) if running else None,
        url=running.url if running else None,
        data=home / _DATA,
        data_bytes=folder_bytes(home / _DATA),
        log=home / _LOG,
    )


def stop(home: Path) -> bool:
    """End the server, if it runs, after rolling back what is under way; tell whether it ran."""
    if not (home / _DATA).exists():
        return False
    with alone(home, "postgres"):
        running = _running(home)
        if running is not None and not processes.end(
            running.process, signal.SIGINT, within=_STOP_SECONDS, firmly=signal.SIGQUIT
        ):
            raise failure(f"PostgreSQL (process {running.process.pid}) does not end", home, home / _LOG)
        with _sole_use(home):
            if running is not None:
                _remove_socket(running.socket_folder)
        return running is not None


def _running(home: Path) -> _Running | None:
    """Read the server from its pid file, by line: pid, data, start, port, socket folder, host, memory, state."""
    try:
        lines = (home / _PID_FILE).read_text("utf-8").splitlines()
        process = processes.serving(int(lines[0]), home / _DATA)
    except (OSError, ValueError, IndexError):
        return None
    if process is None:
        return None
    ready = len(lines) > 7 and lines[7].strip() == "ready"
    return _Running(process, Path(lines[4]) if ready else home / _FOLDER, ready)


def _ready(home: Path) -> _Running | None:
    """Return the server once it answers, ``None`` where none runs (any more)."""
    processes.wait_until(lambda: (running := _running(home)) is None or running.ready, _START_SECONDS)
    running = _running(home)
    if running is not None and not running.ready:
        raise failure(f"PostgreSQL has been starting or stopping for {_START_SECONDS} seconds", home, home / _LOG)
    return running


def _start(home: Path) -> _Running:
    owner = server_account(home / _FOLDER)
    check_reach(home, owner)
    private_folder(home / _FOLDER, owner)
    binaries = programs(home, owner)
    with _sole_use(home) as descriptor:
        if not (home / _DATA).exists():
            initialise(home / _DATA, binaries, owner)
        check_version(home / _DATA)
        socket_folder = _socket_folder(home, owner)
        command = [str(binaries / "postgres"), "-D", str(home / _DATA)]
        for name, value in (_SETTINGS | _places(socket_folder)).items():
            command += ["-c", f"{name}={value}"]
        processes.launch(command, home / _LOG, owner=owner.ids, claim=descriptor)
    processes.wait_until(lambda: _running(home) is not None or not is_claimed(home / _FOLDER), _START_SECONDS)
    running = _ready(home)
    if running is None:
        _remove_socket(socket_folder)
        raise failure("PostgreSQL did not start", home, home / _LOG)
    return running


@contextmanager
def _sole_use(home: Path) -> Iterator[int]:
    """Hold the claim on the data, with nothing left of a server that was killed."""

    def leftover(process: psutil.Process) -> bool:
        return process.name() == "postgres" and process.cwd() == str(home / _DATA)

    with claim(home / _FOLDER, leftover=leftover) as descriptor:
        if (home / _PID_FILE).exists():
            lines = (home / _PID_FILE).read_text("utf-8").splitlines()
            if len(lines) > 4 and lines[4]:
                _remove_socket(Path(lines[4]))
            (home / _PID_FILE).unlink()
        yield descriptor


def _remove_socket(folder: Path) -> None:
    """Remove what would keep the next server from its socket, and the folder if it was made for that only."""
    if folder.parent == _SHORT_PLACE and folder.name.startswith(_SHORT):
        shutil.rmtree(folder, ignore_errors=True)
    else:
        for name in (_SOCKET, f"{_SOCKET}.lock"):
            (folder / name).unlink(missing_ok=True)


def _socket_folder(home: Path, owner: Account) -> Path:
    """Return the server's own folder, or a private one with a short name where that path cannot hold a socket."""
    folder = home / _FOLDER
    # libpq takes a comma for the end of one host's name, and the operating system limits the path.
    if "," in str(folder) or len(os.fsencode(folder / _SOCKET)) > _SOCKET_PATH_BYTES:
        folder = Path(tempfile.mkdtemp(prefix=_SHORT, dir=_SHORT_PLACE))
        owner.give(folder)
    return folder


def _places(socket_folder: Path) -> dict[str, str]:
    """Return the settings that depend on where we are."""
    quoted = str(socket_folder).replace('"', '""')
    # A container's /dev/shm, the usual place, is too small for parallel queries.
    memory = "sysv" if sys.platform == "linux" else "posix"
    return {"unix_socket_directories": f'"{quoted}"', "dynamic_shared_memory_type": memory}
