"""List a bucket several times as fast as boto3's paginator.

What boto3 is slow at is making Python objects of a page, so pages are fetched and read here, as rows of text.
boto3 still signs each request, and gives the page itself wherever anything is out of the ordinary: it knows
redirections, retries and every error.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from html import unescape
from typing import Any, Final, NamedTuple, Self
from urllib.parse import unquote, unquote_plus

import urllib3
from botocore.httpsession import get_cert_path
from urllib3.exceptions import HTTPError

PAGE: Final = 1000
"""Keys in a page: the most that S3 gives."""

_SIGNATURE_SECONDS: Final = 300
_TIMEOUT: Final = urllib3.Timeout(connect=3, read=20)
_CONNECTIONS: Final = 16


Row = tuple[str, str, str, str]
"""An object as texts: its key, its size, its etag and when it was written."""


@dataclass(frozen=True, slots=True)
class ObjectSeen:
    """An object as the bucket shows it; ``size`` in bytes, ``etag`` without quotes.

    ``version_id`` is known where it was asked for by its key in a bucket that keeps versions.
    """

    key: str
    size: int
    etag: str
    last_modified: datetime
    version_id: str | None = None

    @property
    def row(self) -> Row:
        """The object in a page."""
        return self.key, str(self.size), self.etag, self.last_modified.isoformat()


class Asked(NamedTuple):
    """The first page of the keys with ``prefix`` after ``after`` (as UTF-8), up to ``last``; or that of the token.

    It holds at most ``most`` objects, or as many as a page can.
    """

    prefix: str
    after: str = ""
    last: str | None = None
    token: str = ""
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Objects in the order of their keys, as COPY reads them in its text format; iterated over as such.

    ``rows`` lack keys with a character that no text of PostgreSQL can hold: ``unstorable``, with their escapes.
    ``token`` asks for the next page, if there is one.
    """

    rows: bytes
    objects: int
    first: str
    last: str
    token: str | None
    unstorable: tuple[str, ...] = ()

    @classmethod
    def of(cls, rows: Sequence[Row], token: str | None = None) -> Self:
        """Return the objects as a page."""
        first, last = (rows[0][0], rows[-1][0]) if rows else ("", "")
        texts, objects, refused = "".join([row[0] + row[2] for row in rows]), len(rows), list[str]()
        if not _is_storable(texts):
            refused = [row[0] for row in rows if not _is_storable(row[0])]
            rows = [row for row in rows if _is_storable(row[0])]
        if any(map(texts.__contains__, _ESCAPES)):
            marks = str.maketrans(_ESCAPES)
            rows = [
                (key.translate(marks), size, etag.translate(marks), moment) for key, size, etag, moment in rows
            ]
        text = "".join([f"{key}\t{size}\t{etag}\t{moment}\n" for key, size, etag, moment in rows])
        unstorable = tuple(key.encode("unicode_escape").decode() for key in refused)
        return cls(text.encode(), objects, first, last, token, unstorable)

    def __len__(self) -> int:
        return self.objects

    def __iter__(self) -> Iterator[ObjectSeen]:
        meant = {escape: character for character, escape in _ESCAPES.items()}
        for row in self.rows.decode().split("\n")[:-1]:
            values = (re.sub(r"\\.", lambda found: meant[found[0]], value) for value in row.split("\t"))
            key, size, etag, moment = values
            yield ObjectSeen(key, int(size), etag, datetime.fromisoformat(moment))


def _is_storable(text: str) -> bool:
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


_ESCAPES: Final = {"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"}
"""The characters that mean something to COPY, and those that it reads as them."""

_Answer = tuple[list[Row], str | None]
"""The rows of a page, and the token of the next one where there is one."""


class Listing:
    """Reads the keys of one bucket page by page; safe to share between threads."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket
        trusted = os.environ.get("AWS_CA_BUNDLE") or get_cert_path(True)  # as boto3 does
        self._connections = urllib3.PoolManager(maxsize=_CONNECTIONS, ca_certs=trusted)
        self._ordinary: bool | None = None

    def page(self, asked: Asked, shows: Callable[[str], bool] | None = None) -> Page:
        """Return the page that is asked for, of those keys alone that are shown."""
        request: dict[str, Any] = {"Bucket": self._bucket, "Prefix": asked.prefix, "EncodingType": "url"}
        request["MaxKeys"] = asked.most or PAGE
        if asked.after:
            request["StartAfter"] = asked.after
        if asked.token:
            request["ContinuationToken"] = asked.token
        rows, token = self._fetched(request) or self._from_boto3(request)
        if asked.last is not None and rows and rows[-1][0] > asked.last:
            rows, token = [row for row in rows if row[0] <= asked.last], None
        return Page.of(rows if shows is None else [row for row in rows if shows(row[0])], token)

    def _fetched(self, request: dict[str, Any]) -> _Answer | None:
        """Return a page read here; ``None`` where it needs boto3, as all do where the first one does."""
        if self._ordinary is False:
            return None
        url = self._client.generate_presigned_url("list_objects_v2", request, ExpiresIn=_SIGNATURE_SECONDS)
        try:
            response = self._connections.request("GET", url, timeout=_TIMEOUT, retries=False, redirect=False)
            page = _read(response.data.decode()) if response.status == 200 else None
        except (HTTPError, ValueError):
            page = None
        self._ordinary = self._ordinary or page is not None
        return page

    def _from_boto3(self, request: dict[str, Any]) -> _Answer:
        # As we ask for encoded keys ourselves, boto3 leaves their decoding to us.
        answer = self._client.list_objects_v2(**request)
        decode = unquote_plus if answer.get("EncodingType") == "url" else str
        rows = [
            ObjectSeen(decode(item["Key"]), item["Size"], item["ETag"].strip('"'), item["LastModified"]).row
            for item in answer.get("Contents", ())
        ]
        return rows, answer.get("NextContinuationToken") if answer["IsTruncated"] else None


_COLUMNS: Final = tuple(
    re.compile(f"<{name}>{value}</{name}>")
    for name, value in (
        ("Key", "([^<]*)"),
        ("Size", "([0-9]+)"),
        ("ETag", '(?:&quot;|&#34;|")?([0-9A-Za-z-]*)(?:&quot;|&#34;|")?'),
        ("LastModified", "([0-9-]{10}T[0-9:.]{8,15})[0-9]*Z"),
    )
)
_TOKEN: Final = re.compile("<NextContinuationToken>([^<]+)</NextContinuationToken>")


def _read(answer: str) -> _Answer | None:
    """Return a page: with encoded keys no markup can be inside of them, so no parser is needed.

    Raises:
        ValueError: it is not such a page.
    """
    keys, sizes, etags, modified = (column.findall(answer) for column in _COLUMNS)
    if "<EncodingType>url</EncodingType>" not in answer or answer.count("<Contents>") != len(keys):
        return None
    moments = [f"{moment}Z" for moment in modified]
    token = _TOKEN.search(answer)
    rows = list(zip(_decoded(keys), sizes, etags, moments, strict=True))
    return rows, unescape(token[1]) if token else None


def _decoded(keys: list[str]) -> list[str]:
    """Return the keys as they are, decoded together.

    An ampersand itself is encoded, so one that stands there begins XML's own escape of a quotation mark.
    """
    text = "\0".join(keys).replace("+", " ").replace("%2F", "/").replace("%20", " ")
    if "&" in text:
        text = unescape(text)
    if "%00" in text:
        return [unquote(key) for key in text.split("\0")]
    return _ENCODED.sub(_decoded_run, text).split("\0") if keys else []


_ENCODED: Final = re.compile("%[0-9A-Fa-f]{2}(?:%[0-9A-Fa-f]{2})*")
_unquoted: Final = lru_cache(4096)(unquote)  # names hold the same few letters again and again


def _decoded_run(found: re.Match[str]) -> str:
    return _unquoted(found[0])
