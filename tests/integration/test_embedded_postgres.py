import os
import shutil
import signal
import stat
from contextlib import closing
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.support.embedded_homes import (
    AS_ROOT,
    OPEN_BUCKET,
    OPEN_DATABASE,
    as_ordinary_user,
    finish,
    kill,
    processes_of,
    start,
)
from tests.support.waiting import PATIENCE, wait_until
from toolkit import embedded
from toolkit.errors import EmbeddedServiceError

HOLD_TRANSACTION = (
    OPEN_DATABASE
    + """
import psycopg
url = embedded.database_url(Path(sys.argv[1])).replace("+psycopg", "")
connection = psycopg.connect(url)
connection.execute("CREATE TABLE half_done (id int)")
print("holding", flush=True)
sys.stdin.read()
"""
)


def connected(home):
    return closing(psycopg.connect(embedded.database_url(home).replace("+psycopg", ""), autocommit=True))


def pid_of(home):
    return embedded.statuses(home)[0].pid


def test_the_first_use_starts_it_and_the_next_finds_it(own_home):
    first = embedded.database_url(own_home)
    pid = pid_of(own_home)
    assert embedded.database_url(own_home) == first
    assert pid_of(own_home) == pid
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


def test_no_end_of_its_users_group_of_processes_reaches_it(used_home):
    user = start(HOLD_TRANSACTION, used_home, start_new_session=True)
    assert [user.stdout.readline().strip() for _ in range(2)][1] == "holding"
    pid = pid_of(used_home)
    for each in (signal.SIGINT, signal.SIGKILL):
        os.killpg(user.pid, each)
    user.communicate()
    with connected(used_home) as connection:
        connection.execute("CREATE TABLE half_done (id int)")
    assert pid_of(used_home) == pid


def test_a_killed_server_is_started_again_with_what_was_committed(used_home):
    with connected(used_home) as connection:
        connection.execute("CREATE TABLE kept (id int)")
        connection.execute("INSERT INTO kept VALUES (1)")
        pid = pid_of(used_home)
        kill(pid)
    with connected(used_home) as connection:
        assert connection.execute("SELECT id FROM kept").fetchall() == [(1,)]
    assert pid_of(used_home) != pid


@pytest.mark.parametrize("killed", [False, True])
def test_stopping_leaves_no_process_and_no_pid_file(used_home, killed):
    embedded.database_url(used_home)
    if killed:
        kill(pid_of(used_home))
    assert embedded.stop(used_home) == ([] if killed else ["PostgreSQL"])
    wait_until(lambda: processes_of(used_home) == [])  # those of a killed server end when they notice
    assert not (used_home / "postgres" / "data" / "postmaster.pid").exists()
    assert embedded.stop(used_home) == []


@pytest.mark.parametrize("name", ['dados, "do José" 100% $HOME\'s \\outros', "h" * 120])
def test_a_home_with_an_odd_or_a_long_name_works_and_leaves_no_socket(own_home, name):
    home = own_home / name
    try:
        with connected(home) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        address = embedded.statuses(home)[0].address
        folder = Path(address).parent
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    finally:
        embedded.stop(home)
    assert not Path(address).exists()
    assert folder.is_relative_to(home) or not folder.exists()


def test_it_lets_nobody_else_in(used_home):
    if not AS_ROOT:
        pytest.skip("only root can try it as another user")
    url = embedded.database_url(used_home)
    intruder = start(
        f"import psycopg; psycopg.connect({url.replace('+psycopg', '')!r})", used_home, **as_ordinary_user()
    )
    _, errors = intruder.communicate(timeout=PATIENCE)
    assert "Permission denied" in errors
    for folder in ("postgres", "postgres/data"):
        assert stat.S_IMODE((used_home / folder).stat().st_mode) == 0o700


def test_it_works_as_an_ordinary_user(own_home):
    if not AS_ROOT:
        pytest.skip("all other tests already run as an ordinary user")
    own_home.mkdir()
    shutil.chown(own_home, "nobody")
    url = finish(start(OPEN_DATABASE, own_home, **as_ordinary_user()))
    assert psutil.Process(pid_of(own_home)).username() == "nobody"
    kill(pid_of(own_home))
    assert embedded.database_url(own_home) == url, "root starts it for its owner"
    assert psutil.Process(pid_of(own_home)).username() == "nobody"
    assert finish(start(OPEN_DATABASE, own_home, **as_ordinary_user())) == url
    endpoint = finish(start(OPEN_BUCKET, own_home, **as_ordinary_user()))
    assert embedded.bucket_access(own_home).s3_endpoint == endpoint


def test_data_of_another_version_are_left_alone(used_home):
    written_by = used_home / "postgres" / "data" / "PG_VERSION"
    written_by.write_text("17\n")
    with pytest.raises(EmbeddedServiceError, match=r"(?s)did not start.*initialized by PostgreSQL version 17"):
        embedded.database_url(used_home)


def test_a_home_that_is_a_file_says_so(own_home):
    own_home.write_text("")
    for home in (own_home, own_home / "below"):
        with pytest.raises(EmbeddedServiceError, match=r"cannot use .*home.*: Not a directory. Set TOOLKIT_HOME"):
            embedded.database_url(home)
    assert own_home.is_file()
    own_home.unlink()
