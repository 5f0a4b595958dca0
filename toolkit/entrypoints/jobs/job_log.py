"""Write lines about a run to stderr, as text or as one JSON object a line."""

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TextIO

from toolkit.operations import Clock


class LogForm(StrEnum):
    """The forms of a line."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True)
class JobLog:
    """Writes lines with the time, the job, its slot (in the zone of the office) and the step."""

    clock: Clock
    form: LogForm = LogForm.TEXT
    job: str = ""
    slot: datetime | None = None
    step: str = ""
    stream: TextIO = field(default_factory=lambda: sys.stderr)

    def say(self, message: str, *, level: str = "info") -> None:
        """Write one line."""
        slot = self.slot.isoformat(timespec="minutes") if self.slot is not None else ""
        text = " ".join(message.split())
        if self.form is LogForm.JSON:
            fields = {"job": self.job, "slot": slot, "step": self.step}
            told = {"time": self.clock().isoformat(timespec="milliseconds"), "level": level}
            line = json.dumps(
                {**told, **{name: value for name, value in fields.items() if value}, "message": text}
            )
        else:
            place = " ".join(part for part in (self.job, slot, self.step) if part)
            mark = "" if level == "info" else f"{level}: "
            line = f"{self.clock():%Y-%m-%dT%H:%M:%SZ} {place}: {mark}{text}"
        print(line, file=self.stream, flush=True)

    def warn(self, message: str) -> None:
        """Write a warning."""
        self.say(message, level="warning")


class LogStream(io.TextIOBase):
    """A stream that hands on each whole line that is written to it."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._begun = ""

    def write(self, text: str) -> int:
        """Add a piece of text to the line."""
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            if line.strip():
                self._say(line)
        return len(text)
