"""Homes of their own for tests that start, kill and stop servers, and processes that use them."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.support.waiting import PATIENCE, wait_until
from toolkit import embedded

AS_ROOT = os.geteuid() == 0
NOBODY = 65534

_OPEN = """
import sys
from pathlib import Path
from toolkit import embedded
print(embedded.{})
"""
OPEN_DATABASE = _OPEN.format("database_url(Path(sys.argv[1]))")
OPEN_BUCKET = _OPEN.format("bucket_access(Path(sys.argv[1])).s3_endpoint")


def start(code, home, **options):
    """Python running ``code`` with ``home`` as its argument."""
    return subprocess.Popen(
        [options.pop("python", sys.executable), "-c", code, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        **options,
    )


def kill(pid):
    """Kill a process, and wait until it is gone."""
    os.kill(pid, signal.SIGKILL)
    process = psutil.Process(pid)
    wait_until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)


def finish(process):
    """Wait for the process to end well, and return its output."""
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    return output.strip()


def as_ordinary_user():
    """The options of ``start`` for somebody who is not root; skips the test where there is no Python for him."""
    if not AS_ROOT:
        return {}
    options = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        options |= {"python": python, "env": os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}}
        try:
            probe = start("import toolkit.embedded", Path("/"), **options)
        except OSError:
            continue
        if probe.communicate() and probe.returncode == 0:
            return options
    pytest.skip("no Python that runs the toolkit is open to an ordinary user here")


def processes_of(home):
    """The command lines of all processes that have to do with ``home``."""
    found = []
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
            if process.pid != os.getpid() and (str(home) in words or str(home) in process.cwd()):
                found.append(words)
        except psutil.Error:
            continue
    return found


@contextmanager
def small_disk(folder, *, megabytes):
    """A disk of its own at ``folder``; skips the test where that cannot be had."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", str(folder)]
    if not AS_ROOT or shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("only root can mount a small disk, and not on every machine")
    try:
        yield
    finally:
        embedded.stop(folder)
        wait_until(lambda: subprocess.run(["umount", folder], capture_output=True).returncode == 0)


def fill_up(filler):
    """Write into a file until its disk is full."""
    with pytest.raises(OSError, match="No space"), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
