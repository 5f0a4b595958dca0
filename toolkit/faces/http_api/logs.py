"""The log on stderr: one JSON object a line, without values that could be personal data or secrets."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from toolkit.errors import ToolkitError

_PACKAGE: Final = Path(__file__).parents[2]


def write(event: str, **fields: Any) -> None:
    """Log one event; ``fields`` are ids, times, counts and names of things."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = json.dumps({"time": now, "event": event, **fields}, ensure_ascii=False, separators=(",", ":"))
    sys.stderr.write(f"{line}\n")


def fault(error: BaseException) -> dict[str, str]:
    """What went wrong and where, without the error's text, which may repeat what a caller sent.

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


def _place(error: BaseException) -> str:
    """The innermost line of ours that was running, else the innermost of all."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "unknown"
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(_PACKAGE)]
    frame = (ours or frames)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}"
