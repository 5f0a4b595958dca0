"""Start servers that outlive this process, find them again, and end them.

A process is known again by its command line, which holds the path of the folder that it serves. That tells it
from a later process with the same number, and unlike a start time it does not move when the clock is set.
"""

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

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
        pass_fds=keep,
        umask=0o077,
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
    claim: int,
    environ: Mapping[str, str] | None = None,
) -> None:
    """Start ``command`` as a daemon that appends to ``log`` and keeps the descriptor ``claim`` open.

    The shell leaves at once, so that the server is nobody's child; it has a session of its own, hence no
    terminal and no Ctrl-C, and no other open file of ours: neither a pipe that a reader waits for, nor a lock.
    """
    detach = 'log=$1; shift; "$@" </dev/null >>"$log" 2>&1 &'
    run(["/bin/sh", "-c", detach, "sh", str(log), *command], owner=owner, keep=[claim], environ=environ)


def serving(pid: int, folder: Path) -> psutil.Process | None:
    """Return the process ``pid`` if it is the one that serves ``folder``."""
    try:
        process = psutil.Process(pid)
        return process if str(folder) in process.cmdline() else None
    except psutil.Error:
        return None


def found(matches: Callable[[psutil.Process], bool]) -> list[psutil.Process]:
    """Return the processes of this machine that match, as far as we may look at them."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if matches(process):
                found.append(process)
    return found


def end(process: psutil.Process, gently: int, *, within: float, firmly: int) -> bool:
    """End ``process`` by signal ``gently``, after ``within`` seconds by ``firmly``; return whether it ended."""
    for number in (gently, firmly):
        with suppress(psutil.Error):
            process.send_signal(number)
        if wait_until(lambda: not _lives(process), within):
            return True
    return False


def _lives(process: psutil.Process) -> bool:
    # A process that ended stays in the table until init asks for its result, which may take seconds.
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
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
