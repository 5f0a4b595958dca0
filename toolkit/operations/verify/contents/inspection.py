"""Inspect an untrusted file. Run as a module, it does so in a process of its own with limits.

It answers each open file that comes through its input, a socket, with a line (an ``Inspected`` as JSON). It can
write no file, and has a limit to its memory; the parent limits its time.
"""

import json
import os
import resource
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from toolkit.domain.contents import ActivePart, ContentProblem
from toolkit.domain.evidence import FileKind, kind_of_media_type
from toolkit.domain.signatures import SIGNATURE_BYTES, UNKNOWN, media_type_of_bytes
from toolkit.operations.verify.contents.audio import inspect_audio
from toolkit.operations.verify.contents.containers import NotAudio
from toolkit.operations.verify.contents.normal_form import normal_form
from toolkit.operations.verify.contents.pdf import inspect_pdf

MEMORY_BYTES: Final = 1024**3
"""Memory of the process that looks at files; the files themselves are mapped and do not count."""


@dataclass(frozen=True, slots=True)
class Inspected:
    """The kind of one file and its fault, if any; ``seconds`` and ``pages`` where they apply."""

    media_type: str
    problem: ContentProblem | None = None
    pages: int | None = None
    seconds: float | None = None
    normal_form: str | None = None
    """The SHA-256 of its normal form (``normal_form``)."""
    active_parts: Sequence[ActivePart] = ()

    @property
    def kind(self) -> FileKind:
        """The file kind of the media type."""
        return kind_of_media_type(self.media_type)


def inspect_file(path: Path) -> Inspected:
    """Look at all of a file that is not empty."""
    with path.open("rb") as file:
        media_type = media_type_of_bytes(file.read(SIGNATURE_BYTES))
    kind = kind_of_media_type(media_type)
    pages, seconds = None, None
    if kind is FileKind.PDF:
        problem, pages, active = inspect_pdf(path)
    elif kind is FileKind.AUDIO:
        try:
            problem, seconds, active = inspect_audio(path, media_type)
        except NotAudio:
            return Inspected(UNKNOWN)
    else:
        return Inspected(media_type)
    form = normal_form(path, media_type) if problem is None else None
    return Inspected(media_type, problem, pages, seconds, form, active)


def _confine() -> None:
    limits = {
        resource.RLIMIT_DATA: MEMORY_BYTES,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
    }
    for limit, value in limits.items():
        with suppress(OSError, ValueError):  # not every system knows every limit
            resource.setrlimit(limit, (value, value))


def _serve() -> None:
    _confine()
    print("ready", flush=True)
    with socket.socket(fileno=sys.stdin.fileno()) as files:
        while received := socket.recv_fds(files, 1, 1)[1]:
            found = inspect_file(Path(f"/dev/fd/{received[0]}"))
            os.close(received[0])
            print(json.dumps(asdict(found)), flush=True)


if __name__ == "__main__":
    _serve()
