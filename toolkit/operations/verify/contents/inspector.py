"""Fetch files, and run their inspection in another process, which a hostile file may break."""

import hashlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Self

import toolkit
from toolkit.domain.contents import ContentProblem
from toolkit.domain.signatures import SIGNATURE_BYTES, media_type_of_bytes
from toolkit.errors import VerificationFailed
from toolkit.operations.verify.contents.inspection import Inspected
from toolkit.storage.bucket import Bucket

SECONDS: Final = 60
"""Seconds that the inspection of one file may take."""

_START_SECONDS: Final = 60

_MODULE: Final = "toolkit.operations.verify.contents.inspection"


class Inspector:
    """Looks at one file after the other; one that crashes the process, or takes too long, is damaged.

    The process gets nothing of our environment, which may hold secrets, and each file open: it needs no name.
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[str] | None = None
        self._files: socket.socket | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def inspect(self, file: IO[bytes]) -> Inspected:
        """Look at all of an open file that is not empty.

        Raises:
            VerificationFailed: the process cannot be started.
        """
        process = self._process or self._start()
        answer = self._ask(process, file, self._seconds)
        if answer:
            found = json.loads(answer)
            problem = found.pop("problem")
            return Inspected(problem=ContentProblem(problem) if problem else None, **found)
        self._end()
        return Inspected(media_type_of_bytes(os.pread(file.fileno(), SIGNATURE_BYTES, 0)), ContentProblem.DAMAGED)

    def _start(self) -> subprocess.Popen[str]:
        folder = str(Path(toolkit.__file__).parents[1])
        self._files, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(  # noqa: S603  # our own interpreter and module
                [sys.executable, "-P", "-m", _MODULE],
                stdin=theirs.fileno(),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={"PYTHONPATH": folder, "PATH": os.defpath, "OMP_NUM_THREADS": "1"},
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


@dataclass(frozen=True, slots=True)
class Fetched:
    """The inspected contents of an object, their SHA-256, and the media type that the bucket declares."""

    found: Inspected
    sha256: str
    stored_type: str | None


def fetch_and_inspect(bucket: Bucket, key: str, etag: str, inspect: Callable[[IO[bytes]], Inspected]) -> Fetched:
    """Return what the object is; a file without a name holds it meanwhile.

    Raises:
        BucketError: it cannot be read, or was overwritten since it had this ``etag``.
        VerificationFailed: files cannot be looked at on this machine.
    """
    digest = hashlib.sha256()
    with tempfile.TemporaryFile() as file:  # so that a kill leaves nothing
        with bucket.download(key, etag=etag) as (chunks, stored_type):
            for chunk in chunks:
                file.write(chunk)
                digest.update(chunk)
        file.flush()
        return Fetched(inspect(file), digest.hexdigest(), stored_type)
