"""Identify the process that holds a run, so that another start can tell at once whether it died.

The process table of one machine says nothing about another machine or container. So a process is looked for only
where the machine's boot and the namespace of process numbers are the same as ours; elsewhere the lease decides.
"""

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE: Final = "/proc/self/ns/pid"
_START: Final = 19
"""Place of the start time, in ticks since the boot, among the fields of ``/proc/PID/stat`` after the name."""
_STATE: Final = 0


def this_process() -> dict[str, Any]:
    """Return the process that asks, by its number and its start time, since numbers are given out again."""
    try:
        boot, namespace = _BOOT.read_text().strip(), os.readlink(_NAMESPACE)  # noqa: PTH115  # it is no path
    except OSError:  # no Linux: then only leases tell
        boot = namespace = ""
    here = {"host": socket.gethostname(), "boot": boot, "namespace": namespace, "pid": os.getpid()}
    return here | {"started": _started(os.getpid()) or ""}


def is_dead(held_by: Mapping[str, Any] | None) -> bool:
    """Tell whether the process that holds a run surely died; ``False`` where that cannot be known."""
    here = this_process()
    same = ("boot", "namespace")
    if held_by is None or not here["boot"] or any(held_by.get(name) != here[name] for name in same):
        return False
    return _started(int(held_by["pid"])) != str(held_by["started"])


def _started(pid: int) -> str | None:
    """Return the time at which the process started; ``None`` where it ended, collected by its parent or not."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[_STATE] in {"Z", "X"} else fields[_START]
