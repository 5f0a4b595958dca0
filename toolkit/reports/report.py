"""A report: an audit, the options for showing it, and its times, for programs and for people."""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from itertools import starmap
from typing import Any, Final
from unicodedata import normalize
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.contract.findings import REPORT
from toolkit.language import ENGLISH, Language
from toolkit.message import recognised
from toolkit.reports.audited import Audited
from toolkit.settings import DEFAULT_TIMEZONE

MOMENTS: Final = ("createdAt", "completedAt", "oldestRequest")  # the columns of the rows that hold times

DEFAULT_FORMATS: Final = ("html", "xlsx", "csv", "json")
"""The formats that are written where none are named; the page prints well, so a PDF is on request."""

ROWS_AT_ONCE: Final = 5_000  # rows made into text at once; more take more memory, and save little time

_TIMEZONE: Final = ZoneInfo(DEFAULT_TIMEZONE)


@dataclass(frozen=True, eq=False)
class Report:
    """An audit's result with the options for showing it; one module for each format writes it into a file."""

    result: Audited
    timezone: ZoneInfo = _TIMEZONE
    """The zone that times are shown in."""
    formats: Sequence[str] = DEFAULT_FORMATS
    """All formats that are written, so that one can link to another."""
    language: Language = ENGLISH
    """The language of the formats for people; those for programs have none."""
    excel: bool = False
    """True if the CSV is written as a Brazilian Excel opens it, instead of as programs read it."""
    beside: Sequence[str] | None = None
    """The names of the lists beside the sales that it has, where it does not have all of them."""
    sections: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    """Its lists by their titles, as ``toolkit.reports.lists.section`` makes them for the first format."""

    @property
    def title(self) -> str:
        """The title of the report, with the partner whose report it is."""
        title = self.language.text(TITLE)
        return title if self.result.partner is None else f"{title}: {self.result.partner}"

    def file_name(self, format_: str) -> str:
        """Return the name of a file; those for people tell the partner whose report it is."""
        own = self.result.partner is not None and format_ in _FOR_PEOPLE
        return f"{REPORT}-{_plain_name(self.result.partner or '')}.{format_}" if own else f"{REPORT}.{format_}"

    @property
    def as_of(self) -> str:
        """The moment that it is of, as people read it."""
        return self.language.text("as of {}", self.language.moment(self.result.facts.as_of, self.timezone))

    def moment(self, moment: datetime) -> str:
        """Return a moment as people read it; its offset only where it is not that of the audit, told on top."""
        return self.language.moment(moment, self.timezone, self.result.facts.as_of)

    def day(self, moment: datetime) -> str:
        """Return the day of a moment as people read it."""
        return self.language.day(moment.astimezone(self.timezone).date())


@dataclass(frozen=True, slots=True)
class List:
    """A list: ``columns`` has its headings, with the share of the width that each takes."""

    title: str
    columns: Mapping[str, float]
    rows: Callable[[Report], pd.DataFrame]
    """Returns its rows, in the columns that ``COLUMNS`` names."""
    about: str | Callable[[Report], str] = ""


TITLE: Final = "Missing evidence"

_FOR_PEOPLE: Final = ("html", "xlsx", "pdf")


def partner_folder(name: str) -> str:
    """Return what the folder of a partner's report is called: a few digits of a hash tell names apart."""
    return f"{_plain_name(name)}-{sha256(name.encode()).hexdigest()[:6]}"


def _plain_name(name: str) -> str:
    """Return the name of a partner in letters that every system can write."""
    letters = normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9.-]+", "_", letters).strip("._-")[:60] or "partner"


def tuples(table: pd.DataFrame) -> Iterator[Any]:
    """Return the rows of a table, their values as attributes, ``None`` for everything that is not known."""
    columns = (zip(column, column.isna(), strict=True) for _, column in table.items())
    cells = ([None if unknown else cell for cell, unknown in column] for column in columns)
    return starmap(namedtuple("Row", table.columns), zip(*cells, strict=True))


def iso(moment: datetime, timezone: ZoneInfo) -> str:
    """``2026-11-20T18:00:00-03:00``, with the fraction of the second where there is one: exactly this moment."""
    return moment.astimezone(timezone).isoformat()


def iso_column(moments: pd.Series[Any] | pa.Array, timezone: ZoneInfo) -> list[str | None]:
    """Return a whole column so, to the second, null where there is none."""
    if isinstance(moments, pd.Series):
        moments = pa.Array.from_pandas(moments, type=pa.timestamp("us", "UTC"))
    seconds = moments.cast(pa.timestamp("s", "UTC"), safe=False)
    local = pc.local_timestamp(seconds.cast(pa.timestamp("s", timezone.key)))
    # Few distinct offsets: to format each moment with its own takes four times as long.
    offsets = pc.subtract(local.cast(pa.int64()), seconds.cast(pa.int64())).dictionary_encode()
    signed = ((each, abs(each) // 60) for each in offsets.dictionary.to_pylist())
    zones = [f"{'-' if each < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}" for each, minutes in signed]
    texts = pc.replace_substring(local.cast(pa.string()), " ", "T")
    ends = pa.array(zones, pa.string()).take(offsets.indices)
    found: list[str | None] = pc.binary_join_element_wise(texts, ends, "").to_pylist()
    return found


DETAILS: Final = (
    "SHA-256 of the content {}",
    "{} and {}, SHA-256 {}",
    "requested for {}",
    "declared {}, is {}",
    "declared {}, stored as {}",
    "{:,} objects, of which the first {:,} are named",
    "{:,} objects",
    "replaced at {}",
    "written at {}, credentials ran out at {}",
)
"""The facts of a finding about a file that an audit tells."""


def worded_detail(detail: str, language: Language, timezone: ZoneInfo) -> str:
    """Return the detail of a finding about a file as people say it; programs get it as it was found."""
    return language.dated(language.tell(recognised(detail, DETAILS)), timezone)
