"""The log on stderr: one JSON object a line, without values that could be personal data or secrets."""

import json
import logging
import queue
import sys
import threading
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TextIO

from toolkit.errors import ToolkitError

_PACKAGE: Final = Path(__file__).parents[2]

_LINES_WAITING: Final = 10_000
"""Lines kept for a reader that is slow; further ones are lost, and their number is told."""

_FLUSH_SECONDS: Final = 2


class _Lines:
    """Lines that a thread of their own writes, so that no request waits for a slow reader."""

    def __init__(self) -> None:
        self.waiting: queue.Queue[str] = queue.Queue(_LINES_WAITING)
        self._lost = 0

    def add(self, line: str) -> None:
        try:
            self.waiting.put_nowait(line)
        except queue.Full:
            self._lost += 1

    def write_to(self, stream: TextIO) -> None:
        while True:
            line = self.waiting.get()
            if self._lost and self.waiting.empty():
                lost, self._lost = self._lost, 0
                line += _line("lost", lines=lost)
            with suppress(
                OSError, ValueError
            ):  # nobody reads the log any more; requests are answered all the same
                stream.write(line)
                stream.flush()
            self.waiting.task_done()


_lines = _Lines()


def start() -> None:
    """Start the log; messages of libraries become lines of the same form."""
    threading.Thread(target=_lines.write_to, args=(sys.stderr,), name="log", daemon=True).start()
    logging.basicConfig(handlers=[_OfLibraries()], level=logging.WARNING, force=True)


def write(event: str, **fields: Any) -> None:
    """Log one event; ``fields`` are ids, times, counts and names of things."""
    _lines.add(_line(event, **fields))


def flush() -> None:
    """Wait until all lines so far are written, but not for long: the reader may have stopped."""
    waiting = _lines.waiting
    with waiting.all_tasks_done:
        waiting.all_tasks_done.wait_for(lambda: not waiting.unfinished_tasks, _FLUSH_SECONDS)


def fault(error: BaseException) -> dict[str, str]:
    """Return the kind and place of an error, without its text, which may repeat a caller's data.

    The text of the toolkit's own errors is made for people and holds nothing of the kind.
    """
    described = {"error": type(error).__name__, "place": _place(error)}
    if isinstance(error, ToolkitError):
        described["message"] = str(error)
    return described


class _OfLibraries(logging.Handler):
    """Logs the place of a library's message without its text, which may hold anything."""

    def emit(self, record: logging.LogRecord) -> None:
        raised = record.exc_info[1] if record.exc_info else None
        place = f"{Path(record.pathname).name}:{record.lineno}"
        write("library", logger=record.name, loggedAt=place, **(fault(raised) if raised is not None else {}))


def _line(event: str, **fields: Any) -> str:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    told = {"time": now, "event": event, **fields}
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")) + "\n"


def _place(error: BaseException) -> str:
    """Return the innermost line of ours that was running, else the innermost of all."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "unknown"
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(_PACKAGE)]
    frame = (ours or frames)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}"
