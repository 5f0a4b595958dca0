"""Write a file that only its owner may read, and that appears whole or not at all."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from toolkit.errors import InvalidInput


class Draft:
    """The draft beside the future file; ``finish`` it when it is complete."""

    def __init__(self, file: TextIO) -> None:
        self.file = file
        self.complete = False

    def finish(self) -> None:
        """Flush everything that was written to the disk."""
        self.file.flush()
        os.fsync(self.file.fileno())
        self.complete = True


@contextmanager
def atomic_file(path: Path) -> Iterator[Draft]:
    """Open a draft that replaces ``path`` at the end of the block if it is complete, and is removed if it is not.

    The draft has no name where the system knows such files, so that a kill leaves nothing of it but an empty file
    that was locked. Elsewhere what a kill leaves is overwritten by the next draft.

    Raises:
        InvalidInput: it cannot be written there, or somebody else is writing it.
    """
    if path.exists() and not path.is_file():
        raise InvalidInput(f"{path} is not a file that can be replaced; name another one.")
    beside = path.with_name(f".{path.name}.draft")
    descriptor = _opened(beside, path)
    nameless = _nameless(path.parent)
    with (
        os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as locked,
        locked if nameless is None else os.fdopen(nameless, "w", encoding="utf-8", newline="\n") as file,
    ):
        draft = Draft(file)
        try:
            yield draft
            if draft.complete:
                whole = beside if nameless is None else _named(nameless, path.with_name(f".{path.name}.whole"))
                whole.replace(path)
        except OSError as error:
            if error.filename is not None:
                raise
            raise InvalidInput(f"{path} cannot be written: {error.strerror or error}.") from None
        finally:
            # The file of this name is ours only while it is locked: later it may be the draft of another process.
            if _is_named(beside, descriptor):
                beside.unlink()


def _nameless(folder: Path) -> int | None:
    """Return a new file without a name in the folder; ``None`` where the system knows none."""
    try:
        return os.open(folder, os.O_WRONLY | os.O_TMPFILE, 0o600)
    except (AttributeError, OSError):
        return None


def _named(nameless: int, path: Path) -> Path:
    path.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:  # with folders given, the link is followed to the file
        os.link(f"/proc/self/fd/{nameless}", path.name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.close(folder)
    return path


def _opened(draft: Path, path: Path) -> int:
    """Return the draft, locked and empty."""
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}.") from None
    # The process that had it locked may have finished it between our opening and our lock.
    if not _locked(descriptor) or not _is_named(draft, descriptor):
        os.close(descriptor)
        raise InvalidInput(f"{path} is being written by somebody else; wait, or name another file.")
    os.fchmod(descriptor, 0o600)
    os.ftruncate(descriptor, 0)
    return descriptor


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_named(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(follow_symlinks=False), os.fstat(descriptor))
    except OSError:
        return False
