"""Write a file that only its owner may read, and that appears whole or not at all."""

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TextIO

from filelock import FileLock, Timeout

from toolkit.errors import InvalidInput


@contextmanager
def atomic_file(path: Path) -> Iterator[TextIO]:
    """Open a draft that replaces ``path`` at the end of the block, unless it failed or closed the draft.

    What a kill leaves of it lies in a folder that only its owner may enter, until the next file is written there.

    Raises:
        InvalidInput: it cannot be written there.
    """
    if path.exists() and not path.is_file():
        raise InvalidInput("{} is not a file that can be replaced; name another one.", path)
    try:
        private = PrivateFolder(path.parent.resolve(strict=True))
    except OSError as error:
        raise InvalidInput("{} cannot be written: {}.", path, error.strerror) from None
    try:
        with private as folder, (folder / "draft").open("w", encoding="utf-8", newline="\n") as file:
            yield file
            if not file.closed:
                to_disk(file)
                private.publish(folder / "draft", path.name)
    except OSError as error:
        if error.filename is not None:
            raise
        raise InvalidInput("{} cannot be written: {}.", path, error.strerror or error) from None


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
        for leftover in abandoned(parent):
            shutil.rmtree(leftover, ignore_errors=True)
        self._parent = parent
        self.path, self._lock = _locked_folder(parent)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OSError) and error.filename is None and os.strerror(errno.ENOSPC) in str(error):
            error.strerror, error.filename = error.strerror or str(error), str(self._parent)  # which disk
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


def to_disk(file: TextIO) -> None:
    """Flush everything that was written to the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync(file: Path) -> None:
    """Flush the contents of a file, or the names in a folder, to the disk."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_once(path: Path, content: bytes) -> None:
    """Make a file of its owner's only, whole, unless it is there: another process may be first."""
    if not path.exists():
        with PrivateFolder(path.parent) as folder:
            draft = folder / path.name
            draft.touch(_OWNER_ONLY)
            draft.write_bytes(content)
            sync(draft)  # else a power failure may leave its name and not its content
            with suppress(FileExistsError):
                path.hardlink_to(draft)


def abandoned(parent: Path) -> Generator[Path]:
    """Yield the private folders that killed processes have left under ``parent``, each locked meanwhile."""
    for leftover in parent.glob(f"{_PREFIX}*"):
        try:
            about = leftover.lstat()  # in a folder that others write to, a link may lead anywhere
            if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
                continue
            lock = FileLock(leftover / _LOCK).acquire(timeout=0)  # refused while its owner lives
        except (Timeout, OSError):  # its owner may remove it just now
            continue
        with lock:
            yield leftover
