"""Start, find and end a service of a home; make and lock that folder, and explain its errors."""

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from toolkit.embedded.processes import Account, end, lives, locked, wait_until
from toolkit.errors import EmbeddedServiceError
from toolkit.message import Message

PATIENCE: Final = 90
"""Seconds that a start or stop waits for another one of the same service."""

_START_SECONDS: Final = 60
_STOP_SECONDS: Final = 30


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """One service of one home, as it is at this moment."""

    name: str
    version: str | None
    """The version that this toolkit would start; ``None`` where it is not installed."""
    pid: int | None
    """The process that serves; ``None`` where none runs."""
    address: str | None
    """The socket or the endpoint, while it runs."""
    url: str | None
    """The address that a client connects to, while it runs; it holds no password."""
    data: Path
    log: Path


@dataclass(frozen=True, slots=True)
class Running:
    """A server that runs, or is about to; ``ready`` where it answers."""

    process: psutil.Process
    address: str
    url: str
    ready: bool = True


@dataclass(frozen=True, slots=True)
class EmbeddedServer:
    """A server of one home: its ``folder`` there, and what differs from the other one.

    ``find`` returns it where it runs, ``launch`` starts it and returns its number, ``clean`` removes what it left.
    """

    name: str
    folder: Path
    version: Callable[[], str | None]
    find: Callable[[Path], Running | None]
    launch: Callable[[Path], int]
    clean: Callable[[Path], None]
    gently: int
    firmly: int

    def running(self, home: Path) -> Running:
        """Return the server that answers; starts it where it does not run."""
        found = self.find(home)
        if found is None or not found.ready:
            prepare(home)
            with alone(home, str(self.folder)):
                found = self._ready(home) or self._started(home)
        return found

    def status(self, home: Path) -> ServiceStatus:
        """Return the state of the server; starts nothing."""
        found = self.find(home)
        pid, address, url = (found.process.pid, found.address, found.url) if found else (None, None, None)
        return ServiceStatus(
            self.name, self.version(), pid, address, url, home / self.folder / "data", self._log(home)
        )

    def stop(self, home: Path) -> bool:
        """End the server, if it runs, after rolling back what is under way; tell whether it ran."""
        if not (home / self.folder).exists():
            return False
        with alone(home, str(self.folder)):
            found = self.find(home)
            if found is not None and not end(found.process, self.gently, within=_STOP_SECONDS, firmly=self.firmly):
                raise failure(f"{self.name} (process {found.process.pid}) does not end", home, self._log(home))
            self.clean(home)
            return found is not None

    def _ready(self, home: Path) -> Running | None:
        """Return the server once it answers, ``None`` where none runs (any more)."""
        wait_until(lambda: (found := self.find(home)) is None or found.ready, _START_SECONDS)
        found = self.find(home)
        if found is not None and not found.ready:
            what = f"{self.name} has been starting or stopping for {_START_SECONDS} seconds"
            raise failure(what, home, self._log(home))
        return found

    def _started(self, home: Path) -> Running:
        pid = self.launch(home)
        wait_until(lambda: self.find(home) is not None or not lives(pid), _START_SECONDS)
        found = self._ready(home)
        if found is None:
            self.clean(home)
            raise failure(f"{self.name} did not start", home, self._log(home))
        return found

    def _log(self, home: Path) -> Path:
        return home / self.folder / "log"


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
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(home))
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
    refusal = EmbeddedServiceError(
        "Another process has been starting or stopping {} in {} for {} seconds. Try again; if it stays so, run: "
        "toolkit down",
        *(service, home, PATIENCE),
    )
    with explained(home), locked(home / f"{service}.lock", PATIENCE, refusal):
        yield


@contextmanager
def explained(home: Path) -> Iterator[None]:
    """Turn errors of the operating system in ``home`` into texts that say what to do."""
    try:
        yield
    except OSError as error:
        path, told = error.filename or home, error.strerror or error
        raise EmbeddedServiceError(
            "The embedded services cannot use {}: {}. Set TOOLKIT_HOME to a folder on this machine that you may "
            "write to.",
            path,
            told,
        ) from None


def failure(what: str, home: Path, log: Path) -> EmbeddedServiceError:
    """Return the error that a service failed, with the end of its log."""
    text = log.read_text("utf-8", "replace") if log.exists() else "(there is none)"
    told = Message("{} in {}. The end of its log {}:", what, home, log)
    return EmbeddedServiceError("{}\n{}", told, "\n".join(text.strip().splitlines()[-3:]))
