"""The PostgreSQL and the S3 server that the toolkit brings along, for trying out and for tests.

Both live under one folder (``TOOLKIT_HOME``), start at their first use, are shared by every process that names
the same folder, outlive the process that started them, and end with ``stop``. They are reached by their owner
only: PostgreSQL by a Unix socket that asks the kernel who is calling, the S3 server on the loopback interface
by keys that only the owner can read.
"""

from collections.abc import Sequence
from pathlib import Path

from toolkit.embedded import object_store, postgres
from toolkit.embedded.home import ServiceStatus, explained
from toolkit.embedded.object_store import BucketAccess
from toolkit.extras import require

__all__ = [
    "BucketAccess",
    "ServiceStatus",
    "bucket_access",
    "database_url",
    "require_installed",
    "statuses",
    "stop",
]

_SERVICES = (postgres.SERVICE, object_store.SERVICE)


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
    return postgres.url(home.resolve())


def bucket_access(home: Path) -> BucketAccess:
    """Return the access to the embedded bucket; starts the S3 server where it does not run.

    Raises:
        NotInstalled: the extra ``embedded`` is missing.
        EmbeddedServiceError: it cannot be started; the text says why and what to do.
    """
    require_installed()
    return object_store.access(home.resolve())


def statuses(home: Path) -> Sequence[ServiceStatus]:
    """Return the state of the embedded services, PostgreSQL first; starts nothing and creates nothing."""
    return [service.status(home.resolve()) for service in _SERVICES]


def stop(home: Path) -> Sequence[str]:
    """Stop what runs and return the names of the services that ran; the data stay.

    Raises:
        EmbeddedServiceError: a service does not end, or belongs to somebody else.
    """
    with explained(home):
        return [service.name for service in _SERVICES if service.stop(home.resolve())]
