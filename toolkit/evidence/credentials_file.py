"""Read a credentials file: JSON Lines, one upload form a line.

Its journal names the lines whose files are in the bucket already, and is kept as ``<credentials file>.done``.
"""

import fcntl
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit
from uuid import UUID

from toolkit.contract.evidence import EvidenceType
from toolkit.errors import InvalidInput, UnreadableFile
from toolkit.partner import FormPolicy

_HALF_CHARACTER: Final = re.compile("[\ud800-\udfff]")
"""JSON can spell it, but it is no text that a file name or a form could hold."""


def journal_of(credentials: Path) -> Path:
    """Return the file in which uploads with a credentials file note the lines that were sent."""
    return credentials.with_name(credentials.name + ".done")


@dataclass(frozen=True, slots=True)
class CredentialsLine:
    """One upload form and the file that it is for; ``line`` counts from 1 in the credentials file."""

    line: int
    id: UUID
    sale_id: str
    file_name: str
    evidence_type: EvidenceType | None
    url: str
    fields: Mapping[str, str] = field(repr=False)
    policy: FormPolicy

    @property
    def host(self) -> str:
        """The host of ``url``."""
        return urlsplit(self.url).hostname or ""


def read_credentials(path: Path) -> Iterator[CredentialsLine]:
    """Read the lines of a credentials file one after the other; blank ones are passed over.

    Raises:
        UnreadableFile: the file is missing, or a line is not what it should be; the text names the line.
    """
    try:
        with path.open("rb") as file:
            for number, text in enumerate(file, start=1):
                if text.strip():
                    try:
                        yield _line(number, text)
                    except InvalidInput as error:
                        raise UnreadableFile("{}, line {}: {}", path, number, error.args[0]) from None
    except OSError as error:
        raise UnreadableFile("{} cannot be read: {}.", path, error.strerror) from None


def _line(number: int, text: bytes) -> CredentialsLine:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput(
            "this is not JSON; the file holds one JSON object a line, see: toolkit credentials request"
        ) from None
    if not isinstance(document, dict):
        raise InvalidInput("this is not a JSON object.")
    if _HALF_CHARACTER.search(json.dumps(document, ensure_ascii=False)):
        raise InvalidInput("a text holds half a character (a lone surrogate).")
    fields = document.get("fields")
    if not isinstance(fields, dict) or not all(isinstance(value, str) for value in fields.values()):
        raise InvalidInput("fields is missing or not an object of texts.")
    policy = FormPolicy.of(fields)
    texts: dict[str, str] = {}
    for name in ("id", "url", "saleId", "fileName"):
        value = document.get(name)
        if not isinstance(value, str) or not value:
            raise InvalidInput("{} is missing or not a text.", name)
        texts[name] = value
    if not _is_address(texts["url"]):
        raise InvalidInput("url is not an http or https address.")
    try:
        evidence_id, named = UUID(texts["id"]), document.get("evidenceType")
        evidence_type = EvidenceType(named) if named is not None else None
    except ValueError:
        raise InvalidInput("id is not a UUID, or evidenceType is none of the contract's.") from None
    return CredentialsLine(
        number, evidence_id, texts["saleId"], texts["fileName"], evidence_type, texts["url"], fields, policy
    )


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def remove_expired(folder: Path, now: datetime) -> None:
    """Remove the credentials files in ``folder`` of which every form has run out, with their journals."""
    for path in folder.glob("*.jsonl"):
        with suppress(UnreadableFile, OSError):  # what cannot be read is somebody else's
            if all(line.policy.expires_at < now for line in read_credentials(path)):
                path.unlink()
                journal_of(path).unlink(missing_ok=True)


class Journal:
    """The ids of the records whose files the bucket took, one a line, each on the disk before it counts.

    It works where only the forms exist, without the toolkit's database or bucket. A kill between the bucket's
    answer and the line makes that one file go out again, to the same key and with the same bytes. One upload
    of a credentials file at a time: the journal is locked while it is open.
    """

    def __init__(self, credentials: Path) -> None:
        self._path = journal_of(credentials)
        self._done: set[UUID] = set()

    def __enter__(self) -> Self:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._file = os.fdopen(descriptor, "r+b", buffering=0)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise InvalidInput("Another upload with this credentials file is under way.") from None
        content = self._file.read()
        for line in content.split(b"\n"):
            with suppress(ValueError):  # of a line that is no id
                self._done.add(UUID(line.decode()))
        if content and not content.endswith(b"\n"):  # a kill tore the last line
            self._file.write(b"\n")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __contains__(self, evidence_id: UUID) -> bool:
        return evidence_id in self._done

    def add(self, evidence_ids: Iterable[UUID]) -> None:
        """Note that the bucket took these; on the disk when this returns."""
        lines = b"".join(f"{evidence_id}\n".encode() for evidence_id in evidence_ids)
        if lines:
            self._file.write(lines)
            os.fsync(self._file.fileno())
