"""One PostgreSQL and one S3 server for all tests of a run, and for each test a fresh database and bucket.

The process that pytest was started in owns both servers; workers of xdist use them.
"""

import atexit
import functools
import gc
import json
import os
import shutil
import sys
import tempfile
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import boto3
import botocore.session
import psutil
import pytest
import sqlalchemy as sa
from botocore.config import Config
from filelock import FileLock
from hypothesis import Phase
from hypothesis import settings as hypothesis_settings

from tests.support.audits import REMOTE, sail
from tests.support.browser import chromium
from toolkit import embedded
from toolkit.bucket.client import Bucket
from toolkit.cli import main
from toolkit.contract.deadlines import wall_clock
from toolkit.database import schema
from toolkit.database.connection import Database
from toolkit.errors import EmbeddedServiceError
from toolkit.kit.spoken import set_language
from toolkit.settings import Settings


def _fast_folder():
    """Memory where there is enough of it: deleting and making a database's 300 files a thousand times slows ext4.

    pytest's own folders are closed to the system account that PostgreSQL runs under where we are root.
    """
    memory = "/dev/shm"
    with suppress(OSError):
        about = os.statvfs(memory)
        programs_run = not about.f_flag & os.ST_NOEXEC
        if programs_run and about.f_bavail * about.f_frsize > 4 << 30 and os.access(memory, os.W_OK):
            return memory
    return "/tmp"


FAST_FOLDER = _fast_folder()
"""Where homes of PostgreSQL are made for tests."""

_HOME = pytest.StashKey[Path]()
_TEMPLATE = "migrated"
_OURS = ("TOOLKIT_", "AWS_", "EVIDENCE_", "DATABASE_URL", "PG", "COLUMNS")

gc.disable()  # until all tests are collected
# Clients of buckets are made a thousand times; reading the description of S3 takes nine tenths of it.
botocore.session.create_loader = functools.cache(botocore.session.create_loader)

hypothesis_settings.register_profile(
    "suite", deadline=None, derandomize=True, phases=[phase for phase in Phase if phase is not Phase.shrink]
)
hypothesis_settings.register_profile("fuzz", deadline=None, max_examples=2_000)  # make fuzz
hypothesis_settings.load_profile("suite")
"""The same examples at each run, and a failure as it was found: on a slow machine shrinking takes minutes.

For other examples, and the smallest one: ``pytest --hypothesis-profile=default``.
"""


def pytest_configure(config):
    """Forget the caller's services and proxies, so that tests reach ours alone; choose the home of ours."""
    if not hasattr(config, "workerinput"):  # a worker of xdist has the environment of this process
        for name in [name for name in os.environ if name.startswith(_OURS) or name.lower().endswith("_proxy")]:
            del os.environ[name]
        _end_killed_runs()
        os.environ["TOOLKIT_HOME"] = tempfile.mkdtemp(prefix=f"toolkit-tests-{os.getpid()}-", dir=FAST_FOLDER)
        os.environ["LC_ALL"] = "C.UTF-8"  # messages are English where a test asks for nothing else
    config.stash[_HOME] = Path(os.environ["TOOLKIT_HOME"])


def pytest_collection_finish():
    """Spare the garbage collector all that was imported; it took a tenth of the run."""
    gc.freeze()
    gc.enable()
    atexit.register(gc.unfreeze)  # DuckDB's binding complains of what it finds frozen on the way out


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Four at most: each takes up to 1 GB with what it starts, and a container may have less than its machine."""
    memory = psutil.virtual_memory().total
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):
            memory = min(memory, int(Path("/sys/fs/cgroup", limit).read_text()))
    return max(1, min(4, memory // (1 << 30)))


def pytest_unconfigure(config):
    """End the servers with the run, however it went."""
    if hasattr(config, "workerinput") or _HOME not in config.stash:
        return
    embedded.stop(config.stash[_HOME])
    shutil.rmtree(config.stash[_HOME])


def _end_killed_runs():
    """End the servers of runs that were killed before they could do so themselves."""
    for home in Path(FAST_FOLDER).glob("toolkit-tests-*-*"):
        # Another run may be doing the same at this moment.
        with suppress(OSError, EmbeddedServiceError):
            if home.stat().st_uid == os.geteuid() and not psutil.pid_exists(int(home.name.split("-")[2])):
                embedded.stop(home)
                shutil.rmtree(home)


@pytest.fixture(autouse=True)
def _language_of_the_machine():
    """Forget the language of a command that ran in this process."""
    yield
    set_language(os.environ)


@pytest.fixture(scope="module")
def browser():  # while it is open, no other event loop can run in this process
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="session")
def spark_url():
    """The server of Spark Connect that ``SPARK_REMOTE`` names, or Sail."""
    if REMOTE in os.environ:
        yield os.environ[REMOTE]
    else:
        with sail() as url:
            yield url


@pytest.fixture
def spark_client():
    """Let a worker import PySpark, which runs its own doctests where the main module has no file."""
    with pytest.MonkeyPatch.context() as changed:
        for name, value in (("__file__", "pytest"), ("__spec__", None)):
            changed.setattr(sys.modules["__main__"], name, value, raising=False)
        yield


@pytest.fixture(scope="session")
def home(pytestconfig):
    """The ``TOOLKIT_HOME`` of this run."""
    return pytestconfig.stash[_HOME]


@dataclass
class SettableClock:
    """A clock that stands still until a test moves ``now``."""

    now: datetime = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return SettableClock()


@pytest.fixture(scope="session")
def server(home):
    """The PostgreSQL of this run, with a migrated database to clone."""
    url = sa.make_url(embedded.database_url(home))
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with FileLock(home / "template.lock"), engine.connect() as connection:
        # What a run leaves behind need not outlive the machine; without, a fresh database takes a second.
        for setting in ("fsync", "full_page_writes"):
            connection.exec_driver_sql(f"ALTER SYSTEM SET {setting} = off")
        connection.exec_driver_sql("SELECT pg_reload_conf()")
        known = sa.text("SELECT 1 FROM pg_database WHERE datname = :name")
        if connection.scalar(known, {"name": _TEMPLATE}) is None:
            connection.exec_driver_sql(f"CREATE DATABASE {_TEMPLATE}_draft")
            with Database(_named(url, f"{_TEMPLATE}_draft"), embedded=True) as draft:
                schema.upgrade(draft, service_tables=True)
            connection.exec_driver_sql(f"ALTER DATABASE {_TEMPLATE}_draft RENAME TO {_TEMPLATE}")
    yield engine
    engine.dispose()


@pytest.fixture
def empty_database(server):
    """A database without any table."""
    with fresh_database(server, "template1") as database:
        yield database


@pytest.fixture
def database(server, clock):
    """A database with all tables and no rows."""
    with fresh_database(server, clock=clock) as database:
        yield database


@contextmanager
def fresh_database(server, template=_TEMPLATE, clock=wall_clock):
    """A database of its own, gone at the end."""
    name = f"test_{uuid4().hex}"
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
    try:
        with Database(_named(server.url, name), clock) as database:
            yield database
    finally:
        with server.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")


def _named(url, database):
    return url.set(database=database).render_as_string(hide_password=False)


def client_of(access, retries=None, **credentials):
    """A boto3 client of a server on this machine, with the server's own keys unless others are given."""
    keys = {
        "aws_access_key_id": access.access_key_id,
        "aws_secret_access_key": access.secret_access_key,
        "aws_session_token": access.session_token,
    }
    config = Config(signature_version="s3v4", s3={"addressing_style": "path"}, proxies={}, retries=retries)
    return boto3.client(
        "s3", endpoint_url=access.s3_endpoint, region_name="us-east-1", config=config, **(keys | credentials)
    )


@pytest.fixture(scope="session")
def s3(home):
    """A boto3 client with all rights on the S3 server of this run."""
    with closing(client_of(embedded.bucket_access(home))) as client:
        yield client


def fresh_bucket(home, s3):
    """The variables that point to a new bucket on the S3 server of this run."""
    access, name = embedded.bucket_access(home), f"test-{uuid4().hex}"
    s3.create_bucket(Bucket=name)
    return {
        "EVIDENCE_BUCKET": name,
        "AWS_ENDPOINT_URL": access.s3_endpoint,
        "AWS_REGION": access.region,
        "AWS_DEFAULT_REGION": access.region,
        "AWS_ACCESS_KEY_ID": access.access_key_id,
        "AWS_SECRET_ACCESS_KEY": access.secret_access_key,
        "AWS_SESSION_TOKEN": access.session_token,
        "AWS_CREDENTIAL_EXPIRATION": embedded.NEVER.isoformat(),
    }


@pytest.fixture
def bucket_environment(home, s3, monkeypatch):
    """The variables that point to a fresh bucket; also set for this test, since boto3 reads them itself."""
    environ = fresh_bucket(home, s3)
    for variable, value in environ.items():
        monkeypatch.setenv(variable, value)
    return environ


@pytest.fixture
def bucket(bucket_environment):
    """A bucket without objects."""
    return Bucket.open(Settings.from_environment({**os.environ, **bucket_environment}))


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str

    @property
    def told(self):
        """The JSON that it printed."""
        return json.loads(self.out)


@pytest.fixture
def run(request, capsys):
    """Run a command in this process, on a fresh database and a fresh bucket unless another environment is given.

    It must end with the exit status ``ends``, or with any where that is None.
    """

    def run(*words, ends=0, within=None, **environ):
        around = request.getfixturevalue("embedded_environment") if within is None else within
        capsys.readouterr()
        status = main([*map(str, words)], {**around, **environ})
        ran = Ran(status, *capsys.readouterr())
        assert ends in (None, status), ran
        return ran

    return run


@pytest.fixture
def workplace(embedded_environment, monkeypatch, tmp_path):
    """The folder in which code of this process reaches the services of the test."""
    for variable, value in embedded_environment.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def embedded_environment(tmp_path_factory, database, bucket_environment):
    """The environment for the command line: a fresh database, a fresh bucket and a fresh home.

    Each command removes expired credentials from its home: with a clock that is ahead, those of other tests, too.
    """
    return {
        **bucket_environment,
        "TOOLKIT_HOME": str(tmp_path_factory.mktemp("home")),
        "DATABASE_URL": database.engine.url.render_as_string(hide_password=False),
    }
