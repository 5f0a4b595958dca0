"""Handle the signals that stop a process, for work that has to end in an orderly way."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


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
