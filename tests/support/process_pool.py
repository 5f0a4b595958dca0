"""Commands as processes of their own that start at once, from one process that has loaded what they need."""

from __future__ import annotations

import io
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pkgutil import resolve_name
from typing import NoReturn

from tests.support.waiting import PATIENCE
from toolkit.cli import main

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(
    [
        "tests.support.job_runner",
        "toolkit.notebooks.running",
        "toolkit.audit.run",
        "toolkit.kit.audits",
        "toolkit.intake.clients",
    ]
)

Place = tuple[str, str, str]
"""A module, something in it, and a function of that."""


def start_command(environ: Mapping[str, str], *words: str) -> BaseProcess:
    """The command, running; nobody reads what it prints."""
    process = FORKED.Process(target=_run, args=(dict(environ), words))
    process.start()
    return process


@contextmanager
def stalled(environ: Mapping[str, str], place: Place, *words: str) -> Iterator[None]:
    """The command while it stands still in the function at ``place``; killed at the end of the block."""
    here, there = FORKED.Pipe()
    process = FORKED.Process(target=_run, args=(dict(environ), words, place, there))
    process.start()
    there.close()
    try:
        assert here.poll(PATIENCE)
        assert here.recv() == "stalled"
        yield
    finally:
        process.kill()
        process.join()


def _run(
    environ: dict[str, str],
    words: tuple[str, ...],
    place: Place | None = None,
    told: Connection | None = None,
) -> NoReturn:
    os.environ.clear()
    os.environ.update(environ)
    tempfile.tempdir = None  # may be another one here
    if place is not None and told is not None:

        def stall(*_: object, **__: object) -> None:
            told.send("stalled")
            told.recv()

        *owner, name = place
        setattr(resolve_name(".".join(owner)), name, stall)
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        status = main(list(words), environ)
    if told is not None:
        told.send(said.getvalue())
    sys.exit(status)
