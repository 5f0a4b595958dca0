"""Pages of a listing of a bucket, as rows that PostgreSQL copies."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple, Self
from urllib.parse import unquote_plus

PAGE: Final = 1000
"""Keys in a page: the most that S3 gives."""


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
    """The first page of the keys with ``prefix`` after ``after`` (as UTF-8), up to ``last``; or the token's."""

    prefix: str
    after: str = ""
    last: str | None = None
    token: str = ""


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


class Listing:
    """Reads the keys of one bucket page by page; safe to share between threads."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def page(self, asked: Asked, shows: Callable[[str], bool]) -> Page:
        """Return the page that is asked for, of those keys alone that are shown."""
        return self._read(asked, shows)[0]

    def level(self, asked: Asked, shows: Callable[[str], bool]) -> tuple[Page, list[str]] | None:
        """Return the keys right below the prefix, and the folders; ``None`` where one page cannot hold them."""
        page, answer = self._read(asked, shows, Delimiter="/")
        folders = [_decoded(answer, each["Prefix"]) for each in answer.get("CommonPrefixes", ())]
        return (page, folders) if not answer["IsTruncated"] else None

    def _read(self, asked: Asked, shows: Callable[[str], bool], **more: str) -> tuple[Page, dict[str, Any]]:
        request: dict[str, Any] = {"Bucket": self._bucket, "Prefix": asked.prefix, "MaxKeys": PAGE, **more}
        if asked.after:
            request["StartAfter"] = asked.after
        if asked.token:
            request["ContinuationToken"] = asked.token
        # Where keys are asked for as they stand in addresses, boto3 leaves their decoding to us.
        answer = self._client.list_objects_v2(**request, EncodingType="url")
        keys = [_decoded(answer, item["Key"]) for item in answer.get("Contents", ())]
        within = keys if asked.last is None else [key for key in keys if key <= asked.last]
        rows = [
            ObjectSeen(key, item["Size"], item["ETag"].strip('"'), item["LastModified"]).row
            for key, item in zip(within, answer.get("Contents", ()), strict=False)
            if shows(key)
        ]
        goes_on = answer["IsTruncated"] and len(within) == len(keys)
        return Page.of(rows, answer.get("NextContinuationToken") if goes_on else None), answer


def _decoded(answer: dict[str, Any], key: str) -> str:
    return unquote_plus(key) if answer.get("EncodingType") == "url" else key
