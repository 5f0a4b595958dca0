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
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from toolkit.contract.contents import SPEECH_READER, ActivePart, ContentProblem, Depth
from toolkit.contract.evidence import FileKind, kind_of_media_type
from toolkit.evidence.documents import inspect_document
from toolkit.evidence.kinds import SIGNATURE_BYTES, media_type_of_bytes
from toolkit.evidence.recordings import NotAudio, inspect_recording

RECORDING_READERS: Final = ("av", SPEECH_READER)
DOCUMENT_READERS: Final = ("pypdfium2", "pypdf")

MEMORY_BYTES: Final = 1024**3
"""Memory of the process that looks at files; the files themselves are mapped and do not count."""

FAULT: Final = "fault"
"""In the place of an ``Inspected``, the kind of the error that the inspection itself ended with."""


@dataclass(frozen=True, slots=True)
class Inspected:
    """The kind of one file and its fault, if any; ``seconds`` and ``pages`` where they apply."""

    media_type: str
    problem: ContentProblem | None = None
    pages: int | None = None
    seconds: float | None = None
    normal_form: str | None = None
    """The SHA-256 of what is heard or seen, without anything that can be put around it."""
    active_parts: Sequence[ActivePart] = ()
    speech_seconds: float | None = None
    """``None`` where speech was not looked for."""
    depth: Depth = Depth.TYPE
    readers: Sequence[str] = ()
    """The names and versions of the packages that read it."""

    @property
    def kind(self) -> FileKind:
        """The file kind of the media type."""
        return kind_of_media_type(self.media_type)


def inspect_file(path: Path) -> Inspected:
    """Look at all of a file that is not empty."""
    with path.open("rb") as file:
        media_type = media_type_of_bytes(file.read(SIGNATURE_BYTES))
    kind = kind_of_media_type(media_type)
    if kind is FileKind.PDF:
        seen = inspect_document(path)
        return Inspected(
            media_type,
            seen.problem,
            pages=seen.pages,
            normal_form=seen.normal_form,
            active_parts=seen.parts,
            depth=seen.depth,
            readers=_versions(*DOCUMENT_READERS),
        )
    if kind is FileKind.AUDIO:
        try:
            heard = inspect_recording(path, media_type)
        except NotAudio:
            return Inspected(media_type.replace("audio/", "video/"), readers=_versions(*RECORDING_READERS[:1]))
        return Inspected(
            media_type,
            heard.problem,
            seconds=heard.seconds,
            normal_form=heard.normal_form,
            active_parts=heard.parts,
            speech_seconds=heard.speech_seconds,
            depth=heard.depth,
            readers=_versions(*RECORDING_READERS),
        )
    return Inspected(media_type)


@cache
def _versions(*packages: str) -> tuple[str, ...]:
    """Return the name and the version of each of these packages that is installed."""
    found = []
    for each in packages:
        with suppress(PackageNotFoundError):
            found.append(f"{each} {version(each)}")
    return tuple(found)


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
            try:
                answer = asdict(inspect_file(Path(f"/dev/fd/{received[0]}")))
            except (MemoryError, RecursionError):
                raise  # the file asks for too much
            except Exception as error:  # ours, of which the file is not to blame; its text may quote the file
                answer = {FAULT: type(error).__name__}
            os.close(received[0])
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve()
