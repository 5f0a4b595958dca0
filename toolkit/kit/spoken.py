"""Messages to people in their language: that of ``TOOLKIT_LANGUAGE``, else of the locale.

English stands in the code and is the key of the catalogue in ``toolkit/language``. Words and sentences are
translated by ``_``; one with values, such as that of an error, is a ``Message``. Codes, columns, JSON and logs
belong to no language.
"""

import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from datetime import datetime, time, timedelta
from typing import Any, Final, TextIO
from zoneinfo import ZoneInfo

from toolkit.errors import InvalidInput, SettingsError, ToolkitError
from toolkit.language import ENGLISH, Language, default_language
from toolkit.message import Message, sentence_of
from toolkit.progress import Progress
from toolkit.settings import DEFAULT_TIMEZONE, Environment

_environ: ContextVar[Mapping[str, str]] = ContextVar("environ", default=os.environ)


def set_language(environ: Mapping[str, str]) -> None:
    """Speak the language of this environment from now on, and tell moments in its zone."""
    _environ.set(environ)


def current_language() -> Language:
    """Return the language of messages; English where the environment names one that the toolkit has not."""
    try:
        return default_language(_environ.get())
    except InvalidInput:
        return ENGLISH


def current_zone() -> ZoneInfo:
    """Return the zone of ``TOOLKIT_TIMEZONE``; the default one where the environment names none that there is."""
    with suppress(SettingsError):  # which is perhaps the error that is told
        if zone := Environment(_environ.get()).read("TOOLKIT_TIMEZONE", ZoneInfo, DEFAULT_TIMEZONE):
            return zone
    return ZoneInfo(DEFAULT_TIMEZONE)


def _(text: str) -> str:
    """Return a word, or a sentence with its values, in the language of messages; else the English."""
    return current_language().tell(text)


def counted(number: int, noun: str) -> str:
    """Return ``1 sale``, ``2 sales`` or ``1,200 sales``."""
    return current_language().counted(number, noun)


def format_error(error: Exception) -> str:
    """Return the sentences of an error, the moments in it as people read them, in ``TOOLKIT_TIMEZONE``."""
    return current_language().dated(_(sentence_of(error)), current_zone())


ToolkitError.worded = staticmethod(format_error)


def readable(moment: datetime) -> str:
    """``20 Nov 2026, 18:00 (UTC-03:00)``."""
    return current_language().moment(moment, current_zone())


EXAMPLES: Final = Message("{} or {}", "2026-11-20, 2026-11-20 18:00", "2026-11-20T18:00-03:00")

_WRITTEN: Final = re.compile(r"\d{4}-\d{2}-\d{2}(?P<time>[ T]\d{2}:\d{2}.*)?", re.ASCII)


def parse_timestamp(text: str, *, timezone: ZoneInfo, now: datetime) -> datetime:
    """Return a past moment; without an offset it is in ``timezone``.

    A bare date is the end of that day, so that all that was seen on it counts; today is now.

    Raises:
        InvalidInput: it is not a time, or lies in the future or before 1970.
    """
    text = text.strip()
    try:
        if (found := _WRITTEN.fullmatch(text)) is None:
            raise ValueError(text)
        moment = datetime.fromisoformat(text)
        if not found["time"]:
            if moment.date() == now.astimezone(timezone).date():
                return now
            moment = datetime.combine(moment + timedelta(days=1), time(), timezone) - timedelta(microseconds=1)
        # PostgreSQL takes no offset of 16 hours or more.
        moment = moment.replace(tzinfo=moment.tzinfo or timezone).astimezone(timezone)
    except (ValueError, OverflowError):
        raise InvalidInput("{!r} is not a time; write it like {}", text[:40], EXAMPLES) from None
    if moment > now or moment.year < 1970:
        raise InvalidInput("{!r} lies in the future or before 1970; only what was seen can be asked for", text)
    return moment


def notebook_shell() -> Any:
    """Return the shell of the notebook that this runs in, ``None`` elsewhere."""
    return sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None


def _in_a_notebook() -> bool:
    """Tell whether a person looks at a cell: JupyterLab lets it ask, papermill keeps whatever it writes."""
    parent: dict[str, Any] = getattr(notebook_shell(), "get_parent", dict)()
    return bool(parent.get("content", {}).get("allow_stdin"))


class ProgressBar(Progress):
    """Shows a bar for each task on ``stream`` where that is a terminal or the cell of a notebook."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._bar: Any = None

    def begin(self, task: str, total: int | None, unit: str) -> None:
        """Show a new bar."""
        from tqdm import tqdm  # most commands show no bar

        self.end()
        looked_at = _in_a_notebook()
        self._bar = tqdm(
            desc=_(task),
            total=total,
            unit=f" {_(unit)}",
            file=sys.stdout if looked_at else self._stream,  # JupyterLab leaves a red box for what was on stderr
            disable=False if looked_at else None,
            leave=False,
            unit_scale=True,
        )

    def advance(self, count: int) -> None:
        """Move the bar."""
        if self._bar is not None:
            self._bar.update(count)

    def end(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
