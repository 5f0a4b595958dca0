"""The messages of reports that translators translate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from babel.messages.extract import extract_from_dir

import toolkit.reports
from toolkit.domain.codes import CODES
from toolkit.reports import sections, wording

FOLDER = Path(toolkit.reports.__file__).parent

_KEYWORDS = {"say": None, "text": None, "_": None, "count": (1, 2), "ngettext": (1, 2)}
_METHODS = [("**.py", "python"), ("templates/**.j2", "jinja2")]


def messages() -> set[str | tuple[str, ...]]:
    """Every message: those that stand in calls, the names and sentences of tables, and what codes are called."""
    called = {message for _, _, message, _, _ in extract_from_dir(str(FOLDER), _METHODS, keywords=_KEYWORDS)}
    return (called | set(_of_tables()) | set(_of_codes()) | set(_of_loops())) - {""}


def _of_tables() -> Iterator[str]:
    for name, table in vars(wording).items():
        if isinstance(table, dict) and table is not CODES and not name.startswith("__"):
            yield from (text for text in table.values() if isinstance(text, str))
    yield from wording.GLOSSARY
    yield wording.TITLE


def _of_codes() -> Iterator[str]:
    for code in CODES.values():
        yield from (code.name, code.meaning, code.remedy)


def _of_loops() -> Iterator[str]:
    """What is translated in loops over names."""
    yield from sections.PARTNER
    yield from sections.WAIVER
    yield from ("new", "back again", "resolved", "unknown", "database", "bucket")
