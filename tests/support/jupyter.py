"""A JupyterLab for tests, in a process of its own."""

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from contextlib import contextmanager

from tests.support.postgres_cluster import free_port
from tests.support.waiting import PATIENCE, wait_until


class Jupyter:
    """A running JupyterLab, whose token is ``t``."""

    def __init__(self):
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        options = (
            "--no-browser",
            f"--port={self.port}",
            "--ServerApp.port_retries=0",
            "--IdentityProvider.token=t",
        )
        self.options = options

    def ask(self, path):
        with urllib.request.urlopen(f"{self.address}{path}?token=t", timeout=PATIENCE) as answer:
            return json.load(answer)

    def answers(self):
        try:
            return bool(self.ask("/api"))
        except urllib.error.URLError:
            return False


@contextmanager
def jupyter_lab(command, *, as_option="", folder=None, environ=None):
    """Start it by a command that is followed by its options, as one word where ``as_option`` names it."""
    lab = Jupyter()
    words = [*command, f"{as_option}={' '.join(lab.options)}"] if as_option else [*command, *lab.options]
    server = subprocess.Popen(words, cwd=folder, env=environ, start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: server.poll() is not None or lab.answers(), step=0.1)
        assert server.poll() is None, "JupyterLab ended"
        yield lab
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(PATIENCE)
