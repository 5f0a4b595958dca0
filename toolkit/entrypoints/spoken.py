"""Messages to people in their language: that of ``TOOLKIT_LANGUAGE``, else of the locale.

English stands in the code and is the key of the catalogue in ``toolkit/language``. A word is translated by ``_``;
a sentence that was composed with values, such as that of an error, by ``sentence``, which recognises it by its
fixed parts. Codes, columns, JSON and logs belong to no language.
"""

import os
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import datetime
from zoneinfo import ZoneInfo

from toolkit.errors import InvalidInput
from toolkit.language import ENGLISH, Language, default_language

_environ: ContextVar[Mapping[str, str]] = ContextVar("environ", default=os.environ)


def speak_as(environ: Mapping[str, str]) -> None:
    """Speak the language of this environment from now on."""
    _environ.set(environ)


def spoken() -> Language:
    """Return the language of messages; English where the environment names one that the toolkit has not."""
    try:
        return default_language(_environ.get())
    except InvalidInput:
        return ENGLISH


def _(message: str) -> str:
    """Return a word or sentence without values."""
    return spoken().text(message)


def counted(number: int, noun: str) -> str:
    """Return ``1 sale``, ``2 sales`` or ``1,200 sales``."""
    language = spoken()
    return f"{language.number(number)} {language.translations.ngettext(noun, f'{noun}s', number)}"


def sentence(text: str) -> str:
    """Return the sentences of a text, line by line; one that nobody translated stays as it is."""
    language = spoken()
    return text if language is ENGLISH else "\n".join(map(language.sentence, text.split("\n")))


def complaint(error: Exception) -> str:
    """Return the sentences of an error, the moments in it as people read them."""
    return spoken().dated(sentence(str(error)))


def readable(moment: datetime, timezone: ZoneInfo) -> str:
    """``20 Nov 2026, 18:00 (UTC-03:00)`` or ``20 de nov. de 2026, 18:00 (UTC-03:00)``."""
    return spoken().moment(moment, timezone)
