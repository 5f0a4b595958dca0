"""A second, independent S3 server for the tests: Ceph's RADOS Gateway.

One that runs already is named by ``TEST_GATEWAY_ENDPOINT``, ``TEST_GATEWAY_ACCESS_KEY`` and
``TEST_GATEWAY_SECRET_KEY``. Otherwise, where Ceph is installed, a small one is started on loopback for this
run of the tests. It watches the process that runs them and ends with it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from filelock import FileLock

PROGRAMS: Final = ("ceph-mon", "ceph-osd", "radosgw", "ceph", "monmaptool", "radosgw-admin")

_START_SECONDS: Final = 300

_started: list[subprocess.Popen[bytes]] = []
"""The processes that this one started; they end by themselves."""


@dataclass(frozen=True)
class Gateway:
    endpoint_url: str
    access_key: str
    secret_key: str = field(repr=False)


def reason_without() -> str | None:
    """Return the reason why there is no gateway to test with; ``None`` where there is one."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if not missing or "TEST_GATEWAY_ENDPOINT" in os.environ:
        return None
    return (
        f"no Ceph object gateway: {', '.join(missing)} not installed (on Debian: apt-get install radosgw ceph-mon "
        "ceph-osd ceph-common) and TEST_GATEWAY_ENDPOINT not set"
    )


def find(owner: int) -> Gateway:
    """The gateway of this run of the tests, started by whoever asks first; it ends with the process ``owner``."""
    if "TEST_GATEWAY_ENDPOINT" in os.environ:
        return Gateway(*(os.environ[f"TEST_GATEWAY_{name}"] for name in ("ENDPOINT", "ACCESS_KEY", "SECRET_KEY")))
    folder = Path(tempfile.gettempdir()) / f"toolkit-gateway-{os.getuid()}-{owner}"
    with FileLock(f"{folder}.lock"):
        ready = folder / "ready.json"
        if not ready.exists():
            _start(folder, owner)
        return Gateway(**json.loads(ready.read_text()))


def _start(folder: Path, owner: int) -> None:
    folder.mkdir(mode=0o700)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.gateway", str(folder), str(owner)],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    _started.append(process)
    deadline = time.monotonic() + _START_SECONDS
    while not (folder / "ready.json").exists():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            tail = (folder / "log").read_text(errors="replace")[-2000:]
            raise RuntimeError(f"the object gateway did not start:\n{tail}")
        time.sleep(0.1)
