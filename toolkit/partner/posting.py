"""Send one file with an upload form (contract, "3. Upload the file to the storage bucket")."""

import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError, LocationValueError

from toolkit.domain.clock import Clock, wall_clock
from toolkit.errors import BucketUnavailable, CredentialsExpired, InvalidInput, UnreadableFile, UploadRefused
from toolkit.partner.forms import FormPolicy, MultipartForm
from toolkit.partner.retrying import pauses, seconds_asked

TIMEOUT: Final = urllib3.Timeout(connect=20, read=120)
"""Seconds. The first is also the limit for each chunk to leave, the second the one for S3 to store the file."""

_ANSWER_MAX: Final = 64 * 1024
_CODE: Final = re.compile(rb"<Code>([A-Za-z0-9.]{1,64})</Code>")
_EXPIRED_TEXT: Final = re.compile(rb"<Message>[^<]*\bexpired\b", re.IGNORECASE)
_TRY_AGAIN_CODES: Final = frozenset(("RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable"))

_HINTS: Final = {
    "AccessDenied": "The form does not allow this upload, or ran out; request new credentials.",
    "EntityTooLarge": "The file is larger than the form allows.",
    "EntityTooSmall": "The file is smaller than the form allows.",
    "InvalidAccessKeyId": "The bucket does not know who signed the form; request new credentials.",
    "InvalidToken": "The session behind the form ended; request new credentials.",
    "NoSuchBucket": "The bucket does not exist (any more).",
    "SignatureDoesNotMatch": "The fields are not those that were signed; send them unchanged.",
}


def post_file(
    url: str,
    fields: Mapping[str, str],
    path: Path,
    *,
    progress: Callable[[int], None] | None = None,
    pool: urllib3.PoolManager | None = None,
    clock: Clock = wall_clock,
) -> None:
    """Send ``path`` to ``url`` with the form ``fields``, streaming, in memory that does not grow with the file.

    A broken connection or an overloaded bucket is tried again while the credentials live; that is safe, since
    the form fixes the key. ``progress`` is told the
    bytes as they are sent, and a negative number when an attempt begins anew. A ``pool`` shared by many calls
    keeps connections open.

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
        for pause in (*pauses(), None):
            if clock() >= expires_at:
                raise CredentialsExpired
            answer = _send_once(connections, url, fields, path, progress or _nobody)
            if answer is None:
                return
            if pause is not None:
                left = (expires_at - clock()).total_seconds()
                time.sleep(max(0.0, min(max(pause, answer), left)))
    raise BucketUnavailable(f"The bucket at {urlsplit(url).netloc} does not take the file; try again later.")


def _nobody(sent: int) -> None:
    """Take the progress of a caller that asked for none."""


def _send_once(
    pool: urllib3.PoolManager, url: str, fields: Mapping[str, str], path: Path, progress: Callable[[int], None]
) -> float | None:
    """Send the file; return ``None`` where it was accepted, else the seconds to wait that the bucket asks for."""
    total = 0

    def sent(count: int) -> None:
        nonlocal total
        total += count
        progress(count)

    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            form = MultipartForm(fields, path.name)
            response = pool.request(
                "POST",
                url,
                body=form.body(file, size, sent),
                headers={"Content-Type": form.content_type, "Content-Length": str(form.length(size))},
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
    except HTTPError:
        progress(-total)
        return 0
    except OSError as error:
        raise UnreadableFile(f"The file cannot be read: {error.strerror or 'unknown reason'}.") from None
    if response.status in {200, 201, 204}:
        return None
    progress(-total)
    return _seconds_to_wait(response, answer)


def _seconds_to_wait(response: urllib3.BaseHTTPResponse, answer: bytes) -> float:
    found = _CODE.search(answer)
    code = found[1].decode() if found else ""
    if response.status >= 500 or response.status in {408, 429} or code in _TRY_AGAIN_CODES:
        return seconds_asked(response)
    if code == "ExpiredToken" or (response.status == 403 and _EXPIRED_TEXT.search(answer)):
        raise CredentialsExpired
    if 300 <= response.status < 400:
        raise UploadRefused(f"The bucket answered {response.status}, a redirection; its address has changed.")
    hint = _HINTS.get(code, "Request new credentials and send the file again.")
    raise UploadRefused(f"The bucket refused the upload: {response.status} {code}".rstrip() + f". {hint}")
