"""The embedded PostgreSQL: made once, started when nobody else did, found by its ``postmaster.pid``."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
from sqlalchemy import URL

from toolkit.errors import EmbeddedServiceError
from toolkit.storage.embedded import processes
from toolkit.storage.embedded.account import Account, account
from toolkit.storage.embedded.home import alone, explained, folder_bytes, prepare, private_folder, tail
from toolkit.storage.embedded.programs import MAJOR, PACKAGE_VERSION, programs
from toolkit.storage.embedded.status import ServiceStatus

NAME: Final = "PostgreSQL"
DATABASE: Final = "toolkit"
USER: Final = "toolkit"

_START_SECONDS: Final = 60
_STOP_SECONDS: Final = 30
_STRAY_SECONDS: Final = 5
_SOCKET: Final = ".s.PGSQL.5432"
_SOCKET_PATH_BYTES: Final = 103 if sys.platform == "darwin" else 107
_SHORT_PLACE: Final = Path("/tmp")  # noqa: S108  # only for private folders with names nobody can foresee
_SHORT: Final = "evidence-toolkit-"
"""Prefix of the folders for the sockets of homes with long names."""

_SETTINGS: Final = {
    "listen_addresses": "",
    "unix_socket_permissions": "0777",  # its folder is private, and every caller is asked who it is
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
    "log_checkpoints": "off",
    "log_error_verbosity": "terse",  # a detail may quote a row, and rows are personal data
    "log_min_error_statement": "panic",
}


@dataclass(frozen=True, slots=True)
class _Running:
    process: psutil.Process
    socket_folder: Path
    ready: bool


def url(home: Path) -> str:
    """The URL of the database; starts the server where it does not run."""
    running = _running(home)
    if running is None or not running.ready:
        prepare(home)
        with alone(home, "postgres"):
            running = _ready(home) or _start(home)
    return _url(running)


def status(home: Path) -> ServiceStatus:
    """What runs; starts nothing."""
    running = _running(home)
    return ServiceStatus(
        name=NAME,
        version=PACKAGE_VERSION,
        pid=running.process.pid if running else None,
        address=str(running.socket_folder / _SOCKET) if running else None,
        url=_url(running) if running else None,
        data=_data(home),
        data_bytes=folder_bytes(_data(home)),
        log=_log(home),
    )


def stop(home: Path) -> bool:
    """End the server, if it runs, as soon as its current statements are rolled back."""
    if not _folder(home).exists():
        return False
    with alone(home, "postgres"):
        running = _running(home)
        if running is not None:
            with explained(_folder(home)):
                ended = processes.end(running.process, signal.SIGINT, within=_STOP_SECONDS, firmly=signal.SIGQUIT)
            if not ended:
                raise EmbeddedServiceError(
                    f"PostgreSQL (process {running.process.pid}) does not end; see {_log(home)}"
                )
        _clear(home)
        return running is not None


def _folder(home: Path) -> Path:
    return home / "postgres"


def _data(home: Path) -> Path:
    return _folder(home) / "data"


def _log(home: Path) -> Path:
    return _folder(home) / "log"


def _pid_file(home: Path) -> Path:
    return _data(home) / "postmaster.pid"


def _url(running: _Running) -> str:
    place = URL.create(
        "postgresql+psycopg", username=USER, database=DATABASE, query={"host": str(running.socket_folder)}
    )
    return place.render_as_string(hide_password=False)


def _running(home: Path) -> _Running | None:
    """The server of this home, by the lines of its pid file: pid, data, start, port, socket folder, ..., state."""
    try:
        lines = _pid_file(home).read_text("utf-8").splitlines()
    except OSError:
        return None
    process = processes.serving(int(lines[0]), _data(home)) if lines else None
    if process is None:
        return None
    ready = len(lines) > 7 and lines[7].strip() == "ready"
    return _Running(process, Path(lines[4]) if ready else _folder(home), ready)


def _ready(home: Path) -> _Running | None:
    """The server once it answers, or ``None`` when there is none or it went away."""
    running: _Running | None = None

    def settled() -> bool:
        nonlocal running
        running = _running(home)
        return running is None or running.ready

    processes.wait_until(settled, _START_SECONDS)
    return running if running is not None and running.ready else None


def _start(home: Path) -> _Running:
    owner = account(_folder(home))
    private_folder(_folder(home), owner=owner.ids)
    binaries = programs(home, owner)
    if not _data(home).exists():
        _initialise(home, binaries, owner)
    _check_version(home)
    _clear(home)
    socket_folder = _socket_folder(home, owner)
    settings = {**_SETTINGS, "unix_socket_directories": '"' + str(socket_folder).replace('"', '""') + '"'}
    if sys.platform == "linux":
        settings["dynamic_shared_memory_type"] = "sysv"  # a container's /dev/shm is too small for parallel queries
    command: list[str | Path] = [binaries / "postgres", "-D", _data(home)]
    for name, value in settings.items():
        command += ["-c", f"{name}={value}"]
    with explained(_folder(home)):
        processes.launch(command, _log(home), owner=owner.ids)
    # The new server needs a moment to write its pid file; before that there is nothing to wait for.
    processes.wait_until(_pid_file(home).exists, _STRAY_SECONDS)
    running = _ready(home)
    if running is None:
        raise EmbeddedServiceError(
            f"PostgreSQL did not start in {home}. The end of its log {_log(home)}:\n{tail(_log(home))}"
        )
    return running


def _initialise(home: Path, binaries: Path, owner: Account) -> None:
    """Make the data folder beside its place and move it there when it is whole."""
    with explained(home):
        draft = Path(tempfile.mkdtemp(prefix=".init-", dir=_folder(home)))
        try:
            if owner.ids is not None:
                os.chown(draft, *owner.ids)
            _run(
                [
                    *(
                        binaries / "initdb",
                        "-D",
                        str(draft),
                        "-U",
                        USER,
                        "--encoding=UTF8",
                        "--no-instructions",
                    ),
                    *("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"),
                    *("--auth=peer", "--data-checksums"),
                ],
                owner,
                home,
            )
            _let_in(draft, owner)
            _run(
                [binaries / "postgres", "--single", "-D", str(draft), "postgres"],
                owner,
                home,
                f"CREATE DATABASE {DATABASE}\n",
            )
            draft.rename(_data(home))
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise


def _let_in(data: Path, owner: Account) -> None:
    """Only the two accounts that share this server may connect, as the kernel tells who they are."""
    (data / "pg_hba.conf").write_text("local all all peer map=home\n", "utf-8")
    names = sorted({owner.name, owner.caller, "root"})
    (data / "pg_ident.conf").write_text("".join(f'home "{name}" {USER}\n' for name in names), "utf-8")


def _run(command: list[str | Path], owner: Account, home: Path, text: str = "") -> None:
    result = processes.run(command, owner=owner.ids, text=text)
    # The single-user server goes on after a failed statement, and ends with 0.
    complaints = [line for line in result.stderr.splitlines() if re.search("error:|ERROR:|FATAL:|PANIC:", line)]
    if result.returncode != 0 or complaints:
        reason = (
            complaints[-1].strip() if complaints else f"{Path(command[0]).name} ended with {result.returncode}"
        )
        raise EmbeddedServiceError(
            f"PostgreSQL cannot make its data folder in {home}: {reason}. "
            "If the disk is full free some space, or set TOOLKIT_HOME to another folder."
        )


def _check_version(home: Path) -> None:
    with explained(_data(home)):
        found = (_data(home) / "PG_VERSION").read_text("ascii").strip()
    if found != MAJOR:
        raise EmbeddedServiceError(
            f"The data in {_data(home)} were written by PostgreSQL {found}, and this toolkit brings {MAJOR}. "
            f"Use a toolkit that brings {found}, or start afresh by moving {_folder(home)} away."
        )


def _clear(home: Path) -> None:
    """Remove what a killed server left: its last processes, its pid file and its socket folder.

    As long as one of its processes lives the data are in use, so these end first.
    """
    if not _pid_file(home).exists():
        return
    processes.wait_until(lambda: not processes.inside(_data(home)), _STRAY_SECONDS)
    for stray in processes.inside(_data(home)):
        processes.end(stray, signal.SIGQUIT, within=_STRAY_SECONDS, firmly=signal.SIGKILL)
    with explained(_data(home)):
        lines = _pid_file(home).read_text("utf-8").splitlines()
        if len(lines) > 4 and Path(lines[4]).name.startswith(_SHORT):
            shutil.rmtree(lines[4], ignore_errors=True)
        _pid_file(home).unlink(missing_ok=True)


def _socket_folder(home: Path, owner: Account) -> Path:
    """The server's own folder, or a fresh private one with a short name where the path would be too long."""
    if len(os.fsencode(_folder(home) / _SOCKET)) <= _SOCKET_PATH_BYTES:
        return _folder(home)
    with explained(_SHORT_PLACE):
        folder = Path(tempfile.mkdtemp(prefix=_SHORT, dir=_SHORT_PLACE))
        if owner.ids is not None:
            os.chown(folder, *owner.ids)
    return folder
