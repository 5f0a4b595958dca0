"""Start servers that outlive this process, find them again, and end them; choose their account.

A process is known again by its command line, which holds the path of the folder that it serves. That tells it
from a later process with the same number, and unlike a start time it does not move when the clock is set.
"""

import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from toolkit.errors import EmbeddedServiceError

_STEP: Final = 0.01


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
        env=_environment() | dict(environ or {}),
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


def working_in(folder: Path) -> list[psutil.Process]:
    """Return the processes of this machine that work in a folder, as far as we may look at them."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.cwd() == str(folder):
                found.append(process)
    return found


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


def _environment() -> dict[str, str]:
    """Return the environment of a server: no ``PG*``, no ``AWS_*``, nothing that a user set for other programs."""
    kept = ("PATH", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
    return {**{name: os.environ[name] for name in kept if name in os.environ}, "LC_ALL": "C", "PGTZ": "UTC"}


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
