"""A server of Spark Connect in a process of its own: Sail, which needs no JVM."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

REMOTE = "SPARK_REMOTE"
"""The variable, PySpark's own, that names a running server, such as a real Spark, to test and to measure too."""

_START = """
from pysail.spark import SparkConnectServer
server = SparkConnectServer('127.0.0.1', 0)
server.start(background=True)
print(server.listening_address[1], flush=True)
input()
"""


@contextmanager
def sail(
    environ: Mapping[str, str] | None = None, within: tuple[str, ...] = ()
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The URL of a server, with the environment of this process and ``environ``, and its process."""
    pytest.importorskip("pysail.spark")
    server = subprocess.Popen(
        [*within, sys.executable, "-c", _START],
        env=os.environ | dict(environ or {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert server.stdout is not None
        yield f"sc://127.0.0.1:{int(server.stdout.readline())}", server
    finally:
        server.kill()
        server.communicate()
