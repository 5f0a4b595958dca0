"""The log on stderr: one JSON object a line, without values that could be personal data or secrets."""

from __future__ import annotations

import json
import logging
import queue
import sys
import threading
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from toolkit.errors import ToolkitError

_PACKAGE: Final = Path(__file__).parents[2]

_LINES_WAITING: Final = 10_000
"""Lines kept for a reader that is slow; further ones are lost, and their number is told."""

_FLUSH_SECONDS: Final = 2


class _Writer:
    """Writes in a thread of its own, so that no request waits for whoever reads the log."""

    def __init__(self) -> None:
        self._lines: queue.SimpleQueue[str | threading.Event] = queue.SimpleQueue()
        self._lost = 0
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def put(self, line: str) -> None:
        if self._thread is None:
            self._start()
        if self._lines.qsize() < _LINES_WAITING:
            self._lines.put(line)
        else:
            self._lost += 1

    def flush(self) -> None:
        if self._thread is not None:
            written = threading.Event()
            self._lines.put(written)
            written.wait(_FLUSH_SECONDS)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._write, name="log", daemon=True)
                self._thread.start()

    def _write(self) -> None:
        while True:
            line = self._lines.get()
            if isinstance(line, threading.Event):
                line.set()
                continue
            if self._lost and self._lines.empty():
                lost, self._lost = self._lost, 0
                line += _line("lost", lines=lost)
            with suppress(OSError, ValueError):  # nobody reads any more; requests are answered all the same
                sys.stderr.write(line)


_writer = _Writer()


def write(event: str, **fields: Any) -> None:
    """Log one event; ``fields`` are ids, times, counts and names of things."""
    _writer.put(_line(event, **fields))


def flush() -> None:
    """Wait until what was logged so far is written."""
    _writer.flush()


def fault(error: BaseException) -> dict[str, str]:
    """The kind and place of an error, without its text, which may repeat a caller's data.

    The text of the toolkit's own errors is made for people and holds nothing of the kind.
    """
    described = {"error": type(error).__name__, "place": _place(error)}
    if isinstance(error, ToolkitError):
        described["message"] = str(error)
    return described


def capture_libraries() -> None:
    """Put what libraries log into the same lines."""
    logging.basicConfig(handlers=[_Lines()], level=logging.WARNING, force=True)


class _Lines(logging.Handler):
    """A library's message may hold anything; where it was written says what happened."""

    def emit(self, record: logging.LogRecord) -> None:
        raised = record.exc_info[1] if record.exc_info else None
        place = f"{Path(record.pathname).name}:{record.lineno}"
        write("library", logger=record.name, loggedAt=place, **(fault(raised) if raised is not None else {}))


def _line(event: str, **fields: Any) -> str:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    told = {"time": now, "event": event, **fields}
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")) + "\n"


def _place(error: BaseException) -> str:
    """The innermost line of ours that was running, else the innermost of all."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "unknown"
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(_PACKAGE)]
    frame = (ours or frames)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}"
