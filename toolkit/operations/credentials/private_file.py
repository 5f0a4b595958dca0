"""A file that only its owner may read, and that appears whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from toolkit.errors import InvalidInput


def journal_of(credentials: Path) -> Path:
    """Where uploads with a credentials file note what they have sent."""
    return credentials.with_name(credentials.name + ".done")


class Draft:
    """What will become the file, beside it: ``close`` it when it is complete."""

    def __init__(self, file: TextIO) -> None:
        self.file = file
        self.complete = False

    def close(self) -> None:
        """Bring everything that was written to the disk."""
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        self.complete = True


@contextmanager
def private_file(path: Path) -> Iterator[Draft]:
    """A draft that takes the place of ``path`` at the end of the block where it is complete, and else goes away.

    Raises:
        InvalidInput: it cannot be written there.
    """
    if path.exists() and not path.is_file():
        raise InvalidInput(f"{path} is not a file that can be replaced; name another one.")
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}.") from None
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            draft = Draft(file)
            yield draft
        if draft.complete:
            beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
