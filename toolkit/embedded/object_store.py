"""Start the embedded S3 server, and find it by its pid file."""

import json
import os
import secrets
import signal
import sys
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from toolkit.embedded import object_server, processes
from toolkit.embedded.home import EmbeddedServer, Running, explained, make_once, private_folder

_FOLDER: Final = Path("objects")
"""Below the home, as the following."""
_KEYS: Final = _FOLDER / "keys.json"
_PID_FILE: Final = _FOLDER / "server.pid"


@dataclass(frozen=True, slots=True)
class BucketAccess:
    """The access data of an S3 client; the secret is left out of its ``repr``."""

    endpoint_url: str
    region: str
    access_key: str
    secret_key: str = field(repr=False)
    bucket: str


def access(home: Path) -> BucketAccess:
    """Return the access to the bucket; starts the server where it does not run."""
    endpoint = SERVICE.running(home).url
    with explained(home / _KEYS):
        keys = json.loads((home / _KEYS).read_text("utf-8"))
    return BucketAccess(endpoint, object_server.REGION, bucket=object_server.BUCKET, **keys)


def _version() -> str | None:
    try:
        return f"ministack {version('ministack')}"
    except PackageNotFoundError:
        return None


def _find(home: Path) -> Running | None:
    try:
        pid, port = (home / _PID_FILE).read_text("ascii").split()
    except (OSError, ValueError):
        return None
    process = processes.serving(int(pid), home / _FOLDER)
    endpoint = f"http://{object_server.HOST}:{port}"
    return None if process is None else Running(process, endpoint, endpoint)


def _launch(home: Path) -> int:
    folder = home / _FOLDER
    owner = processes.server_account(folder, root_may=True)
    private_folder(folder, owner)
    keys = {"access_key": "AKIA" + secrets.token_hex(8).upper(), "secret_key": secrets.token_urlsafe(30)}
    make_once(home / _KEYS, json.dumps(keys).encode())
    owner.give(home / _KEYS)
    packages = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if Path(path).is_absolute())}
    command = [sys.executable, "-P", object_server.__file__, str(folder)]
    with processes.claim(folder) as descriptor:
        _clean(home)
        return processes.launch(command, folder / "log", owner=owner.ids, claim=descriptor, environ=packages)


def _clean(home: Path) -> None:
    (home / _PID_FILE).unlink(missing_ok=True)


SERVICE: Final = EmbeddedServer(
    "S3 server", _FOLDER, _version, _find, _launch, _clean, gently=signal.SIGTERM, firmly=signal.SIGKILL
)
