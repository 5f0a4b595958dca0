"""The languages of people: texts from the catalogues in ``translations``, numbers, dates and plurals by Babel.

English texts stand in the code and are the keys of the catalogues, gettext files that translators edit as they
are. A sentence with values is a ``Message``. The contract's codes belong to no language and are never translated.
"""

import errno
import os
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, tzinfo
from functools import cache, lru_cache
from gettext import GNUTranslations, NullTranslations
from importlib.resources import files
from io import BytesIO
from string import Formatter
from typing import Any, Final

from babel import Locale, dates, lists, numbers
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

from toolkit.errors import InvalidInput
from toolkit.message import Message, sentence_of

LANGUAGES: Final = ("pt-BR", "en")  # the languages that a report can have

OF_SYSTEM: Final = frozenset(
    os.strerror(getattr(errno, name))
    for name in ("ENOENT", "EACCES", "EPERM", "EEXIST", "ENOTDIR", "EISDIR", "ENOSPC", "EROFS", "EADDRINUSE")
)
"""What the operating system says about files and addresses, which is a value of many sentences."""

_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d")
_DAY_AND_TIME: Final = {"en": "d MMM y, HH:mm", "pt-BR": "dd/MM/y, HH:mm"}

# Babel takes 10 microseconds for one, and a page has the same few many times.
_decimal: Final = lru_cache(1000)(numbers.format_decimal)
_date: Final = lru_cache(1000)(dates.format_date)


class Language:
    """A language: its texts, and its forms of numbers and times."""

    def __init__(self, code: str) -> None:
        self.code = code
        self._locale = Locale.parse(code, sep="-")
        self.decimal_point = numbers.get_decimal_symbol(self._locale)
        self.translations = _translations(code)

    def text(self, message: str, *values: object) -> str:
        """Return the English ``message`` in this language, with its values as ``Message`` has them."""
        if values:
            return self.tell(Message(message, *values))
        return self.translations.gettext(message) if message else ""  # which is the key of the catalogue's head

    def count(self, one: str, many: str, number: int, *values: object) -> str:
        """Return the message that fits ``number``, which is the first of its values."""
        return self.translations.ngettext(one, many, number).format(self.number(number), *values)

    def counted(self, number: int, noun: str) -> str:
        """``1 sale``, ``2 sales`` or ``1,200 sales``."""
        return f"{self.number(number)} {self.translations.ngettext(noun, f'{noun}s', number)}"

    def tell(self, text: str) -> str:
        """Return a sentence in this language, its values in the form of the language."""
        template = text.template if isinstance(text, Message) else text
        words = template.strip()  # a line may be indented
        translated = template.replace(words, self.text(words), 1)
        values = text.values if isinstance(text, Message) else ()
        return _Values(self).vformat(translated, values, {}) if values else translated

    def number(self, value: float) -> str:
        """``120,000`` or ``120.000``."""
        return _decimal(value, locale=self._locale)

    def percent(self, share: float) -> str:
        """``76%``."""
        return numbers.format_percent(share, locale=self._locale)

    def listed(self, names: Sequence[str]) -> str:
        """``a, b, and c``."""
        return lists.format_list(names, locale=self._locale)

    def day(self, day: date) -> str:
        """``20 Nov 2026`` or ``20/11/2026``."""
        return _date(day, _DAY_AND_TIME[self.code].partition(",")[0], locale=self._locale)

    @property
    def day_in_workbooks(self) -> str:
        """The form of days in workbooks: ``d mmm yyyy`` or ``dd/mm/yyyy``."""
        return _DAY_AND_TIME[self.code].partition(",")[0].lower().replace("y", "yyyy")

    def moment(self, moment: datetime, timezone: tzinfo, beside: datetime | None = None) -> str:
        """``20 Nov 2026, 18:00 (UTC-03:00)``; without the offset where ``beside`` it a moment tells the same."""
        local = moment.astimezone(timezone)
        text = dates.format_datetime(local, _DAY_AND_TIME[self.code], locale=self._locale)
        if beside is not None and beside.astimezone(timezone).utcoffset() == local.utcoffset():
            return text
        return f"{text} (UTC{local.isoformat(timespec='seconds')[19:]})"

    def worded(self, value: object, timezone: tzinfo) -> str:
        """Return a value as people read it, and nothing for one that is not known; a moment as ``moment`` does."""
        if value is None or value != value:  # what is not a number, or no time
            return ""
        if isinstance(value, datetime):
            return self.moment(value, timezone)
        if isinstance(value, date):
            return self.day(value)
        return self.number(value) if isinstance(value, (int, float)) else str(value)

    def dated(self, text: str, timezone: tzinfo) -> str:
        """Return the text, each moment in it that is written ``2026-11-20T18:00:00-03:00`` as ``moment`` does."""
        moments = map(datetime.fromisoformat, _MOMENT.findall(text))
        return _MOMENT.sub(lambda _: self.moment(next(moments), timezone), text)


class _Texts(GNUTranslations):
    """A catalogue that finds a text with a plural also by itself, as Python does only since some 3.11."""

    def gettext(self, message: str) -> str:
        found = super().gettext(message)
        return self.ngettext(message, message, 1) if found == message else found


class _Values(Formatter):
    """Formats the values of a message: numbers, messages and errors as the language has them."""

    def __init__(self, language: Language) -> None:
        self._language = language

    def format_field(self, value: Any, spec: str) -> str:
        if spec == ",":
            return self._language.number(value)
        if isinstance(value, float):
            return format(value, spec).replace(".", self._language.decimal_point)
        value = sentence_of(value)
        if not isinstance(value, str | int) and not spec:
            value = str(value)
        is_known = isinstance(value, Message) or value in OF_SYSTEM
        return self._language.tell(value) if is_known else str(super().format_field(value, spec))


@cache
def language(code: str) -> Language:
    """Return the language of a code, in any case, with ``-`` or ``_`` or without the country.

    Raises:
        InvalidInput: the toolkit has no such language.
    """
    wanted = code.strip().replace("_", "-").lower()
    for known in LANGUAGES:
        if wanted in (known.lower(), known.partition("-")[0]):
            return Language(known)
    raise InvalidInput("Unknown language {!r}; there are {}", code[:20], ", ".join(LANGUAGES))


def default_language(environ: Mapping[str, str]) -> Language:
    """Return the language of ``TOOLKIT_LANGUAGE``, else Portuguese where the locale is Portuguese, else English.

    Raises:
        InvalidInput: ``TOOLKIT_LANGUAGE`` names a language that the toolkit has not.
    """
    if named := environ.get("TOOLKIT_LANGUAGE", "").strip():
        return language(named)
    locale = next((environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environ.get(name)), "")
    return language("pt-BR") if locale.lower().startswith("pt") else ENGLISH


def _translations(code: str) -> NullTranslations:
    if code == "en":
        return NullTranslations()
    with files("toolkit.language").joinpath("translations", f"{code}.po").open("rb") as file:
        catalogue = read_po(file, locale=code.replace("-", "_"))
    compiled = BytesIO()
    write_mo(compiled, catalogue)
    compiled.seek(0)
    return _Texts(compiled)


ENGLISH: Final = language("en")
