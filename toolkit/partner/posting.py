"""Send one file with a presigned POST (contract, "3. Upload the file to the storage bucket")."""

import base64
import binascii
import json
import os
import random
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from ssl import SSLCertVerificationError
from typing import BinaryIO, Final, Self
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError, LocationValueError
from urllib3.filepost import encode_multipart_formdata

from toolkit.errors import BucketUnavailable, CredentialsExpired, InvalidInput, UnreadableFile, UploadRefused
from toolkit.message import Message

ATTEMPTS: Final = 6  # the largest number of attempts; the pauses between them add up to about half a minute
FIRST_PAUSE: Final = 1.0  # seconds before the second attempt; each further one comes after twice as many
LONGEST_PAUSE: Final = 30.0

CHUNK_BYTES: Final = 64 * 1024  # bytes that are read and sent at a time

_ACL: Final = ("acl", "private")
"""The one part of the form that the contract demands beside the fields of the credentials."""


@dataclass(frozen=True, slots=True)
class FormPolicy:
    """The limits of an upload form: its end, and the most bytes it takes (``None``: not said)."""

    expires_at: datetime
    max_bytes: int | None = None

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """Read the policy that is encoded in the fields of a form; its signature is the bucket's to check.

        Raises:
            InvalidInput: there is no policy in it, or one that cannot be read.
        """
        encoded = next((value for name, value in fields.items() if name.lower() == "policy"), None)
        if encoded is None:
            raise InvalidInput("The upload fields hold no Policy.")
        try:
            policy = json.loads(base64.b64decode(encoded, validate=True))
            expires_at = datetime.fromisoformat(policy["expiration"])
            ranges = (item for item in policy["conditions"] if isinstance(item, list) and item)
            sizes = [item[2] for item in ranges if str(item[0]).lower() == "content-length-range"]
            largest = int(sizes[0]) if sizes else None
        except (binascii.Error, ValueError, TypeError, LookupError, OverflowError, RecursionError):
            raise InvalidInput("The Policy among the upload fields cannot be read.") from None
        if expires_at.tzinfo is None:
            raise InvalidInput("The Policy among the upload fields expires at a time without an offset.")
        return cls(expires_at, largest)


def _multipart(fields: Mapping[str, str], file_name: str) -> tuple[str, bytes, bytes]:
    """Return the content type, and what comes before and behind the file: the parts of contract section 3.

    S3 ignores whatever follows the file, so nothing does.
    """
    boundary = secrets.token_hex(16)
    parts = list(fields.items()) + ([] if _ACL[0] in map(str.lower, fields) else [_ACL])
    whole, content_type = encode_multipart_formdata(
        [*parts, ("file", (file_name, b"", "application/octet-stream"))], boundary
    )
    after = f"\r\n--{boundary}--\r\n".encode()
    return content_type, whole.removesuffix(after), after


def _body(before: bytes, file: BinaryIO, size: int, after: bytes) -> Iterator[bytes]:
    """Yield the request's body, a chunk at a time.

    Raises:
        UnreadableFile: the file has no longer ``size`` bytes; the body stays without its end, so that no server
            takes it for a whole one.
    """
    yield before
    left = size
    while left and (chunk := file.read(min(left, CHUNK_BYTES))):
        left -= len(chunk)
        yield chunk
    if left or file.read(1):
        raise UnreadableFile("The file changed while it was sent.")
    yield after


TIMEOUT: Final = urllib3.Timeout(connect=20, read=120)
"""Seconds. The first is also the limit for each chunk to leave, the second the one for S3 to store the file."""

_ANSWER_MAX: Final = 64 * 1024
_CODE: Final = re.compile(rb"<Code>([A-Za-z0-9.]{1,64})</Code>")
_EXPIRED_TEXT: Final = re.compile(rb"<Message>[^<]*\bexpired\b", re.IGNORECASE)
_TRY_AGAIN_CODES: Final = frozenset(("RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable"))

HINTS: Final = {
    "AccessDenied": "The form does not allow this upload, or ran out; request new credentials.",
    "EntityTooLarge": "The file is larger than the form allows.",
    "EntityTooSmall": "The file is smaller than the form allows.",
    "NoSuchBucket": "The bucket does not exist (any more).",
    "SignatureDoesNotMatch": "The fields are not those that were signed; send them unchanged.",
}

NOT_TRUSTED: Final = "The certificate of the service at {} is not trusted here: nothing was sent."


def post_file(url: str, fields: Mapping[str, str], path: Path, *, pool: urllib3.PoolManager | None = None) -> None:
    """Send ``path`` to ``url`` with the form ``fields``, streaming, in memory that does not grow with the file.

    A broken connection or an overloaded bucket is tried again while the credentials live; that is safe, since
    the form fixes the key. A ``pool`` shared by many calls keeps connections open.

    Raises:
        CredentialsExpired: the credentials ran out before the file was sent.
        UploadRefused: the bucket said no; the text has its code and what to do.
        BucketUnavailable: it did not answer, as often as it was tried.
        UnreadableFile: the file is missing, or changed while it was sent.
        InvalidInput: ``url`` or ``fields`` are no upload form.
    """
    if urlsplit(url).scheme not in {"http", "https"}:
        raise InvalidInput("The upload address is not an http or https address.")
    expires_at = FormPolicy.of(fields).expires_at
    with nullcontext(pool) if pool is not None else urllib3.PoolManager() as connections:
        for attempt in range(1, ATTEMPTS + 1):
            if datetime.now(UTC) >= expires_at:
                raise CredentialsExpired
            asked = _send_once(connections, url, fields, path)
            if asked is None:
                return
            if attempt < ATTEMPTS:
                pause = min(FIRST_PAUSE * 2 ** (attempt - 1), LONGEST_PAUSE)
                pause *= random.uniform(0.5, 1)  # noqa: S311  # spreads retries, no secret
                left = (expires_at - datetime.now(UTC)).total_seconds()
                time.sleep(max(0.0, min(max(pause, asked), left)))
    raise BucketUnavailable("The bucket at {} does not take the file; try again later.", urlsplit(url).netloc)


def _send_once(pool: urllib3.PoolManager, url: str, fields: Mapping[str, str], path: Path) -> float | None:
    """Send the file; return ``None`` where it was accepted, else the seconds to wait that the bucket asks for."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            content_type, before, after = _multipart(fields, path.name)
            response = pool.request(
                "POST",
                url,
                body=_body(before, file, size, after),
                headers={"Content-Type": content_type, "Content-Length": str(len(before) + size + len(after))},
                timeout=TIMEOUT,
                retries=False,
                redirect=False,
                preload_content=False,
            )
            try:
                answer = response.read(_ANSWER_MAX)
                response.drain_conn()
            finally:
                response.release_conn()
    except LocationValueError:
        raise InvalidInput("The upload address is not an http or https address.") from None
    except HTTPError as error:
        if isinstance(next(iter(error.args), None), SSLCertVerificationError):
            raise UploadRefused(NOT_TRUSTED, urlsplit(url).netloc) from None
        return 0
    except OSError as error:
        raise UnreadableFile("The file cannot be read: {}.", error.strerror or "unknown reason") from None
    return None if response.status in {200, 201, 204} else _seconds_to_wait(response, answer)


def _seconds_to_wait(response: urllib3.BaseHTTPResponse, answer: bytes) -> float:
    found = _CODE.search(answer)
    code = found[1].decode() if found else ""
    if response.status >= 500 or response.status in {408, 429} or code in _TRY_AGAIN_CODES:
        asked = response.headers.get("Retry-After", "")
        return min(float(asked), LONGEST_PAUSE) if asked.isascii() and asked.isdigit() else 0
    if code == "ExpiredToken" or (response.status == 403 and _EXPIRED_TEXT.search(answer)):
        raise CredentialsExpired
    if 300 <= response.status < 400:
        raise UploadRefused("The bucket answered {}, a redirection; its address has changed.", response.status)
    hint = Message(HINTS.get(code, "Request new credentials and send the file again."))
    answered = f"{response.status} {code}".rstrip()
    raise UploadRefused("The bucket refused the upload: {}. {}", answered, hint)
