"""The process that runs a command: its account, the mode of its files, and the signals that stop it."""

import os
import pwd
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

from toolkit.settings import file_mode_of


def signed_in_account() -> str:
    """Return the name of the account that this process runs under, whatever the environment says about it."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


@contextmanager
def files_for_owner_and_group(environ: Mapping[str, str]) -> Iterator[None]:
    """Create files with the mode that ``environ`` asks for, and folders that the same people may enter.

    Kernels and other processes that are started meanwhile do so as well. Files with credentials, whole CPFs or
    rejected rows are their owner's only, whatever the mode.

    Raises:
        SettingsError: the mode is none.
    """
    mode = file_mode_of(environ)
    may_enter = (mode & 0o444) >> 2
    before = os.umask(0o777 & ~(mode | may_enter))
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def stop_signals_handled(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Hand SIGTERM and Ctrl-C to ``handler`` in the block; only in the main thread, where Python handles them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.signal(number, handler) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)
