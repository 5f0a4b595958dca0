"""Find the file of a line below the folder, and check it before any byte is sent."""

import errno
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import Final

from toolkit.domain.evidence import KIND_OF, FileKind
from toolkit.domain.signatures import SIGNATURE_BYTES, kind_of_bytes, media_type_of_bytes
from toolkit.operations.upload.credentials_file import CredentialsLine


class UploadProblem(StrEnum):
    """The reason why a file was not uploaded."""

    NOT_FOUND = "NOT_FOUND"
    AMBIGUOUS = "AMBIGUOUS"
    OUTSIDE = "OUTSIDE"
    HIDDEN = "HIDDEN"
    UNREADABLE = "UNREADABLE"
    EMPTY = "EMPTY"
    TOO_SMALL = "TOO_SMALL"
    TOO_LARGE = "TOO_LARGE"
    WRONG_KIND = "WRONG_KIND"
    EXPIRED = "EXPIRED"
    REFUSED = "REFUSED"
    UNAVAILABLE = "UNAVAILABLE"


class NotSendable(Exception):
    """This file is not sent; a value to report, kept within this package."""

    def __init__(self, problem: UploadProblem, message: str) -> None:
        self.problem = problem
        super().__init__(message)


_NO_COMPONENT: Final = frozenset(("", ".", ".."))


class LocalFiles:
    """The files below ``root``: ``root/saleId/fileName``, or ``root/fileName`` where only one line has that name.

    ``uses`` counts the lines by the names of their files.

    A name that is no plain file name, and a link that leads out of ``root``, are never followed: credentials
    files come from elsewhere.
    """

    def __init__(self, root: Path, uses: Counter[str]) -> None:
        self._root = root.resolve()
        self._uses = uses

    def __len__(self) -> int:
        return self._uses.total()

    def sendable(self, line: CredentialsLine) -> Path:
        """Return the path of the line's file, after every check that can be made on this side.

        Raises:
            NotSendable: with the reason.
        """
        try:
            path = self._find(line)
            size = path.stat().st_size
            with path.open("rb") as file:
                head = file.read(SIGNATURE_BYTES)
        except OSError as error:
            raise NotSendable(UploadProblem.UNREADABLE, f"The file cannot be read: {error.strerror}.") from None
        _check_size(line, size)
        _check_kind(line, head)
        return path

    def _find(self, line: CredentialsLine) -> Path:
        if not _plain(line.file_name):
            raise NotSendable(UploadProblem.OUTSIDE, "fileName is a path, not a plain file name.")
        if line.evidence_type is None and line.file_name.startswith("."):
            why = "fileName is that of a hidden file, and no evidenceType is named."
            raise NotSendable(UploadProblem.HIDDEN, why)
        candidates = [self._root / line.sale_id / line.file_name] if _plain(line.sale_id) else []
        candidates.append(self._root / line.file_name)
        found = next((path for path in candidates if _is_file(path)), None)
        if found is None:
            why = f"There is no file {line.sale_id}/{line.file_name}, and none that is called {line.file_name}."
            raise NotSendable(UploadProblem.NOT_FOUND, why)
        if found == self._root / line.file_name and (uses := self._uses[line.file_name]) > 1:
            why = f"{uses} lines have this name: each belongs in a folder named as its sale."
            raise NotSendable(UploadProblem.AMBIGUOUS, why)
        if not found.resolve().is_relative_to(self._root):
            raise NotSendable(UploadProblem.OUTSIDE, "The file is a link that leads out of the folder.")
        return found


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # no file can be called so
            return False
        raise


def _plain(name: str) -> bool:
    return name not in _NO_COMPONENT and not any(character in name for character in "/\\\0")


def _check_size(line: CredentialsLine, size: int) -> None:
    least, most = line.policy.min_bytes, line.policy.max_bytes
    if size == 0:
        raise NotSendable(UploadProblem.EMPTY, "The file is empty.")
    if size < least:
        raise NotSendable(UploadProblem.TOO_SMALL, f"The file has {size} bytes; at least {least} are needed.")
    if most is not None and size > most:
        raise NotSendable(UploadProblem.TOO_LARGE, f"The file has {size} bytes; at most {most} are allowed.")


def _check_kind(line: CredentialsLine, head: bytes) -> None:
    kind = kind_of_bytes(head)
    if line.evidence_type is None:
        fits, needed = kind is not FileKind.OTHER, "Evidence is a PDF or a recording"
    else:
        wanted = KIND_OF[line.evidence_type]
        fits, needed = kind is wanted, f"{line.evidence_type} needs {wanted}"
    if not fits:
        is_type = media_type_of_bytes(head)
        raise NotSendable(UploadProblem.WRONG_KIND, f"{needed}; by its bytes this is {is_type}.")
