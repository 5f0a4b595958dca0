"""The embedded PostgreSQL and S3 server: started once, killed, stopped, closed to others; `up` to `down`."""

import asyncio
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from unittest.mock import AsyncMock, Mock

import httpx
import psutil
import psycopg
import pytest
from botocore.exceptions import ClientError

from tests.conftest import client_of
from tests.integration.conftest import processes_of
from tests.support.waiting import PATIENCE, wait_until
from toolkit import embedded
from toolkit.atomic_files import make_once
from toolkit.database import schema
from toolkit.embedded import object_server, postgres
from toolkit.embedded.servers import lives
from toolkit.errors import BucketUnavailable, EmbeddedServiceError

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
    wait_until(lambda: not lives(pid))


def finish(process):
    """Wait for the process to end well, and return its output."""
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    return output.strip()


def as_ordinary_user():
    """The options of ``start`` for somebody who is not root; skips the test where there is no Python for him."""
    if os.geteuid():
        pytest.skip("only root can act as another user")
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


def connected(home):
    return closing(psycopg.connect(embedded.database_url(home).replace("+psycopg", ""), autocommit=True))


def pid_of(home):
    found = embedded.running(home)[0]
    return found and found.process.pid


def test_one_whose_program_is_gone_is_started_anew(own_home, monkeypatch):
    link, programs = own_home / "environment", postgres.programs

    def linked(*given):
        link.symlink_to(programs(*given))
        return link

    with monkeypatch.context() as patched:
        patched.setattr(postgres, "programs", linked)
        embedded.database_url(own_home)
    first = pid_of(own_home)
    link.unlink()
    with connected(own_home) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert pid_of(own_home) != first


def test_it_keeps_what_it_took_knows_all_letters_and_listens_on_no_network(own_home):
    with connected(own_home) as connection:
        settings = "server_encoding", "TimeZone", "fsync", "listen_addresses"
        shown = [connection.execute(f"SHOW {name}").fetchone()[0] for name in settings]
        assert shown == ["UTF8", "UTC", "on", ""]
        assert connection.execute("SELECT upper('ação'), 'Z' < 'a'").fetchone() == ("AÇÃO", True)


@pytest.mark.parametrize("opened", [OPEN_DATABASE, OPEN_BUCKET], ids=["database", "bucket"])
def test_processes_that_start_it_at_once_share_one_server(own_home, opened):
    starters = [start(opened, own_home) for _ in range(4)]
    assert len({finish(starter) for starter in starters}) == 1
    servers = [words for words in processes_of(own_home) if "/postgres -D " in words or "object_server" in words]
    assert len(servers) == 1


def test_no_end_of_its_users_group_of_processes_reaches_it(own_home):
    user = start(f"{OPEN_DATABASE}sys.stdout.flush(); sys.stdin.read()", own_home, start_new_session=True)
    url, pid = user.stdout.readline().strip(), pid_of(own_home)
    for each in (signal.SIGINT, signal.SIGKILL):
        os.killpg(user.pid, each)
    user.communicate()
    assert embedded.database_url(own_home) == url
    assert pid_of(own_home) == pid


def test_stopping_what_was_killed_leaves_no_process_and_no_pid_file(own_home):
    embedded.database_url(own_home)
    kill(pid_of(own_home))
    assert embedded.stop(own_home) == []
    wait_until(lambda: processes_of(own_home) == [])  # those of a killed server end when they notice
    assert not (own_home / "postgres" / "data" / "postmaster.pid").exists()


@pytest.mark.parametrize("name", ['dados, "do José" 100% $HOME\'s \\outros', "h" * 120])
def test_a_home_with_an_odd_or_a_long_name_works_and_leaves_no_socket(own_home, name):
    home = own_home / name
    try:
        with connected(home) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        address = embedded.running(home)[0].address
        folder = Path(address).parent
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    finally:
        embedded.stop(home)
    assert not Path(address).exists()
    assert folder.is_relative_to(home) or not folder.exists()


def test_it_lets_nobody_else_in(own_home):
    url = embedded.database_url(own_home)
    intruder = start(
        f"import psycopg; psycopg.connect({url.replace('+psycopg', '')!r})", own_home, **as_ordinary_user()
    )
    _, errors = intruder.communicate(timeout=PATIENCE)
    assert "Permission denied" in errors
    status = "import sys; from toolkit.cli import main; print(main(['status'], {'TOOLKIT_HOME': sys.argv[1]}))"
    told = finish(start(status, own_home, **as_ordinary_user()))  # and not that nothing runs
    assert "does not answer" in told
    assert " belong to " in told
    for folder in ("postgres", "postgres/data"):
        assert stat.S_IMODE((own_home / folder).stat().st_mode) == 0o700


def test_it_works_as_an_ordinary_user(own_home):
    nobody = as_ordinary_user()
    own_home.mkdir()
    shutil.chown(own_home, "nobody")
    url = finish(start(OPEN_DATABASE, own_home, **nobody))
    assert psutil.Process(pid_of(own_home)).username() == "nobody"
    kill(pid_of(own_home))
    assert embedded.database_url(own_home) == url, "root starts it for its owner"
    assert psutil.Process(pid_of(own_home)).username() == "nobody"
    assert finish(start(OPEN_DATABASE, own_home, **nobody)) == url
    endpoint = finish(start(OPEN_BUCKET, own_home, **nobody))
    assert embedded.bucket_access(own_home).s3_endpoint == endpoint


def test_data_of_another_version_are_left_alone(own_home):
    embedded.database_url(own_home)
    embedded.stop(own_home)
    shutil.copytree(own_home.rename(own_home.with_name("before")), own_home)  # root's copy is root's own
    written_by = own_home / "postgres" / "data" / "PG_VERSION"
    written_by.write_text("17\n")
    with pytest.raises(EmbeddedServiceError, match=r"(?s)did not start.*initialized by PostgreSQL version 17"):
        embedded.database_url(own_home)


def client(access, **credentials):
    return client_of(access, retries={"total_max_attempts": 1}, **credentials)


@pytest.fixture
def access(own_home):
    return embedded.bucket_access(own_home)


@pytest.fixture
def shared(home):
    """The server of all tests, for those that only ask it."""
    return embedded.bucket_access(home)


def test_what_was_acknowledged_survives_a_kill(own_home, access):
    for number in range(20):
        client(access).put_object(Bucket=embedded.BUCKET, Key=f"sales/{number}/a b.pdf", Body=b"x" * number)
    kill(embedded.running(own_home)[1].process.pid)
    again = embedded.bucket_access(own_home)
    assert again == access, "forms that were issued before go on working"
    kill(embedded.running(own_home)[1].process.pid)
    (own_home / "objects" / "port").write_text("")  # what a power failure may leave
    again = embedded.bucket_access(own_home)
    listed = client(again).list_objects_v2(Bucket=embedded.BUCKET)["Contents"]
    assert sorted((item["Key"], item["Size"]) for item in listed) == sorted(
        (f"sales/{number}/a b.pdf", number) for number in range(20)
    )
    assert client(again).get_object(Bucket=embedded.BUCKET, Key="sales/3/a b.pdf")["Body"].read() == b"xxx"


@pytest.mark.parametrize("key", ["ours", "test", "000000000000", "AKIA0000000000000000"])
def test_a_key_is_worth_nothing_without_its_secret(shared, key):
    """Neither for calls, nor to sign a link or a form."""
    client(shared).put_object(Bucket=embedded.BUCKET, Key="a", Body=b"1")
    key = shared.access_key_id if key == "ours" else key
    stranger = client(shared, aws_access_key_id=key, aws_secret_access_key="guessed")
    for call, given in (("list_objects_v2", {}), ("get_object", {"Key": "a"}), ("put_object", {"Key": "a"})):
        with pytest.raises(ClientError, match=r"SignatureDoesNotMatch|InvalidAccessKeyId"):
            getattr(stranger, call)(Bucket=embedded.BUCKET, **given)
    for signer, link, posted in ((stranger, 403, 403), (client(shared), 200, 204)):
        address = signer.generate_presigned_url("get_object", {"Bucket": embedded.BUCKET, "Key": "a"})
        form = signer.generate_presigned_post(embedded.BUCKET, "a")
        assert httpx.get(address, timeout=PATIENCE).status_code == link
        sent = httpx.post(form["url"], data=form["fields"], files={"file": b"1"}, timeout=PATIENCE)
        assert sent.status_code == posted


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("POST", "/_ministack/reset", {}),
        ("GET", "/_ministack/health", {}),
        ("POST", "//_ministack/reset", {}),
        ("GET", "/evidence/a", {}),
        ("GET", "/evidence/a", {"Authorization": "Bearer anything"}),
        ("GET", "/evidence/a", {"Authorization": "AWS test:anything"}),
        ("GET", "/evidence/a", {"Authorization": "AWS4-HMAC-SHA256 Credential=/"}),
        ("GET", "/evidence/a?X-Amz-Credential=test/20260101/us-east-1/s3/aws4_request", {}),
        ("GET", "/evidence/a?AWSAccessKeyId=test&Signature=x", {}),
        ("POST", "/?Action=GetSessionToken&Version=2011-06-15", {}),
        ("POST", "/evidence?delete", {"Content-Type": "multipart/form-data; boundary=x"}),
        ("GET", "/health", {"Authorization": "AWS4-HMAC-SHA256 Credential=x/"}),
        ("GET", "/health?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=x%2F", {}),
        ("GET", "/restapis/a/b/_user_request_/", {"Authorization": "AWS4-HMAC-SHA256 Credential=x/"}),
        ("OPTIONS", "/evidence/a", {"Origin": "https://example.com"}),
    ],
)
def test_what_is_not_signed_is_refused(shared, method, path, headers):
    answer = httpx.request(method, shared.s3_endpoint + path, headers=headers)
    assert (answer.status_code, "This server speaks S3 only." in answer.text) == (403, True)


def test_a_name_that_a_web_page_made_up_is_refused(shared):
    form = client(shared).generate_presigned_post(embedded.BUCKET, "a")
    with httpx.Client(headers={"Host": "rebound.example:80"}, timeout=PATIENCE) as page:
        assert page.post(form["url"], data=form["fields"], files={"file": b"1"}).status_code == 403


def test_a_file_that_the_disk_has_no_room_for_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", Mock(return_value=Mock(free=100_000_000)))
    scope = {"type": "http", "method": "PUT", "path": "/evidence/a", "headers": [(b"content-length", b"1")]}
    send = AsyncMock()
    asyncio.run(object_server._Front(AsyncMock(), "key", tmp_path)(scope, AsyncMock(), send))
    assert send.call_args_list[0].args[0]["status"] == 507


def test_it_listens_on_this_machine_only_and_only_the_owner_reads_its_files(own_home, access):
    client(access).put_object(Bucket=embedded.BUCKET, Key="a/b", Body=b"1")
    pid = embedded.running(own_home)[1].process.pid
    listening = [each.laddr.ip for each in psutil.Process(pid).net_connections() if each.status == "LISTEN"]
    assert set(listening) == {"127.0.0.1"}
    for path in (own_home / "objects", *(own_home / "objects").rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_a_key_counts_once_it_is_on_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError("no space")))
    with pytest.raises(OSError, match="no space"):
        make_once(tmp_path / "key", b"secret")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["", "{}", "[]"])
def test_damaged_keys_of_the_bucket_are_told(own_home, damage):
    (own_home / "objects").mkdir(parents=True)
    (own_home / "objects" / "session.json").write_text(damage)
    with pytest.raises(EmbeddedServiceError, match=r"session\.json is damaged"):
        embedded.bucket_access(own_home)


def test_up_status_and_down(run, own_home, monkeypatch):
    for name in ("PGPORT", "PGHOSTADDR", "PGREQUIREPEER", "AWS_PROFILE"):  # what leads to other servers
        monkeypatch.setenv(name, "1")
    environ = {"TOOLKIT_HOME": str(own_home)}
    assert run("status", within=environ).out.count("does not run; it starts at its first use") == 2
    assert not own_home.exists()

    text = run("up", within=environ).out
    for told in (
        r"embedded PostgreSQL 18[.\d]*, process \d+, answers",
        r"embedded S3 server .*process \d+, answers\n +at +http://127.0.0.1:",
        f"data +{own_home}/postgres/data\n",
        rf"schema +{schema.newest_revision()} \(the newest\)",
    ):
        assert re.search(told, text), told
    with monkeypatch.context() as patched:
        patched.setattr("toolkit.kit.health.Bucket.check", Mock(side_effect=BucketUnavailable("It hangs.")))
        assert re.search(r"S3 server .*process \d+, does not answer", run("status", within=environ, ends=3).out)
    assert run("down", within=environ).out == "stopped: PostgreSQL and S3 server\n"
    assert processes_of(own_home) == []
    assert run("down", within=environ).out == f"nothing runs in {own_home}\n"
