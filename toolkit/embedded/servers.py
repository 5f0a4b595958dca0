"""Start servers that outlive this process, find them again, and end them; choose their account and their home.

A process is known again by its command line, which holds the path of the folder that it serves. That tells it
from a later process with the same number, and unlike a start time it does not move when the clock is set.
"""

import errno
import fcntl
import os
import pwd
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Final

import psutil

from toolkit.errors import EmbeddedServiceError
from toolkit.message import Message

_STEP: Final = 0.01

_INHERITED: Final = ("PATH", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""The variables that a server gets of ours: no ``PG*``, no ``AWS_*``, nothing that is set for other programs."""


def run(
    command: Sequence[str],
    *,
    owner: tuple[int, int] | None,
    text: str = "",
    keep: Sequence[int] = (),
    environ: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program of ours to its end, as ``owner`` (uid and gid; the caller, where ``None``).

    Of our open files it gets those in ``keep``, and no other.
    """
    uid, gid = owner or (None, None)
    inherited = {name: text for name, text in os.environ.items() if name in _INHERITED}
    return subprocess.run(  # noqa: S603  # every command is written in this package
        command,
        check=False,
        input=text,
        capture_output=True,
        text=True,
        errors="replace",
        start_new_session=True,
        umask=0o077,
        pass_fds=keep,
        cwd="/",
        env={**inherited, "LC_ALL": "C", "PGTZ": "UTC", **(environ or {})},
        user=uid,
        group=gid,
        extra_groups=[] if owner else None,
    )


def launch(
    command: Sequence[str],
    log: Path,
    *,
    owner: tuple[int, int] | None,
    lock: int,
    environ: Mapping[str, str] | None = None,
) -> int:
    """Start ``command`` as a daemon that appends to ``log`` and keeps the file ``lock`` open; return its number.

    The shell leaves at once, so that the server is nobody's child; it has a session of its own, hence no
    terminal and no Ctrl-C, and no other open file of ours, such as a pipe that a reader waits for.
    """
    detach = 'log=$1; shift; "$@" </dev/null >>"$log" 2>&1 & echo $!'
    return int(
        run(["/bin/sh", "-c", detach, "sh", str(log), *command], owner=owner, keep=[lock], environ=environ).stdout
    )


def serving(pid: int, folder: Path) -> psutil.Process | None:
    """Return the process ``pid`` if it is the one that serves ``folder``."""
    try:
        process = psutil.Process(pid)
        return process if str(folder) in process.cmdline() else None
    except psutil.Error:
        return None


def end(process: psutil.Process, gently: int, firmly: int, *, within: float) -> bool:
    """End ``process`` by signal ``gently``, after ``within`` seconds by ``firmly``; return whether it ended."""
    for number in (gently, firmly):
        with suppress(psutil.Error):
            process.send_signal(number)
        if wait_until(lambda: not lives(process.pid), within):
            return True
    return False


def lives(pid: int) -> bool:
    """Tell whether a process lives; one that ended may stay in the table until init asks for its result."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(done: Callable[[], bool], seconds: float) -> bool:
    """Wait until ``done`` is true; tell whether it became so in time."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(_STEP)
    return True


SYSTEM_USER: Final = "evidence-toolkit"


@dataclass(frozen=True, slots=True)
class Account:
    """The account that a server runs under, and the one that calls it."""

    name: str
    caller: str
    ids: tuple[int, int] | None
    """uid and gid to switch to; ``None`` where server and caller are the same."""

    def give(self, path: Path) -> None:
        """Make the server's account the owner of ``path``."""
        if self.ids is not None:
            os.chown(path, *self.ids, follow_symlinks=False)


def server_account(folder: Path, *, root_may: bool = False) -> Account:
    """Return the account for the server that keeps its data in ``folder``: the folder's owner, once it is there.

    Raises:
        EmbeddedServiceError: the folder is somebody else's, or no account can be had.
    """
    caller = _entry(os.geteuid())
    owner = _entry(folder.stat().st_uid) if folder.exists() else caller
    if owner.pw_uid == 0 and caller.pw_uid == 0 and not root_may:
        owner = _system_user()
    if owner.pw_uid == caller.pw_uid:
        return Account(caller.pw_name, caller.pw_name, None)
    if caller.pw_uid == 0:
        return Account(owner.pw_name, caller.pw_name, (owner.pw_uid, owner.pw_gid))
    raise EmbeddedServiceError(
        "The embedded services in {} belong to {}. Set TOOLKIT_HOME to a folder of your own.",
        folder.parent,
        owner.pw_name,
    )


def check_reach(folder: Path, account: Account) -> None:
    """Make sure that the server can come to its data, which is a matter of the folders around them.

    Raises:
        EmbeddedServiceError: one of them is closed to it. None is opened here: it may be root's home.
    """
    if run(["/bin/sh", "-c", 'cd "$1"', "sh", str(folder)], owner=account.ids).returncode != 0:
        raise EmbeddedServiceError(
            "PostgreSQL does not run as root, and {}, who runs it instead, cannot reach {}. Set TOOLKIT_HOME "
            "to a folder that everybody may pass through, such as /var/lib/evidence-toolkit.",
            account.name,
            folder,
        )


def _system_user() -> pwd.struct_passwd:
    with suppress(KeyError):
        return pwd.getpwnam(SYSTEM_USER)
    if command := shutil.which("useradd") or shutil.which("useradd", path="/usr/sbin:/sbin"):
        # It fails where somebody else has added it just now.
        shell = shutil.which("nologin", path="/usr/sbin:/sbin") or "/bin/false"
        options = ("--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent", "--shell", shell)
        run([command, *options, SYSTEM_USER], owner=None)
    for name in (SYSTEM_USER, "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise EmbeddedServiceError(
        "PostgreSQL does not run as root, and there is no user {} to run it. Add one: useradd --system {}",
        *(SYSTEM_USER, SYSTEM_USER),
    )


def _entry(uid: int) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        raise EmbeddedServiceError(
            "User {} has no entry in the system's user database, which PostgreSQL needs. Add one, or set "
            "DATABASE_URL to a shared database.",
            uid,
        ) from None


PATIENCE: Final = 90  # seconds that a start takes, or waits for another start or stop of the same service
_LEFT_SECONDS: Final = 2  # seconds after which sessions of a server that was killed are ended
_STOP_SECONDS: Final = 30


@dataclass(frozen=True, slots=True)
class Running:
    """A server that runs, or is about to; ``ready`` where it answers."""

    process: psutil.Process
    address: str
    """The socket or the endpoint."""
    url: str
    """The address that a client connects to; it holds no password."""
    ready: bool = True

    @property
    def program_is_gone(self) -> bool:
        """True where the environment that started it was deleted or moved: it cannot read its other files."""
        with suppress(psutil.Error, PermissionError):
            return not Path(self.process.cmdline()[0]).exists()
        return False


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
    installed: Callable[[], str]
    """Returns the version as it is shown, of the package that is installed."""
    find: Callable[[Path], Running | None]
    launch: Callable[[Path, Account, int], int]
    clean: Callable[[Path], None]
    gently: int
    firmly: int

    def running(self, home: Path) -> Running:
        """Return the server that answers; starts it where it does not run, or its program is gone."""
        found = self._answering(home)
        if found is not None and not found.program_is_gone:
            return found
        if found is not None:
            end(found.process, self.gently, self.firmly, within=_STOP_SECONDS)
        prepare(home)
        with explained(home):
            owner = server_account(home / self.folder, root_may=self.root_may)
            (home / self.folder).mkdir(mode=0o700, exist_ok=True)
            owner.give(home / self.folder)
            with self._found_or_locked(home, self._answering) as (found, lock):
                return found or self._started(home, owner, lock)

    @property
    def version(self) -> str | None:
        """The version that this toolkit would start; ``None`` where it is not installed."""
        with suppress(PackageNotFoundError):
            return self.installed()
        return None

    def stop(self, home: Path) -> bool:
        """End the server, if it runs, after rolling back what is under way; tell whether it ran."""
        if not (home / self.folder).exists():
            return False
        with self._found_or_locked(home, self.find) as (found, _):
            if found is not None and not end(found.process, self.gently, self.firmly, within=_STOP_SECONDS):
                raise self._failed(home, f"(process {found.process.pid}) does not end")
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
            with suppress(BlockingIOError):
                if found is None:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            return False

        path = home / self.folder / "serving.lock"
        with path.open("a") as file:
            path.chmod(0o600)
            if os.geteuid() == 0:  # the owner of the folder could not use a file of root
                around = path.parent.stat()
                os.chown(path, around.st_uid, around.st_gid, follow_symlinks=False)
            if not wait_until(settled, _LEFT_SECONDS) and self.find(home) is None:
                for process in psutil.process_iter(["cwd"]):  # sessions of a killed server may go on
                    if process.info["cwd"] == str(path.parent / "data"):
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
            raise self._failed(home, "did not start")
        return found

    def _failed(self, home: Path, how: str) -> EmbeddedServiceError:
        """Return the error that it failed, with the end of its log."""
        log = home / self.folder / "log"
        text = log.read_text("utf-8", "replace") if log.exists() else "(there is none)"
        heading = Message("{} in {}. The end of its log {}:", f"{self.name} {how}", home, log)
        return EmbeddedServiceError("{}\n{}", heading, "\n".join(text.strip().splitlines()[-3:]))


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


@contextmanager
def explained(home: Path) -> Iterator[None]:
    """Turn errors of the operating system in ``home`` into texts that say what to do."""
    try:
        yield
    except OSError as error:
        path, reason = error.filename or home, error.strerror or error
        raise EmbeddedServiceError(
            "The embedded services cannot use {}: {}. Set TOOLKIT_HOME to a folder on this machine that you may "
            "write to.",
            path,
            reason,
        ) from None
