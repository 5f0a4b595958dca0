"""Read a credentials file: JSON Lines, one upload form a line, as ``toolkit credentials request`` writes it.

Its journal names the lines whose files are in the bucket already, and is kept as ``<credentials file>.done``.
"""

import fcntl
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NoReturn, Self
from urllib.parse import urlsplit
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Row

from toolkit.bucket.client import Bucket
from toolkit.contract.deadlines import Clock
from toolkit.contract.evidence import EvidenceType
from toolkit.contract.fields import parse
from toolkit.database.belonging import check_bucket
from toolkit.database.connection import Database
from toolkit.database.service import evidences
from toolkit.database.tables import withdrawals
from toolkit.errors import CredentialsExpired, InvalidInput, UnreadableFile
from toolkit.evidence.bulk_credentials import journal_of
from toolkit.evidence.credentials import UploadLimits, request_upload
from toolkit.evidence.manifest import ManifestRow, Wanted, known_records, stage
from toolkit.log.events import record_reissued
from toolkit.partner import FormPolicy

_HALF_CHARACTER: Final = re.compile("[\ud800-\udfff]")
"""JSON can spell it, but it is no text that a file name or a form could hold."""


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
    def address(self) -> str:
        """The destination of the file: scheme, host and port of ``url``."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

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
                    yield _line(path, number, text)
    except OSError as error:
        raise UnreadableFile("{} cannot be read: {}.", path, error.strerror) from None


def remove_expired(folder: Path, now: datetime) -> None:
    """Remove the credentials files in ``folder`` of which every form has run out, with their journals."""
    for path in folder.glob("*.jsonl"):
        with suppress(UnreadableFile, OSError):  # what cannot be read is somebody else's
            if all(line.policy.expires_at < now for line in read_credentials(path)):
                path.unlink()
                journal_of(path).unlink(missing_ok=True)


def _line(path: Path, number: int, text: bytes) -> CredentialsLine:
    def refuse(reason: str) -> NoReturn:
        raise UnreadableFile("{}, line {}: {}", path, number, reason)

    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        refuse("this is not JSON; the file holds one JSON object a line, see: toolkit credentials request")
    if not isinstance(document, dict):
        refuse("this is not a JSON object.")

    def required(name: str) -> str:
        value = document.get(name)
        if not isinstance(value, str) or not value:
            refuse(f"{name} is missing or not a text.")
        return value

    if _HALF_CHARACTER.search(json.dumps(document, ensure_ascii=False)):
        refuse("a text holds half a character (a lone surrogate).")
    fields = _fields(document.get("fields"))
    if fields is None:
        refuse("fields is missing or not an object of texts.")
    try:
        policy = FormPolicy.of(fields)
        evidence_id = UUID(required("id"))
        named = document.get("evidenceType")
        evidence_type = EvidenceType(named) if named is not None else None
    except InvalidInput as error:
        refuse(str(error))
    except ValueError:
        refuse("id is not a UUID, or evidenceType is none of the contract's.")
    url = required("url")
    if not _is_address(url):
        refuse("url is not an http or https address.")
    return CredentialsLine(
        number,
        evidence_id,
        required("saleId"),
        required("fileName"),
        evidence_type,
        url,
        fields,
        policy,
    )


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _fields(value: Any) -> dict[str, str] | None:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        return None
    return value


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


@dataclass(frozen=True, slots=True)
class Renewal:
    """Access to the database and the bucket for an upload that may ask for new credentials."""

    database: Database
    bucket: Bucket
    limits: UploadLimits
    clock: Clock

    def renewed(self, line: CredentialsLine) -> CredentialsLine | None:
        """Return the line with another form for the same file; ``None`` where the file is there already.

        What an earlier call asked for, and was killed before it was noted, is used again: a second record is
        made only where none of the same sale, type and file name lives longer than the line.

        Raises:
            CredentialsExpired: the record is not ours, or was withdrawn: nothing new is asked for.
        """
        record = self._record(line)
        if record is None:
            raise CredentialsExpired
        body = {
            "fileName": record.file_name,
            "fileFormat": record.file_format,
            "type": record.type,
            "evidenceType": record.evidence_type,
        }
        with self.database.transaction() as connection:
            check_bucket(connection, self.bucket)
            stage(connection, [Wanted(line.line, parse(ManifestRow, {**body, "saleId": record.sale_id}))])
            now = self.clock()
            known = known_records(connection, self.bucket, now).get(0)
            if known is not None and known.uploaded:
                return None
            if known is not None and known.expires_at and known.expires_at > line.policy.expires_at:
                form = self.bucket.presign_post(
                    known.object_key, max_bytes=self.limits.max_bytes, expires_at=known.expires_at
                )
                record_reissued(connection, [known.evidence_id], now)
                return _with_form(line, known.evidence_id, form.url, form.fields)
        fresh = request_upload(
            self.database,
            self.bucket,
            record.sale_id,
            body,
            requested_by=record.requested_by,
            limits=self.limits,
            clock=self.clock,
        )
        return _with_form(line, fresh.id, fresh.url, fresh.fields)

    def _record(self, line: CredentialsLine) -> Row[Any] | None:
        withdrawn = sa.select(withdrawals.c.evidence_id).where(withdrawals.c.evidence_id == evidences.c.id)
        query = sa.select(evidences).where(evidences.c.id == line.id, ~withdrawn.exists())
        with self.database.transaction() as connection:
            return connection.execute(query).one_or_none()


def _with_form(line: CredentialsLine, evidence_id: UUID, url: str, fields: Mapping[str, str]) -> CredentialsLine:
    return replace(line, id=evidence_id, url=url, fields=fields, policy=FormPolicy.of(fields))
