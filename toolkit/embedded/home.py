"""Start, find and end a service of a home; make and lock that folder, and explain its errors."""

import errno
import fcntl
import os
import secrets
import signal
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import psutil

from toolkit.embedded.processes import Account, end, lives, server_account, wait_until, working_in
from toolkit.errors import EmbeddedServiceError
from toolkit.message import Message

PATIENCE: Final = 90
"""Seconds that a start takes, or waits for another start or stop of the same service."""

_LEFT_SECONDS: Final = 2
"""Seconds after which sessions of a server that was killed are ended."""
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

    ``find`` returns it where it runs, ``launch`` starts it under an account and returns its number, ``clean``
    removes what it left. A server holds the lock of its folder for as long as it lives: it inherits the lock from
    the process that starts it, so nobody starts a second one, in another container either.
    """

    name: str
    folder: Path
    root_may: bool
    package: str
    shown: str
    """How its version is shown, given the parts of the package's."""
    find: Callable[[Path], Running | None]
    launch: Callable[[Path, Account, int], int]
    clean: Callable[[Path], None]
    gently: int
    firmly: int

    def running(self, home: Path) -> Running:
        """Return the server that answers; starts it where it does not run."""
        if (found := self._answering(home)) is not None:
            return found
        prepare(home)
        with explained(home):
            owner = server_account(home / self.folder, root_may=self.root_may)
            (home / self.folder).mkdir(mode=0o700, exist_ok=True)
            owner.give(home / self.folder)
            with self._found_or_locked(home, self._answering) as (found, lock):
                return found or self._started(home, owner, lock)

    def status(self, home: Path) -> ServiceStatus:
        """Return the state of the server; starts nothing."""
        found = self.find(home)
        pid, address, url = (found.process.pid, found.address, found.url) if found else (None, None, None)
        known: str | None = None
        with suppress(PackageNotFoundError):
            known = self.shown.format(*version(self.package).split("."))
        return ServiceStatus(self.name, known, pid, address, url, home / self.folder / "data", self._log(home))

    def stop(self, home: Path) -> bool:
        """End the server, if it runs, after rolling back what is under way; tell whether it ran."""
        if not (home / self.folder).exists():
            return False
        with self._found_or_locked(home, self.find) as (found, _):
            if found is not None and not end(found.process, self.gently, self.firmly, within=_STOP_SECONDS):
                raise failure(f"{self.name} (process {found.process.pid}) does not end", home, self._log(home))
        with self._found_or_locked(home, self.find) as (again, _):
            if again is None:
                self.clean(home)
        return found is not None

    def _answering(self, home: Path) -> Running | None:
        found = self.find(home)
        return found if found is not None and found.ready else None

    @contextmanager
    def _found_or_locked(
        self, home: Path, look: Callable[[Path], Running | None]
    ) -> Iterator[tuple[Running | None, int]]:
        """Yield the server that is found; or ``None``, and the lock of its folder that the next one inherits."""
        found: Running | None = None

        def settled() -> bool:
            nonlocal found
            found = look(home)
            return found is not None or _taken(file.fileno())

        path = home / self.folder / "serving.lock"
        with path.open("a") as file:
            path.chmod(0o600)
            if os.geteuid() == 0:  # the owner of the folder could not use a file of root
                around = path.parent.stat()
                os.chown(path, around.st_uid, around.st_gid, follow_symlinks=False)
            if not wait_until(settled, _LEFT_SECONDS) and self.find(home) is None:
                for process in working_in(path.parent / "data"):  # sessions of a killed server may go on
                    end(process, self.firmly, signal.SIGKILL, within=_LEFT_SECONDS)
            if not wait_until(settled, PATIENCE):
                raise EmbeddedServiceError(
                    "{} in {} has been starting or stopping for {} seconds, or runs where it cannot be seen from "
                    "here, maybe in another container. Try again; if it stays so, stop it there (toolkit down), "
                    "or set TOOLKIT_HOME to another folder.",
                    *(self.name, home, PATIENCE),
                )
            yield found, file.fileno()

    def _started(self, home: Path, owner: Account, lock: int) -> Running:
        self.clean(home)
        pid = self.launch(home, owner, lock)
        wait_until(lambda: self._answering(home) is not None or not lives(pid), PATIENCE)
        found = self._answering(home)
        if found is None:
            if not lives(pid):
                self.clean(home)
            raise failure(f"{self.name} did not start", home, self._log(home))
        return found

    def _log(self, home: Path) -> Path:
        return home / self.folder / "log"


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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
