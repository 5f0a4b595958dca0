"""Inspect untrusted files, and draw them for people, in a process of its own that a hostile file may break.

Run as a module, it is that process: it answers each open file that comes through its input, a socket, with a line
(an ``Inspected`` as JSON). With the argument ``draw`` its input is a PDF, and each page becomes a line. It can
write no file, and has limits to its memory and to the seconds of the processor that a file may take.
"""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from base64 import b64decode, b64encode
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, replace
from io import BytesIO
from pathlib import Path
from typing import IO, Final

import pypdfium2

from toolkit.contract.contents import ActivePart, ContentProblem, Depth
from toolkit.contract.evidence import FileKind, kind_of_media_type
from toolkit.errors import NotInspected, VerificationFailed
from toolkit.evidence.documents import inspect_document
from toolkit.evidence.kinds import SIGNATURE_BYTES, Inspected, media_type_of_bytes, readers_of, tag_length
from toolkit.evidence.recordings import inspect_recording

MEMORY_BYTES: Final = 1024**3  # of the process; the files that it looks at are mapped and do not count
_FAULT: Final = "fault"  # in place of an ``Inspected``: the kind of the error of the inspection itself


def inspect_file(path: Path) -> Inspected:
    """Look at all of a file that is not empty."""
    with path.open("rb") as file:
        head = file.read(SIGNATURE_BYTES)
        media_type = media_type_of_bytes(head)
        if tag := tag_length(head):  # some programs put one before others than MP3, too
            file.seek(tag)
            behind = media_type_of_bytes(file.read(SIGNATURE_BYTES))
            media_type = behind if behind in ("audio/aac", "audio/flac") else media_type
    kind = kind_of_media_type(media_type)
    if kind is FileKind.PDF:
        found = inspect_document(path)
    elif kind is FileKind.AUDIO:
        found = inspect_recording(path, media_type)
    else:
        found = Inspected(media_type)
    return replace(found, readers=readers_of(kind))


SECONDS: Final = 60  # of the processor that the inspection of one file may take
_STANDSTILL: Final = 600  # seconds by the clock after which the machine is to blame, and not the file
_SENT: Final = frozenset(-number for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
"""The exit codes of a process that somebody else ended, or the system for want of memory."""

_START_SECONDS: Final = 60
_MODULE: Final = "toolkit.evidence.inspection"
PAGES: Final = 10  # the first pages, which are drawn
_WIDTH: Final = 900
_DRAWING_SECONDS: Final = 30


def _process(*arguments: str) -> tuple[list[str], dict[str, str]]:
    """Return the command of this module, and its environment: nothing of ours, which may hold secrets."""
    given = {"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": os.defpath, "OMP_NUM_THREADS": "1"}
    return [sys.executable, "-P", "-m", _MODULE, *arguments], given


class Inspector(AbstractContextManager["Inspector"]):
    """Looks at one file after the other; one that crashes the process is damaged.

    One that takes too long is so, too, unless it is a PDF: that one is unclear, as drawing a page has no end. The
    seconds are the processor's: a machine that is busy, or was suspended, says nothing about a file.

    The process gets each file open: it needs no name.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._files: socket.socket | None = None

    def __exit__(self, *_: object) -> None:
        self._end()

    def inspect(self, file: IO[bytes]) -> Inspected:
        """Look at all of an open file that is not empty.

        Raises:
            VerificationFailed: the process cannot be started.
            NotInspected: the inspection failed by a fault of its own, or was ended: nothing is known of the file.
        """
        process = self._process or self._start()
        answer = self._ask(process, file, _STANDSTILL)
        if answer:
            found = json.loads(answer)
            if _FAULT in found:
                self._end()
                raise NotInspected
            problem = found.pop("problem")
            return Inspected(problem=ContentProblem(problem) if problem else None, **found)
        self._end()
        if process.returncode in _SENT:
            raise NotInspected
        media_type = media_type_of_bytes(os.pread(file.fileno(), SIGNATURE_BYTES, 0))
        kind = kind_of_media_type(media_type)
        broken = Inspected(media_type, ContentProblem.DAMAGED, readers=readers_of(kind))
        if process.returncode != -signal.SIGXCPU or kind is not FileKind.PDF:
            return broken
        return replace(broken, problem=None, active_parts=(ActivePart.UNCLEAR,), depth=Depth.PART)

    def _start(self) -> subprocess.Popen[str]:
        command, given = _process()
        self._files, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(  # noqa: S603  # our own interpreter and module
                command,
                stdin=theirs.fileno(),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=given,
                text=True,
                encoding="utf-8",
            )
        self._process = process
        if self._ask(process, None, _START_SECONDS) != "ready\n":
            self._end()
            raise VerificationFailed
        return process

    def _ask(self, process: subprocess.Popen[str], file: IO[bytes] | None, seconds: float) -> str:
        """Return the line that the process answers with, empty where it ended or had to be ended."""
        assert self._files is not None
        assert process.stdout is not None
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        try:
            if file is not None:
                socket.send_fds(self._files, [b"?"], [file.fileno()])
            return process.stdout.readline()
        except (BrokenPipeError, ConnectionResetError, UnicodeDecodeError):
            return ""
        finally:
            timer.cancel()

    def _end(self) -> None:
        process, self._process = self._process, None
        if self._files is not None:
            self._files.close()
        if process is not None:
            process.kill()
            process.communicate()


def drawn_pages(file: IO[bytes]) -> list[bytes]:
    """Return the first pages of a PDF as PNG, those that could be drawn in time."""
    command, given = _process("draw")
    try:
        ran = subprocess.run(  # noqa: S603  # our own interpreter and module
            command, stdin=file, capture_output=True, timeout=_DRAWING_SECONDS, env=given, check=False
        )
    except subprocess.TimeoutExpired as error:
        return [b64decode(line) for line in (error.stdout or b"").splitlines()[:-1]]
    return [b64decode(line) for line in ran.stdout.splitlines()]


def _confine() -> None:
    """Limit the memory of this process, and let it write no file."""
    limits = {resource.RLIMIT_DATA: MEMORY_BYTES, resource.RLIMIT_FSIZE: 0, resource.RLIMIT_CORE: 0}
    for limit, value in limits.items():
        with suppress(OSError, ValueError):  # not every system knows every limit
            resource.setrlimit(limit, (value, value))


def _draw() -> None:
    document = pypdfium2.PdfDocument(sys.stdin.buffer.read())
    document.init_forms()
    for page in (document[number] for number in range(min(len(document), PAGES))):
        picture = BytesIO()
        page.render(scale=_WIDTH / max(page.get_size())).to_pil().save(picture, "PNG")
        print(b64encode(picture.getvalue()).decode(), flush=True)


def _serve() -> None:
    print("ready", flush=True)
    with socket.socket(fileno=sys.stdin.fileno()) as files:
        while received := socket.recv_fds(files, 1, 1)[1]:
            with suppress(OSError, ValueError):
                used, hard = sum(os.times()[:2]), resource.getrlimit(resource.RLIMIT_CPU)[1]
                resource.setrlimit(resource.RLIMIT_CPU, (int(used) + 1 + SECONDS, hard))
            try:
                answer = asdict(inspect_file(Path(f"/dev/fd/{received[0]}")))
            except (MemoryError, RecursionError):
                raise  # the file asks for too much
            except Exception as error:  # ours, of which the file is not to blame; its text may quote the file
                answer = {_FAULT: type(error).__name__}
            os.close(received[0])
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _confine()
    if sys.argv[1:] == ["draw"]:
        _draw()
    else:
        _serve()
