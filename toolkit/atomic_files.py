"""Write a file that only its owner may read, and that appears whole or not at all."""

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TextIO

from filelock import FileLock, Timeout

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
        raise InvalidInput("{} is not a file that can be replaced; name another one.", path)
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
            raise InvalidInput("{} cannot be written: {}.", path, error.strerror or error) from None
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
        raise InvalidInput("{} cannot be written: {}.", path, error.strerror) from None
    # The process that had it locked may have finished it between our opening and our lock.
    if not _locked(descriptor) or not _is_named(draft, descriptor):
        os.close(descriptor)
        raise InvalidInput("{} is being written by somebody else; wait, or name another file.", path)
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


_PREFIX: Final = ".toolkit-draft-"
_LOCK: Final = "lock"
_OWNER_ONLY: Final = 0o600


class PrivateFolder:
    """A folder under ``parent`` that only its owner may enter, locked while it is in use.

    Those that killed processes have left under ``parent`` are removed. A folder that is ``kept`` stays when its
    block ends, as if its process had been killed.
    """

    kept = False

    def __init__(self, parent: Path) -> None:
        parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(parent)
        self._parent = parent
        self.path, self._lock = _locked_folder(parent)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        if self.kept:
            self._lock.release()
        else:
            self.remove()

    def publish(self, file: Path, name: str) -> Path:
        """Move a finished file of this folder into the parent, for its owner only."""
        place = self._parent / name
        file.chmod(_OWNER_ONLY)
        file.replace(place)
        return place

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        self._lock.release()
        shutil.rmtree(self.path, ignore_errors=True)


def _locked_folder(parent: Path) -> tuple[Path, FileLock]:
    """Return a new locked folder in ``parent``; one that somebody removed before it was locked is replaced."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        lock = FileLock(path / _LOCK)
        with suppress(FileNotFoundError, FileExistsError):
            mode = path.stat().st_mode
            lock.acquire()  # which makes the folder again where it is gone, for everybody to enter
            if (path / _LOCK).exists() and path.stat().st_mode == mode:
                return path, lock
        lock.release()
        shutil.rmtree(path, ignore_errors=True)


def sync(file: Path) -> None:
    """Flush the contents of a file, or the names in a folder, to the disk."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_leftovers(parent: Path) -> None:
    for leftover in parent.glob(f"{_PREFIX}*"):
        try:
            about = leftover.lstat()  # in a folder that others write to, a link may lead anywhere
            if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
                continue
            with FileLock(leftover / _LOCK).acquire(timeout=0):  # refused while its owner lives
                shutil.rmtree(leftover, ignore_errors=True)
        except (Timeout, OSError):
            continue
