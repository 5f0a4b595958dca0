"""Make and lock the folder of the embedded services, state what they do in it, and explain its errors."""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from toolkit.embedded.processes import Account, adopt
from toolkit.errors import EmbeddedServiceError
from toolkit.message import Message

PATIENCE: Final = 90
"""Seconds that a start or stop waits for another one of the same service."""

_SPARE_BYTES: Final = 1024 * 1024
_HINT: Final = "set TOOLKIT_HOME to a folder on this machine that you may write to"


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """One service of one home, as it is at this moment."""

    name: str
    version: str | None
    """The version that this toolkit would start; ``None`` where it is not installed."""
    pid: int | None
    """The process that serves; ``None`` where none runs."""
    address: str | None
    """The socket folder or the endpoint, while it runs."""
    url: str | None
    """The address that a client connects to, while it runs; it holds no password."""
    data: Path
    data_bytes: int
    log: Path

    @property
    def running(self) -> bool:
        """Tell whether a process serves."""
        return self.pid is not None


def prepare(home: Path) -> None:
    """Make the home where there is none, and keep others from exchanging what lies in it.

    Root's may be crossed, not listed, by the account of the server.
    """
    as_root = os.geteuid() == 0
    with explained(home):
        for folder in reversed([folder for folder in (home, *home.parents) if not folder.exists()]):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o755 if as_root else 0o700)
        if not home.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "", str(home))
        mode = home.stat().st_mode
        wanted = mode | 0o011 if as_root and not mode & 0o001 else mode
        if not mode & stat.S_ISVTX:  # with it, nobody exchanges what belongs to somebody else
            wanted &= ~stat.S_IWOTH
        if wanted != mode:
            home.chmod(stat.S_IMODE(wanted))


def private_folder(folder: Path, owner: Account) -> None:
    """Make a folder that only ``owner`` and root may enter."""
    folder.mkdir(mode=0o700, exist_ok=True)
    owner.give(folder)


def make_once(path: Path, content: bytes) -> None:
    """Make a file of its owner's only, whole, unless it is there: another process may be first."""
    if path.exists():
        return
    draft = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
        with suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def alone(home: Path, service: str) -> Iterator[None]:
    """Hold the lock under which ``service`` is started and stopped; what fails meanwhile is explained."""
    path = home / f"{service}.lock"
    lock = FileLock(path, timeout=PATIENCE, mode=0o600)
    with explained(home):
        try:
            held = lock.acquire()
        except Timeout:
            raise EmbeddedServiceError(
                "Another process has been starting or stopping {} in {} for {} seconds. Try again; if it "
                "stays so, run: toolkit down",
                service,
                home,
                PATIENCE,
            ) from None
        with held:
            adopt(path)
            yield


@contextmanager
def explained(home: Path) -> Iterator[None]:
    """Turn errors of the operating system in ``home`` into texts that say what to do."""
    try:
        yield
    except OSError as error:
        raise EmbeddedServiceError(_words(error, error.filename or home)) from None


def _words(error: OSError, path: Path | str) -> str:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return f"There is no space left for {path}. Free some, or {_HINT}."
    if error.errno in {errno.EACCES, errno.EPERM}:
        return f"The embedded services have no permission for {path}. Please {_HINT}."
    if error.errno == errno.EROFS:
        return f"The embedded services cannot write {path}, which is on a read-only disk. Please {_HINT}."
    if error.errno in {errno.ENOTDIR, errno.EEXIST}:
        return f"The embedded services need a folder, and {path} is none. Please {_HINT}."
    return f"The embedded services cannot use {path}: {error.strerror or error}. Please {_HINT}."


def folder_bytes(folder: Path) -> int:
    """Return the size of all files below ``folder``, as far as they may be read."""
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(where) / name).lstat().st_size
            except OSError:
                continue  # the server removes files while we look
    return total


def failure(what: str, home: Path, log: Path) -> EmbeddedServiceError:
    """Return the error that a service failed, with the end of its log, or with the news that the disk is full."""
    if shutil.disk_usage(home).free < _SPARE_BYTES:
        return EmbeddedServiceError("{} in {}: there is no space left. Free some, or {}.", what, home, _HINT)
    told = Message("{} in {}. The end of its log {}:", what, home, log)
    return EmbeddedServiceError("{}\n{}", told, _tail(log))


def _tail(log: Path) -> str:
    try:
        text = log.read_text("utf-8", "replace")
    except OSError:
        return "(there is none)"
    return "\n".join(text.strip().splitlines()[-3:])
