"""The process of the embedded S3 server. Run as a script with its folder; it imports nothing of the toolkit.

The toolkit imports only its constants, so that what serving takes is imported where it is used.

ministack does the work. Around it: one server for a folder, only requests that S3 and STS know, large bodies only
from whoever holds a key, temporary sessions that outlive a restart, a refusal before the disk is full, an end when
the folder is gone.
"""

from __future__ import annotations

import base64
import hmac
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
_SIGNED: Final = re.compile(rb"AWS4-HMAC-SHA256 Credential=(?P<key>[\w]+)/")
_PRESIGNED: Final = re.compile(rb"(?=.*\bX-Amz-Algorithm=AWS4-HMAC-SHA256\b)(?=.*\bX-Amz-Credential=\w+%2F)")
_SESSIONS: Final = "sessions"

_UNCHECKED_BYTES: Final = 1024 * 1024
"""Bytes of a body that are taken before its signature was checked: ministack checks it after it has read all."""

_SIGNED_BYTES: Final = 128 * 1024 * 1024
"""Bytes of a body that names a known key; a form may hold as many as its policy says."""

_FIELDS_BYTES: Final = 64 * 1024
"""Bytes of a form before its file."""

_FIELD: Final = re.compile(rb'name="([\w-]+)"[^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n(.*?)\r\n--', re.DOTALL)
_OTHER_SERVICES: Final = frozenset({"health", "restapis"})
"""First parts of paths that ministack does not take for the name of a bucket."""

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
    """Return a socket on the last port, which issued upload forms name, or on a free one where that is taken."""
    before = int(remembered.read_text("ascii")) if remembered.exists() else 0
    try:
        listener = socket.create_server((HOST, before), backlog=2048)
    except OSError:
        listener = socket.create_server((HOST, 0), backlog=2048)
    _write(remembered, str(listener.getsockname()[1]))
    return listener


def _configure(folder: Path, keys: dict[str, str], port: int) -> None:
    """Set the variables that ministack reads while it is imported."""
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
        elif (length := _declared(scope)) is None:
            await _refuse(send, 411, "MissingContentLength", "The length of the body must be declared.")
        elif length > _UNCHECKED_BYTES:
            await self._large(length, scope, receive, send)
        elif scope["path"] == "/" and scope["method"] == "POST":
            await self._session_call(scope, receive, send)
        else:
            await self._application(scope, receive, send)

    async def _large(self, length: int, scope: Message, receive: Receive, send: Send) -> None:
        """Accept a large body only from a holder of a key, and only as much as is allowed."""
        authorization = dict(scope["headers"]).get(b"authorization")
        if authorization is not None:
            signed = _SIGNED.match(authorization)
            limit = _SIGNED_BYTES if signed and self._secret(signed["key"].decode()) else None
        else:
            fields, receive = await _fields(receive)
            limit = self._allowed(fields)
        if limit is None:
            await _refuse(send, 403, "AccessDenied", "A body of this size is taken from known keys only.")
        elif length > limit + _FIELDS_BYTES:
            await _refuse(send, 400, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed size.")
        else:
            await self._application(scope, receive, send)

    def _allowed(self, fields: dict[str, str]) -> int | None:
        """Return the bytes that the policy of a form allows; ``None`` where no key of this server signed it."""
        key, *around = fields.get("x-amz-credential", "").split("/")
        secret = self._secret(key)
        if secret is None or not hmac.compare_digest(
            _signature(secret, around, fields.get("policy", "")), fields.get("x-amz-signature", "").encode()
        ):
            return None
        conditions = json.loads(base64.b64decode(fields["policy"]))["conditions"]
        ranges = [
            int(each[2]) for each in conditions if isinstance(each, list) and each[0] == "content-length-range"
        ]
        return min([*ranges, 5 * 1024**3]) if ranges else _SIGNED_BYTES

    def _secret(self, key: str) -> str | None:
        if key == os.environ["AWS_ACCESS_KEY_ID"]:
            return os.environ["AWS_SECRET_ACCESS_KEY"]
        secret: str | None = self._sessions.get(key, {}).get("SecretAccessKey")
        return secret

    async def _session_call(self, scope: Message, receive: Receive, send: Send) -> None:
        """Keep new sessions before their keys are handed out, so that forms work after a restart."""
        before = set(self._sessions)

        async def keep_then_send(message: Message) -> None:
            if message["type"] == "http.response.start" and set(self._sessions) - before:
                self._save(_SESSIONS, dict(self._sessions))
            await send(message)

        await self._application(scope, receive, keep_then_send)

    def _is_full(self, scope: Message) -> bool:
        return shutil.disk_usage(self._folder).free < (_declared(scope) or 0) + _SPARE_BYTES


def _declared(scope: Message) -> int | None:
    """Return the declared length of the body; ``None`` for one whose end nobody knows."""
    headers = dict(scope["headers"])
    if b"transfer-encoding" in headers:
        return None
    length = headers.get(b"content-length", b"0")
    return int(length.lstrip(b"0") or 0) if length.isdigit() else None


async def _fields(receive: Receive) -> tuple[dict[str, str], Receive]:
    """Return the fields of a form that come before its file, and what receives the form from its beginning."""
    messages: list[Message] = []
    head = b""
    while b'name="file"' not in head and len(head) < _FIELDS_BYTES:
        message = await receive()
        messages.append(message)
        head += message.get("body", b"")
        if not message.get("more_body", False):
            break

    async def replay() -> Message:
        return messages.pop(0) if messages else await receive()

    found = _FIELD.findall(head[:_FIELDS_BYTES])
    return {name.decode().lower(): value.decode("latin-1") for name, value in found}, replay


def _signature(secret: str, around: list[str], policy: str) -> bytes:
    """Return the AWS Signature Version 4 of a policy, for the date, region and service of a credential."""
    key = f"AWS4{secret}".encode()
    for part in around:
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, policy.encode(), "sha256").hex().encode()


def _is_s3(scope: Message) -> bool:
    """Tell whether this is a signed request or an upload form, to a bucket or to STS, by a name of this machine.

    ministack's own paths (``/_ministack/reset`` empties everything) ask for no signature, and any web page
    could make a browser post to them.
    """
    headers = dict(scope["headers"])
    if headers.get(b"host", b"").decode("latin-1").partition(":")[0] not in {HOST, "localhost"}:
        return False
    place = _PLACE.fullmatch(scope["path"])
    if place is None or place["bucket"] in _OTHER_SERVICES:
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
