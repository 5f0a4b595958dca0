"""The process that works: its account, the mode of its files, and the signals that stop it."""

import os
import pwd
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from types import FrameType
from typing import ParamSpec, TypeVar
from uuid import UUID

from toolkit.errors import InvalidInput

P = ParamSpec("P")
R = TypeVar("R")


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
    from toolkit.settings import file_mode_of  # `toolkit --help` does without pydantic

    mode = file_mode_of(environ)
    may_enter = (mode & 0o444) >> 2
    before = os.umask(0o777 & ~(mode | may_enter))
    try:
        yield
    finally:
        os.umask(before)


def id_from(given: UUID | str) -> UUID:
    """Return the id that is given, also as a text.

    Raises:
        InvalidInput: it is none.
    """
    try:
        return UUID(str(given))
    except ValueError:
        raise InvalidInput("{!r} is not an id; write it like {}", str(given)[:40], UUID(int=0)) from None


def operation(call: Callable[P, R]) -> Callable[P, R]:
    """Run a method of the kit with the mode of files that its environment asks for, and with true truth values.

    The text "false", which papermill and spreadsheets give, counts as true in Python: a truth value that is none
    is refused with ``InvalidInput``, and so is a file that the system refuses.
    """
    flags = {name for name, each in signature(call).parameters.items() if isinstance(each.default, bool)}

    @wraps(call)
    def wrapped(*args: P.args, **given: P.kwargs) -> R:
        for name in flags & given.keys():
            if not isinstance(given[name], bool):
                raise InvalidInput("{} must be True or False, and not {!r}.", name, given[name])
        try:
            with files_for_owner_and_group(args[0].environ):  # type: ignore[attr-defined]
                return call(*args, **given)
        except OSError as error:
            template = "{}: {}" if error.filename else "{}"
            raise InvalidInput(template, error.strerror or error, error.filename2 or error.filename) from error

    return wrapped


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
