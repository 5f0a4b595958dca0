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


def start_command(environ, *words, place=None):
    """The command, running. It stands still in the function at a ``place``: a module, something in it, its name.

    By the pipe ``told`` it tells that it stands still, and at its end the exit status and what it said.
    """
    here, there = FORKED.Pipe()
    process = FORKED.Process(target=_run, args=(dict(environ), words, place, there))
    process.start()
    there.close()
    process.told = here
    return process


@contextmanager
def stalled(environ, place, *words):
    """The command while it stands still at a place: it is told to go on, or killed at the end of the block."""
    process = start_command(environ, *words, place=place)
    try:
        assert process.told.poll(PATIENCE)
        assert process.told.recv() == "stalled"
        yield process
    finally:
        process.kill()
        process.join()


def _run(environ, words, place, told):
    os.environ.clear()
    os.environ.update(environ)
    tempfile.tempdir = None  # may be another one here
    if place is not None:
        *owner, name = place
        owner = resolve_name(".".join(owner))
        function = getattr(owner, name)

        def stall(*args, **given):
            setattr(owner, name, function)
            told.send("stalled")
            told.recv()
            return function(*args, **given)

        setattr(owner, name, stall)
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        status = main(list(words), environ)
    told.send((status, said.getvalue()))
    sys.exit(status)
