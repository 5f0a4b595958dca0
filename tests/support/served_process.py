"""Start ``toolkit serve`` as people do, in a process of its own, and find it by the line that it announces."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.waiting import PATIENCE, wait_until

SECRET = "not-a-secret-but-long-enough-for-tests"


@dataclass(frozen=True)
class Server:
    """A running server: its address, its process and its log."""

    url: str
    process: subprocess.Popen[bytes]
    log_file: Path

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def log(self, event: str) -> list[dict[str, Any]]:
        """The lines of the log so far that tell of ``event``; every line is one JSON object."""
        lines = [json.loads(line) for line in self.log_file.read_text().splitlines()]
        return [line for line in lines if line["event"] == event]

    def logged(self, event: str, **fields: Any) -> dict[str, Any]:
        """The one line with these fields; a line may be written just after its answer was read."""
        found: list[dict[str, Any]] = []

        def is_there() -> bool:
            found.extend(line for line in self.log(event) if fields.items() <= line.items())
            return bool(found)

        wait_until(is_there)
        return found[-1]


def start(environ: Mapping[str, str], log_file: Path, *options: str) -> subprocess.Popen[bytes]:
    """``toolkit serve`` on a free port, with its log in a file."""
    command = [sys.executable, "-m", "toolkit", "serve", "--port", "0", *options]
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    with log_file.open("wb") as log:
        return subprocess.Popen(command, env=inherited | dict(environ), stderr=log, stdout=subprocess.DEVNULL)


@contextmanager
def serving(environ: Mapping[str, str], *options: str) -> Iterator[Server]:
    """A server that listens; asked to end afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        log_file = Path(folder) / "log"
        process = start(environ, log_file, *options)
        try:
            yield Server(_announced(process, log_file), process, log_file)
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise


def _announced(process: subprocess.Popen[bytes], log_file: Path) -> str:
    wait_until(lambda: process.poll() is not None or '"event":"listening"' in log_file.read_text())
    for line in log_file.read_text().splitlines():
        if '"event":"listening"' in line:
            url: str = json.loads(line)["url"]
            return url
    raise AssertionError(f"the server did not start: {log_file.read_text()}")
