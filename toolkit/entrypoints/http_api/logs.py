"""The log on stderr: one JSON object a line, without values that could be personal data or secrets."""

import json
import logging
import queue
import sys
import traceback
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener
from pathlib import Path
from typing import Any, Final, TextIO

from toolkit.errors import ToolkitError

_PACKAGE: Final = Path(__file__).parents[2]

_LINES_WAITING: Final = 10_000
"""Lines kept for a reader that is slow; further ones are lost, and their number is told."""

_FLUSH_SECONDS: Final = 2


class _Waiting(QueueHandler):
    """The queue of lines for the thread that writes them, so that no request waits for a slow reader."""

    def __init__(self) -> None:
        self.lines: queue.Queue[logging.LogRecord] = queue.Queue(_LINES_WAITING)
        self.lost = 0
        super().__init__(self.lines)

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.lines.put_nowait(record)
        except queue.Full:
            self.lost += 1


class _Written(logging.StreamHandler[TextIO]):
    """Writes to stderr, and logs how many lines were lost while the queue was full."""

    terminator = ""

    def emit(self, record: logging.LogRecord) -> None:
        if _waiting.lost and _waiting.lines.empty():
            lost, _waiting.lost = _waiting.lost, 0
            record.msg += _line("lost", lines=lost)
        super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # logging's name
        """Ignore the error: nobody reads the log any more, and requests are answered all the same."""


_waiting = _Waiting()


def start() -> None:
    """Start the log; messages of libraries become lines of the same form."""
    QueueListener(_waiting.lines, _Written(sys.stderr)).start()
    logging.basicConfig(handlers=[_Lines()], level=logging.WARNING, force=True)


def write(event: str, **fields: Any) -> None:
    """Log one event; ``fields`` are ids, times, counts and names of things."""
    _waiting.enqueue(logging.makeLogRecord({"msg": _line(event, **fields)}))


def flush() -> None:
    """Wait until all lines so far are written, but not for long: the reader may have stopped."""
    lines = _waiting.lines
    with lines.all_tasks_done:
        lines.all_tasks_done.wait_for(lambda: not lines.unfinished_tasks, _FLUSH_SECONDS)


def fault(error: BaseException) -> dict[str, str]:
    """Return the kind and place of an error, without its text, which may repeat a caller's data.

    The text of the toolkit's own errors is made for people and holds nothing of the kind.
    """
    described = {"error": type(error).__name__, "place": _place(error)}
    if isinstance(error, ToolkitError):
        described["message"] = str(error)
    return described


class _Lines(logging.Handler):
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
