"""The process of the embedded S3 server. Run as a script with its folder; it imports nothing of the toolkit.

The toolkit imports only its constants, so that what serving takes is imported where it is used.

ministack does the work. Around it: one server for a folder, only requests of S3 that name the key of this
server, an end with the folder.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import shutil
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import uvicorn

HOST: Final = "127.0.0.1"
REGION: Final = "us-east-1"
BUCKET: Final = "evidence"

KEYS: Final = "session.json"  # the file of the folder with the keys of the session that every client uses

_WATCH_SECONDS: Final = 2
_PLACE: Final = re.compile(r"/((?!(health|restapis)(/|$))[a-z0-9][a-z0-9.-]{2,62}(/(?P<key>.*))?)?", re.DOTALL)
"""A bucket or an object; ministack takes two names for other services."""

_SIGNED: Final = re.compile(rb"AWS4-HMAC-SHA256 Credential=(?P<key>\w+)/")
_PRESIGNED: Final = re.compile(rb"(?=.*\bX-Amz-Algorithm=AWS4-HMAC-SHA256\b).*?\bX-Amz-Credential=(?P<key>\w+)%2F")
_FORM: Final = re.compile(rb'(?i:credential"[^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n)(?P<key>\w+)/')
"""The access key in an Authorization header, in the query of a signed link, in a form."""

_ACCOUNT: Final = "000000000000"
_OWNER: Final = {
    "Arn": f"arn:aws:iam::{_ACCOUNT}:root",
    "UserId": _ACCOUNT,
    "PrincipalType": "Root",
    "AccountId": _ACCOUNT,
}

_BODY_BYTES: Final = 128 * 1024 * 1024
"""Bytes of a body at most: ministack reads all of it before it checks the signature."""

_FIELDS_BYTES: Final = 64 * 1024  # bytes of a form before its file

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


def serve(folder: Path) -> None:
    """Serve the objects in ``folder`` until told to stop."""
    import uvicorn

    keys = json.loads((folder / KEYS).read_text("utf-8"))
    listener = _listen(folder / "port")
    port = listener.getsockname()[1]
    _configure(folder, port)
    config = uvicorn.Config(
        _Front(_emulator(keys), keys["access_key"], folder),
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
    """Return a socket on the last port, which issued forms name, or on a free one where that cannot be had."""
    try:
        listener = socket.create_server((HOST, int(remembered.read_text("ascii"))), backlog=2048)
    except (OSError, ValueError, OverflowError):
        listener = socket.create_server((HOST, 0), backlog=2048)
    _write(remembered, str(listener.getsockname()[1]))
    return listener


def _configure(folder: Path, port: int) -> None:
    """Set the variables that ministack reads while it is imported."""
    os.environ.update(
        AUTH="true",
        AWS_ACCESS_KEY_ID=secrets.token_hex(16),  # nobody is told the root of ministack
        AWS_SECRET_ACCESS_KEY=secrets.token_hex(32),
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
        SERVICES="s3",
        SFTP_ENABLED="0",
        STATE_DIR=str(folder / "state"),
    )


def _emulator(keys: dict[str, str]) -> Application:
    """Return ministack with a session of its root account that never ends, for upload forms need a token."""
    from ministack.app import app
    from ministack.services import sts

    secret = {"SecretAccessKey": keys["secret_key"], "SessionToken": keys["session_token"]}
    sts.register_session(keys["access_key"], _OWNER | secret)
    application: Application = app
    return application


class _Front:
    """The front of ministack: it passes on what names the key of this server, in the shape of S3.

    ministack checks no signature of its root account, and of a key called "test". A file for which the disk has no
    room it accepts, and forgets when it ends.
    """

    def __init__(self, application: Application, access_key: str, folder: Path) -> None:
        self._application = application
        self._access_key = access_key
        self._folder = folder

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers", ()))
        length = int(headers.get(b"content-length", 0))
        if scope["type"] != "http":
            await self._application(scope, receive, send)
        elif b"transfer-encoding" in headers:
            await _refuse(send, 411, "MissingContentLength", "The length of the body must be declared.")
        elif length > _BODY_BYTES:
            await _refuse(send, 400, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed size.")
        elif length and shutil.disk_usage(self._folder).free < length + _BODY_BYTES:
            await _refuse(send, 507, "InsufficientStorage", "The disk of this server has no room.")
        else:
            named, receive = await _credential(scope, headers, receive)
            if named is None:
                await _refuse(send, 403, "AccessDenied", "This server speaks S3 only.")
            elif named["key"].decode() != self._access_key:
                await _refuse(send, 403, "InvalidAccessKeyId", "The access key is not that of this server.")
            else:
                await self._application(scope, receive, send)


async def _credential(
    scope: Message, headers: dict[bytes, bytes], receive: Receive
) -> tuple[re.Match[bytes] | None, Receive]:
    """Return the access key of a signed request, and what receives its body from the beginning.

    There is none where it is no signed request or upload form, by a name of this machine. ministack's own paths
    (``/_ministack/reset`` empties everything) ask for no signature, and any web page could make a browser post to
    them.
    """
    place, query = _PLACE.fullmatch(scope["path"]), scope["query_string"]
    host = headers.get(b"host", b"").decode("latin-1").partition(":")[0]
    if place is None or host not in {HOST, "localhost"}:
        return None, receive
    if b"authorization" in headers:
        return _SIGNED.match(headers[b"authorization"]), receive
    if scope["method"] in {"GET", "HEAD"}:
        return _PRESIGNED.match(query), receive
    is_form = headers.get(b"content-type", b"").startswith(b"multipart/form-data")
    if scope["method"] != "POST" or not is_form or place["key"] or query:
        return None, receive
    fields, messages = b"", list[Message]()
    while b'name="file"' not in fields and len(fields) < _FIELDS_BYTES:
        messages.append(await receive())
        fields += messages[-1].get("body", b"")
        if not messages[-1].get("more_body", False):
            break

    async def replay() -> Message:
        return messages.pop(0) if messages else await receive()

    return _FORM.search(fields), replay


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
    from urllib3 import request as send

    request = AWSRequest(method="PUT", url=f"http://{HOST}:{port}/{BUCKET}")
    S3SigV4Auth(Credentials(*keys.values()), "s3", REGION).add_auth(request)
    answer = send("PUT", request.url, headers=dict(request.headers.items()), timeout=30)
    if answer.status not in (HTTPStatus.OK, HTTPStatus.CONFLICT):  # it is there already
        raise RuntimeError(f"the bucket cannot be made: {answer.status}")


def _write(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}-{os.getpid()}")
    draft.write_text(text, "ascii")
    draft.replace(path)


if __name__ == "__main__":
    os.umask(0o077)
    serve(Path(sys.argv[1]))
