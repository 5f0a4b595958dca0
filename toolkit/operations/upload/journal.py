"""The journal of a credentials file: the lines already in the bucket, kept as ``<credentials file>.done``."""

import fcntl
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Self
from uuid import UUID

from toolkit.errors import InvalidInput
from toolkit.operations.request.bulk import journal_of


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
