"""Run a Ceph cluster of one monitor, one disk and one gateway until its owner ends.

``python -m tests.gateway FOLDER OWNER``: says in ``FOLDER/ready.json`` how to reach it, and removes FOLDER at
the end. Without authentication between the daemons, on loopback only: for tests.
"""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Final

import boto3
import httpx
from botocore.config import Config

from tests.support.waiting import wait_until

_CONF: Final = """
[global]
fsid = {fsid}
mon host = [v1:127.0.0.1:{mon_port}]
mon initial members = a
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind ipv6 = false
auth cluster required = none
auth service required = none
auth client required = none
admin socket =
log to stderr = true
log to file = false
mon cluster log to file = false
crash dir = {folder}
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
[mon]
mon data = {folder}/mon
mon allow pool size one = true
mon max pg per osd = 1000
mon data avail warn = 2
mon data avail crit = 1
paxos propose interval = 0.05
paxos min wait = 0.01
[osd]
osd data = {folder}/osd
osd objectstore = bluestore
osd class update on start = false
osd crush update on start = false
osd memory target = 939524096
bluestore block size = 4294967296
[client]
rgw data = {folder}/rgw
rgw frontends = beast endpoint=127.0.0.1:{port} tcp_nodelay=1
rgw s3 auth use sts = true
rgw sts key = {sts_key}
"""

_USER: Final = "tester"
_POLICY: Final = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": ["sts:*"], "Resource": ["*"]}],
}
"""A user may ask for temporary credentials only with a policy that says so."""

_PR_SET_PDEATHSIG: Final = 1


class Cluster:
    """The daemons, all children of this process: they die with it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._conf = folder / "ceph.conf"
        self._keyring = folder / "keyring"
        self._daemons: list[subprocess.Popen[bytes]] = []

    def start(self) -> dict[str, str]:
        """Bring it up from nothing; what a client needs to know."""
        ports = _free_ports(2)
        fsid, sts_key = str(uuid.uuid4()), secrets.token_hex(8)
        settings = {"fsid": fsid, "mon_port": ports[0], "port": ports[1], "sts_key": sts_key}
        self._conf.write_text(_CONF.format(folder=self._folder, **settings))
        self._keyring.touch()
        for name in ("mon", "osd", "rgw"):
            (self._folder / name).mkdir()
        self._start_monitor(fsid, ports[0])
        self._start_disk()
        access = {"endpoint_url": f"http://127.0.0.1:{ports[1]}"} | self._make_user()
        self._daemon("radosgw", "-f", "--name", "client.rgw", "--keyring", str(self._keyring))
        wait_until(lambda: _answers(access["endpoint_url"]))
        _allow_sessions(access)
        return access

    def stop(self) -> None:
        """End the daemons, the gateway first."""
        for daemon in reversed(self._daemons):
            daemon.kill()
            daemon.wait()

    def is_whole(self) -> bool:
        """Tell whether every daemon still runs."""
        return all(daemon.poll() is None for daemon in self._daemons)

    def _start_monitor(self, fsid: str, port: int) -> None:
        monmap = str(self._folder / "monmap")
        _run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", f"[v1:127.0.0.1:{port}]", monmap)
        make = ("--mkfs", "-i", "a", "--monmap", monmap, "--keyring", str(self._keyring))
        _run("ceph-mon", "-c", str(self._conf), *make)
        self._daemon("ceph-mon", "-f", "-i", "a")
        self._ceph("quorum_status")

    def _start_disk(self) -> None:
        disk = str(uuid.uuid4())
        self._ceph("osd", "new", disk, "0")
        self._ceph("osd", "crush", "add", "osd.0", "1.0", "root=default", "host=localhost")
        _run("ceph-osd", "-c", str(self._conf), "-i", "0", "--mkfs", "--osd-uuid", disk)
        self._daemon("ceph-osd", "-f", "-i", "0")

        def is_up() -> bool:
            if self._daemons[-1].poll() is not None:  # now and then it gives up while it starts
                self._daemons.pop()
                self._daemon("ceph-osd", "-f", "-i", "0")
            return b'"num_up_osds":1' in self._ceph("osd", "stat", "--format", "json")

        wait_until(is_up)

    def _make_user(self) -> dict[str, str]:
        keys = {"access_key": secrets.token_hex(10).upper(), "secret_key": secrets.token_hex(20)}
        _again(
            "radosgw-admin",
            *("-c", str(self._conf), "--name", "client.rgw", "--keyring", str(self._keyring)),
            *("user", "create", "--uid", _USER, "--display-name", _USER, "--caps", "roles=*;user-policy=*"),
            *("--access-key", keys["access_key"], "--secret", keys["secret_key"]),
        )
        return keys

    def _ceph(self, *words: str) -> bytes:
        return _again("ceph", "-c", str(self._conf), "--keyring", str(self._keyring), *words)

    def _daemon(self, program: str, *words: str) -> None:
        command = [program, "-c", str(self._conf), *words]
        self._daemons.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_die_with_parent))


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _run(*command: str) -> bytes:
    return subprocess.run(command, check=True, timeout=60, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout


def _again(*command: str) -> bytes:
    """Run a command that may be repeated: one in forty is refused, when it is sent before the client is ready."""
    for _ in range(8):
        try:
            return _run(*command)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            time.sleep(0.3)
    return _run(*command)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).status_code < 500
    except httpx.HTTPError:
        return False


def _allow_sessions(access: dict[str, str]) -> None:
    iam = boto3.client(
        "iam",
        endpoint_url=access["endpoint_url"],
        region_name="us-east-1",
        aws_access_key_id=access["access_key"],
        aws_secret_access_key=access["secret_key"],
        config=Config(proxies={}),
    )
    iam.put_user_policy(UserName=_USER, PolicyName="sessions", PolicyDocument=json.dumps(_POLICY))


def _free_ports(count: int) -> list[int]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def main(folder: Path, owner: int) -> None:
    """Serve until ``owner`` ends or a daemon does."""
    cluster = Cluster(folder)
    try:
        access = cluster.start()
        draft = folder / "ready.draft"
        draft.write_text(json.dumps(access))
        draft.rename(folder / "ready.json")
        while _runs(owner) and cluster.is_whole():
            time.sleep(0.5)
    finally:
        cluster.stop()
        if not _runs(owner):
            shutil.rmtree(folder, ignore_errors=True)
            Path(f"{folder}.lock").unlink(missing_ok=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
