"""Read the policy of an upload form, and write the form as multipart/form-data."""

import base64
import binascii
import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO, Final, Self

from toolkit.errors import InvalidInput, UnreadableFile

CHUNK_BYTES: Final = 64 * 1024
"""Bytes that are read and sent at a time."""

_ACL: Final = ("acl", "private")
"""The one part of the form that the contract demands beside the fields of the credentials."""


@dataclass(frozen=True, slots=True)
class FormPolicy:
    """The limits of an upload form: its end, and the bytes it takes (``None``: not said)."""

    expires_at: datetime
    min_bytes: int = 0
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
            ranges = [item for item in policy["conditions"] if isinstance(item, list) and _is_range(item)]
            smallest, largest = (int(ranges[0][1]), int(ranges[0][2])) if ranges else (0, None)
        except (binascii.Error, ValueError, TypeError, LookupError, OverflowError, RecursionError):
            raise InvalidInput("The Policy among the upload fields cannot be read.") from None
        if expires_at.tzinfo is None:
            raise InvalidInput("The Policy among the upload fields expires at a time without an offset.")
        return cls(expires_at, smallest, largest)


def _is_range(condition: list[object]) -> bool:
    return bool(condition) and str(condition[0]).lower() == "content-length-range"


class MultipartForm:
    """The parts of contract section 3 in their order: the fields, ``acl``, and the file last.

    S3 ignores whatever follows the file, so nothing does.
    """

    def __init__(self, fields: Mapping[str, str], file_name: str) -> None:
        self._boundary = secrets.token_hex(16)
        given = {name.lower() for name in fields}
        parts = list(fields.items()) + ([] if _ACL[0] in given else [_ACL])
        self._before = (
            "".join(self._header(name) + f"\r\n{value}\r\n" for name, value in parts)
            + self._header("file", f'; filename="{_quoted(file_name)}"')
            + "Content-Type: application/octet-stream\r\n\r\n"
        ).encode()
        self._after = f"\r\n--{self._boundary}--\r\n".encode()

    @property
    def content_type(self) -> str:
        """The value of the request's header ``Content-Type``."""
        return f"multipart/form-data; boundary={self._boundary}"

    def length(self, size: int) -> int:
        """Return the number of bytes in the request's body when the file has ``size``."""
        return len(self._before) + size + len(self._after)

    def body(self, file: BinaryIO, size: int, sent: Callable[[int], None]) -> Iterator[bytes]:
        """Yield the request's body, a chunk at a time; ``sent`` is told the bytes of the file as they go.

        Raises:
            UnreadableFile: the file has no longer ``size`` bytes; the body stays without its end, so that no
                server takes it for a whole one.
        """
        yield self._before
        left = size
        while left:
            chunk = file.read(min(left, CHUNK_BYTES))
            if not chunk:
                break
            left -= len(chunk)
            yield chunk
            sent(len(chunk))
        if left or file.read(1):
            raise UnreadableFile("The file changed while it was sent.")
        yield self._after

    def _header(self, name: str, more: str = "") -> str:
        return f'--{self._boundary}\r\nContent-Disposition: form-data; name="{_quoted(name)}"{more}\r\n'


def _quoted(text: str) -> str:
    """Quote a name as browsers do (WHATWG, "multipart/form-data encoding algorithm")."""
    return text.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22")
