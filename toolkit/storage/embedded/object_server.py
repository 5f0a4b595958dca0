"""The process of the embedded S3 server. Run as a script with its folder; it imports nothing of the toolkit.

The toolkit imports only its constants, so that what serving takes is imported where it is used.

ministack does the work. Around it: one server for a folder, only requests that S3 and STS know, temporary
sessions that outlive a restart, a refusal before the disk is full, an end when the folder is gone.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import uvicorn

HOST: Final = "127.0.0.1"
REGION: Final = "us-east-1"
BUCKET: Final = "evidence"

_SPARE_BYTES: Final = 32 * 1024 * 1024
_WATCH_SECONDS: Final = 2
_PLACE: Final = re.compile(r"/((?P<bucket>[a-z0-9][a-z0-9.-]{2,62})(/(?P<key>.*))?)?", re.DOTALL)
_SIGNED: Final = re.compile(rb"AWS4-HMAC-SHA256 Credential=[^/,\s]+/")
_PRESIGNED: Final = re.compile(rb"(?=.*\bX-Amz-Algorithm=AWS4-HMAC-SHA256\b)(?=.*\bX-Amz-Credential=\w+%2F)")
_SESSIONS: Final = "sessions"

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


def serve(folder: Path) -> None:
    """Serve the objects in ``folder`` until told to stop."""
    import uvicorn

    keys = json.loads((folder / "keys.json").read_text("utf-8"))
    listener = _listen(folder / "port")
    port = listener.getsockname()[1]
    _configure(folder, keys, port)
    config = uvicorn.Config(
        _Front(_emulator(), folder),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
    pid_file = folder / "server.pid"
    threading.Thread(target=_announce, args=(server, pid_file, keys, port), daemon=True).start()
    try:
        server.run(sockets=[listener])
    finally:
        pid_file.unlink(missing_ok=True)


def _listen(remembered: Path) -> socket.socket:
    """A socket on the port of last time, which issued upload forms name, or on a free one where it is taken."""
    before = int(remembered.read_text("ascii")) if remembered.exists() else 0
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, before))
    except OSError:
        listener.bind((HOST, 0))
    listener.listen(2048)
    _write(remembered, str(listener.getsockname()[1]))
    return listener


def _configure(folder: Path, keys: dict[str, str], port: int) -> None:
    """Set what ministack reads from the environment while it is imported."""
    os.environ.update(
        AUTH="true",
        AWS_ACCESS_KEY_ID=keys["access_key"],
        AWS_SECRET_ACCESS_KEY=keys["secret_key"],
        BIND_HOST=HOST,
        DOCKER_HOST="unix:///nonexistent",  # it would sweep the machine for containers of its own
        GATEWAY_PORT=str(port),
        IOT_MTLS_ENABLED="0",
        LOG_LEVEL="WARNING",
        MINISTACK_HOST=HOST,
        MINISTACK_REGION=REGION,
        PERSIST_STATE="1",
        S3_DATA_DIR=str(folder / "data"),
        S3_PERSIST="1",
        SERVICES="s3,sts,iam",
        SFTP_ENABLED="0",
        STATE_DIR=str(folder / "state"),
    )


def _emulator() -> Application:
    from ministack.app import app
    from ministack.core import iam_evaluator

    # ministack checks no signature of the account's own key, or of one called "test". Here it does.
    assert iam_evaluator._is_root_key("test")
    iam_evaluator._is_root_key = lambda _: False
    application: Application = app
    return application


class _Front:
    """The front of ministack: it refuses requests that are not S3, and stores metadata that ministack loses."""

    def __init__(self, application: Application, folder: Path) -> None:
        from ministack.core import persistence
        from ministack.services import sts

        self._application = application
        self._folder = folder
        self._save: Callable[[str, dict[str, Any]], None] = persistence.save_state
        self._sessions: dict[str, Any] = sts._sessions
        self._sessions.update(persistence.load_state(_SESSIONS) or {})

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
        elif not _is_s3(scope):
            await _refuse(send, 403, "AccessDenied", "This server speaks S3 and STS.")
        elif scope["method"] in {"PUT", "POST"} and self._is_full(scope):
            await _refuse(send, 507, "InsufficientStorage", "The disk of the embedded bucket is full.")
        elif scope["path"] == "/" and scope["method"] == "POST":
            await self._session_call(scope, receive, send)
        else:
            await self._application(scope, receive, send)

    async def _session_call(self, scope: Message, receive: Receive, send: Send) -> None:
        """Keep new sessions before their keys are handed out, so that forms work after a restart."""
        before = set(self._sessions)

        async def keep_then_send(message: Message) -> None:
            if message["type"] == "http.response.start" and set(self._sessions) - before:
                self._save(_SESSIONS, dict(self._sessions))
            await send(message)

        await self._application(scope, receive, keep_then_send)

    def _is_full(self, scope: Message) -> bool:
        length = dict(scope["headers"]).get(b"content-length", b"0")
        coming = int(length) if length.isdigit() else 0
        return shutil.disk_usage(self._folder).free < coming + _SPARE_BYTES


def _is_s3(scope: Message) -> bool:
    """Tell whether this is a signed request or an upload form, to a bucket or to STS, by a name of this machine.

    ministack's own paths (``/_ministack/reset`` empties everything) ask for no signature, and any web page
    could make a browser post to them.
    """
    headers = dict(scope["headers"])
    if headers.get(b"host", b"").decode("latin-1").partition(":")[0] not in {HOST, "localhost"}:
        return False
    place = _PLACE.fullmatch(scope["path"])
    if place is None:
        return False
    if b"authorization" in headers:
        return _SIGNED.match(headers[b"authorization"]) is not None
    if scope["method"] in {"GET", "HEAD"}:
        return _PRESIGNED.match(scope["query_string"]) is not None
    is_form = headers.get(b"content-type", b"").startswith(b"multipart/form-data")
    return scope["method"] == "POST" and is_form and not place["key"] and not scope["query_string"]


async def _refuse(send: Send, status: int, code: str, words: str) -> None:
    body = f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code><Message>{words}</Message></Error>"
    headers = [(b"content-type", b"application/xml"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body.encode()})


def _announce(server: uvicorn.Server, pid_file: Path, keys: dict[str, str], port: int) -> None:
    """Make the bucket, say in the pid file that we serve, and end the server when that file is no longer ours."""
    try:
        while not server.started:
            time.sleep(0.01)
        _make_bucket(keys, port)
        _write(pid_file, f"{os.getpid()}\n{port}\n")
        while pid_file.read_text("ascii").startswith(f"{os.getpid()}\n"):
            time.sleep(_WATCH_SECONDS)
    except Exception:
        logging.getLogger(__name__).exception("the S3 server ends")
    finally:
        server.should_exit = True


def _make_bucket(keys: dict[str, str], port: int) -> None:
    from botocore.auth import S3SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    request = AWSRequest(method="PUT", url=f"http://{HOST}:{port}/{BUCKET}")
    S3SigV4Auth(Credentials(keys["access_key"], keys["secret_key"]), "s3", REGION).add_auth(request)
    signed = urllib.request.Request(request.url, headers=dict(request.headers.items()), method="PUT")  # noqa: S310
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        opener.open(signed, timeout=30).close()
    except urllib.error.HTTPError as error:
        if error.code != HTTPStatus.CONFLICT:  # it is there already
            raise


def _write(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}-{os.getpid()}")
    draft.write_text(text, "ascii")
    draft.replace(path)


if __name__ == "__main__":
    os.umask(0o077)
    serve(Path(sys.argv[1]))
