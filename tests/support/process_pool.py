"""Commands as processes of their own, from one process that has loaded what they need."""

import io
import multiprocessing
import os
import sys
import tempfile
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pkgutil import resolve_name

from tests.support.waiting import PATIENCE
from toolkit.cli import main

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(
    [
        "tests.support.process_pool",
        "toolkit.notebooks.running",
        "toolkit.audit.run",
        "toolkit.kit.audits",
        "toolkit.intake.clients",
    ]
)


def start_command(environ, *words):
    """The command, running; nobody reads what it prints."""
    process = FORKED.Process(target=_run, args=(dict(environ), words))
    process.start()
    return process


@contextmanager
def stalled(environ, place, *words):
    """The command while it stands still in a function, ``place``: a module, something in it, and its name.

    It is killed at the end of the block.
    """
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


def _run(environ, words, place=None, told=None):
    os.environ.clear()
    os.environ.update(environ)
    tempfile.tempdir = None  # may be another one here
    if place is not None and told is not None:

        def stall(*_, **__):
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
