"""Run a whole command and measure it from outside."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

_LOOK = 0.02


@dataclass(frozen=True)
class Run:
    """A finished command: its seconds from start to end, the most memory it ever held, what it printed."""

    seconds: float
    peak_mb: float
    status: int
    output: str


def toolkit(args: Sequence[str | Path], environ: Mapping[str, str]) -> Run:
    """Run ``toolkit`` with ``args``."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "toolkit", "-q", *map(str, args)]
    # Compiling some 1,300 modules anew each time would take longer than to load 100,000 rows.
    environ = {name: value for name, value in environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)
    peak = 0.0
    status = None
    while status is None:
        peak = max(peak, peak_mb(process.pid))
        try:
            status = process.wait(_LOOK)
        except subprocess.TimeoutExpired:
            continue
    seconds = time.perf_counter() - started
    assert process.stdout is not None
    return Run(seconds, peak, status, process.stdout.read())


def server_cpu(home: Path) -> float:
    """The CPU seconds of the PostgreSQL that is embedded under ``home``, with those of sessions that ended."""
    server = psutil.Process(int(next(home.rglob("postmaster.pid")).read_text().split()[0]))
    while True:
        before = server.cpu_times()
        try:
            times = [before, *(session.cpu_times() for session in server.children())]
        except psutil.NoSuchProcess:
            continue
        if server.cpu_times().children_user == before.children_user:
            return sum(each.user + each.system for each in times) + before.children_user + before.children_system


def peak_mb(pid: int | str = "self") -> float:
    """The most memory that a process ever held, 0 for one that has ended."""
    # The high-water mark belongs to the program, where ru_maxrss would start with that of its parent.
    with suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        return int(found[1]) * 1024 / 1e6 if found else 0.0
    return 0.0
