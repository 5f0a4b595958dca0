"""The PostgreSQL and the S3 server that the toolkit brings along, for trying out and for tests.

Both live under one folder (``TOOLKIT_HOME``), start at their first use, are shared by every process that names
the same folder, outlive the process that started them, and end with ``stop``. They are reached by their owner
only: PostgreSQL by a Unix socket that asks the kernel who is calling, the S3 server on the loopback interface
by keys that only the owner can read.
"""

import json
import os
import secrets
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

from toolkit.atomic_files import make_once
from toolkit.embedded import object_server, postgres
from toolkit.embedded.servers import Account, EmbeddedServer, Running, explained, launch, serving
from toolkit.errors import EmbeddedServiceError
from toolkit.extras import require
from toolkit.settings import AwsSettings

_FOLDER: Final = Path("objects")  # below the home, as the following
_KEYS: Final = _FOLDER / object_server.KEYS
_PID_FILE: Final = _FOLDER / "server.pid"

BUCKET: Final = object_server.BUCKET

NEVER: Final = datetime.max.replace(tzinfo=UTC)
"""The end of the session of the embedded bucket: its forms end by their policy alone."""


def require_installed() -> None:
    """Make sure that the packages of the services are there.

    Raises:
        NotInstalled: the extra ``embedded`` is missing.
    """
    require("embedded", "The embedded services, used where DATABASE_URL or EVIDENCE_BUCKET is not set,")


def database_url(home: Path) -> str:
    """Return the URL of the embedded database for SQLAlchemy; starts PostgreSQL where it does not run.

    Raises:
        NotInstalled: the extra ``embedded`` is missing.
        EmbeddedServiceError: it cannot be started; the text says why and what to do.
    """
    require_installed()
    return postgres.SERVICE.running(home.resolve()).url


def bucket_access(home: Path) -> AwsSettings:
    """Return the access to the embedded bucket; starts the S3 server, and raises, as ``database_url`` does."""
    require_installed()
    home = home.resolve()
    endpoint = _S3_SERVER.running(home).url
    return AwsSettings(*_keys(home), NEVER, region=object_server.REGION, s3_endpoint=endpoint, embedded=True)


def _keys(home: Path) -> tuple[str, str, str]:
    """Return the keys of the session of the S3 server: the access key, its secret, the token."""
    path = home / _KEYS
    with explained(path):
        try:
            key, secret, token = json.loads(path.read_text("utf-8")).values()
        except (ValueError, AttributeError):
            raise EmbeddedServiceError(
                "{} is damaged. Run toolkit down, delete it, and run toolkit up; earlier upload forms end.",
                path,
            ) from None
    return key, secret, token


def _find(home: Path) -> Running | None:
    try:
        pid, port = (home / _PID_FILE).read_text("ascii").split()
    except (OSError, ValueError):
        return None
    process = serving(int(pid), home / _FOLDER)
    endpoint = f"http://{object_server.HOST}:{port}"
    return None if process is None else Running(process, endpoint, endpoint)


def _launch(home: Path, owner: Account, lock: int) -> int:
    folder = home / _FOLDER
    keys = {
        "access_key": "ASIA" + secrets.token_hex(8).upper(),
        "secret_key": secrets.token_urlsafe(30),
        "session_token": secrets.token_urlsafe(60),
    }
    make_once(home / _KEYS, json.dumps(keys).encode())
    owner.give(home / _KEYS)
    _keys(home)
    packages = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if Path(path).is_absolute())}
    command = [sys.executable, "-P", object_server.__file__, str(folder)]
    return launch(command, folder / "log", owner=owner.ids, lock=lock, environ=packages)


_S3_SERVER: Final = EmbeddedServer(
    name="S3 server",
    folder=_FOLDER,
    root_may=True,
    installed=lambda: f"ministack {version('ministack')}",
    find=_find,
    launch=_launch,
    clean=lambda home: (home / _PID_FILE).unlink(missing_ok=True),
    gently=signal.SIGTERM,
    firmly=signal.SIGKILL,
)

SERVICES: Final = (postgres.SERVICE, _S3_SERVER)


def running(home: Path) -> Sequence[Running | None]:
    """Return what runs of the embedded services, PostgreSQL first; starts nothing and creates nothing."""
    return [service.find(home.resolve()) for service in SERVICES]


def stop(home: Path) -> Sequence[str]:
    """Stop what runs and return the names of the services that ran; the data stay.

    Raises:
        EmbeddedServiceError: a service does not end, or belongs to somebody else.
    """
    with explained(home):
        return [service.name for service in SERVICES if service.stop(home.resolve())]
