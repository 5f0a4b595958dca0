"""Start ``toolkit serve`` as people do, in a process of its own, and find it by the line that it announces."""

import json
import os
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.waiting import started, wait_until

SECRET = "not-a-secret-but-long-enough-for-tests"


@dataclass(frozen=True)
class Server:
    """A running server: its address, its process and its log."""

    url: str
    process: subprocess.Popen[bytes]
    log_file: Path

    @property
    def port(self):
        return int(self.url.rpartition(":")[2])

    def log(self, event):
        """The whole lines of the log so far that tell of ``event``; each is one JSON object."""
        lines = [json.loads(line) for line in self.log_file.read_text().split("\n")[:-1]]
        return [line for line in lines if line["event"] == event]

    def logged(self, event, **fields):
        """The last line with these fields; a line may be written just after its answer was read."""

        def found():
            return [line for line in self.log(event) if fields.items() <= line.items()]

        wait_until(found)
        return found()[-1]


@contextmanager
def serving(environ):
    """A server that listens on a free port; asked to end afterwards."""
    command = [sys.executable, "-m", "toolkit", "serve", "--port", "0"]
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    with tempfile.NamedTemporaryFile() as log:
        options = {"env": inherited | dict(environ), "stderr": log, "stdout": subprocess.DEVNULL}
        log_file, listening = Path(log.name), re.compile('"event":"listening".*"url":"(.+?)"')
        with started(command, lambda: listening.findall(log_file.read_text()), log=log_file, **options) as process:
            yield Server(listening.findall(log_file.read_text())[0], process, log_file)
