"""Start the embedded S3 server where it does not run, and find it by its pid file."""

import json
import os
import secrets
import signal
import sys
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import psutil

from toolkit.embedded import object_server, processes
from toolkit.embedded.home import (
    ServiceStatus,
    alone,
    explained,
    failure,
    folder_bytes,
    prepare,
    private_folder,
)
from toolkit.embedded.processes import Account, claim, is_claimed, server_account

NAME: Final = "S3 server"

_FOLDER: Final = Path("objects")
"""Below the home, as the following."""
_KEYS: Final = _FOLDER / "keys.json"
_LOG: Final = _FOLDER / "log"
_PID_FILE: Final = _FOLDER / "server.pid"

_START_SECONDS: Final = 60
_STOP_SECONDS: Final = 15


@dataclass(frozen=True, slots=True)
class BucketAccess:
    """The access data of an S3 client; the secret is left out of its ``repr``."""

    endpoint_url: str
    region: str
    access_key: str
    secret_key: str = field(repr=False)
    bucket: str


@dataclass(frozen=True, slots=True)
class _RunningServer:
    process: psutil.Process
    port: int

    @property
    def endpoint(self) -> str:
        return f"http://{object_server.HOST}:{self.port}"


def access(home: Path) -> BucketAccess:
    """Return the access to the bucket; starts the server where it does not run."""
    running = _running(home)
    if running is None:
        prepare(home)
        with alone(home, "objects"):
            running = _ready(home) or _start(home)
    with explained(home / _KEYS):
        keys = json.loads((home / _KEYS).read_text("utf-8"))
    return BucketAccess(
        endpoint_url=running.endpoint,
        region=object_server.REGION,
        access_key=keys["access_key"],
        secret_key=keys["secret_key"],
        bucket=object_server.BUCKET,
    )


def status(home: Path) -> ServiceStatus:
    """Return the state of the server; starts nothing."""
    running = _running(home)
    return ServiceStatus(
        name=NAME,
        version=_version(),
        pid=running.process.pid if running else None,
        address=running.endpoint if running else None,
        url=running.endpoint if running else None,
        data=home / _FOLDER / "data",
        data_bytes=folder_bytes(home / _FOLDER / "data"),
        log=home / _LOG,
    )


def stop(home: Path) -> bool:
    """End the server, if it runs, after the requests that it is answering; tell whether it ran."""
    if not (home / _FOLDER).exists():
        return False
    with alone(home, "objects"):
        running = _running(home)
        if running is not None and not processes.end(
            running.process, signal.SIGTERM, within=_STOP_SECONDS, firmly=signal.SIGKILL
        ):
            raise failure(f"The S3 server (process {running.process.pid}) does not end", home, home / _LOG)
        (home / _PID_FILE).unlink(missing_ok=True)
        return running is not None


def _version() -> str | None:
    try:
        return f"ministack {version('ministack')}"
    except PackageNotFoundError:
        return None


def _running(home: Path) -> _RunningServer | None:
    try:
        pid, port = (home / _PID_FILE).read_text("ascii").split()
    except (OSError, ValueError):
        return None
    process = processes.serving(int(pid), home / _FOLDER)
    return None if process is None else _RunningServer(process, int(port))


def _ready(home: Path) -> _RunningServer | None:
    """Return the server once it answers, ``None`` where none lives (any more)."""
    processes.wait_until(lambda: _running(home) is not None or not is_claimed(home / _FOLDER), _START_SECONDS)
    return _running(home)


def _start(home: Path) -> _RunningServer:
    folder = home / _FOLDER
    owner = server_account(folder, root_may=True)
    private_folder(folder, owner)
    with claim(folder, leftover=lambda process: process.cmdline()[-2:] == _arguments(folder)) as descriptor:
        (home / _PID_FILE).unlink(missing_ok=True)
        if not (home / _KEYS).exists():
            _make_keys(home / _KEYS, owner)
        command = [sys.executable, "-P", *_arguments(folder)]
        packages = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if Path(path).is_absolute())}
        processes.launch(command, home / _LOG, owner=owner.ids, claim=descriptor, environ=packages)
    running = _ready(home)
    if running is None:
        raise failure("The S3 server did not start", home, home / _LOG)
    return running


def _arguments(folder: Path) -> list[str]:
    return [object_server.__file__, str(folder)]


def _make_keys(path: Path, owner: Account) -> None:
    keys = {"access_key": "AKIA" + secrets.token_hex(8).upper(), "secret_key": secrets.token_urlsafe(30)}
    draft = path.with_suffix(".draft")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(keys, file)
    owner.give(draft)
    draft.replace(path)
