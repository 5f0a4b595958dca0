"""Reports for people: an audit as HTML, XLSX, CSV, JSON and PDF.

::

    reading        the numbers and lists of an audit folder; audited holds them
    report         what is shown, how, and its times
    wording        the words for codes, and those of the page; notices the headline, notices and provenance
    lists          the lists beside the sales: what each is about, its columns and its cells, for all formats
    page           HTML, one self-contained page with its charts; page_data packs what its script shows
    spreadsheets   XLSX, sheet by sheet, and CSV
    json_document  JSON
    pdf            PDF, typeset by Typst
    folder         writing all of it at once, keeping earlier reports, and verifying them later
"""

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from toolkit.errors import InvalidInput
from toolkit.extras import require
from toolkit.language import ENGLISH, Language
from toolkit.log.bundle import Witness
from toolkit.progress import Progress
from toolkit.reports import json_document, page, spreadsheets
from toolkit.reports.audited import Audited
from toolkit.reports.folder import (
    FileState,
    Writer,
    verify_reports,
    write_files,
)
from toolkit.reports.report import Report, plain_name
from toolkit.settings import DEFAULT_TIMEZONE

__all__ = [
    "DEFAULT_FORMATS",
    "FORMATS",
    "FileState",
    "chosen",
    "verify_reports",
    "write_report",
]


def _write_pdf(report: Report, path: Path) -> None:
    require("pdf", "PDF reports")
    from toolkit.reports import pdf  # its package is an extra

    pdf.write(report, path)


FORMATS: Final[dict[str, Writer]] = {
    "html": page.write,
    "xlsx": spreadsheets.write_workbook,
    "csv": spreadsheets.write_csv,
    "json": json_document.write,
    "pdf": _write_pdf,
}
"""Each format that a report can have, and the function that writes it."""

DEFAULT_FORMATS: Final = ("html", "xlsx", "csv", "json")
"""The formats that are written where none are named; the page prints well, so a PDF is on request."""

_TIMEZONE: Final = ZoneInfo(DEFAULT_TIMEZONE)


def write_report(
    result: Audited,
    out: Path,
    formats: Iterable[str] = DEFAULT_FORMATS,
    *,
    timezone: ZoneInfo = _TIMEZONE,
    language: Language = ENGLISH,
    excel: bool = False,
    progress: Progress | None = None,
    witness: Witness | None = None,
) -> list[Path]:
    """Write ``missing-evidence.*`` into the folder ``out``; an earlier report there is moved beneath it.

    Args:
        result: what the audit found.
        out: the folder; it is made where it does not exist.
        formats: any of ``FORMATS``.
        timezone: the zone that times are shown in.
        language: the language of the formats for people.
        excel: write the CSV as a Brazilian Excel opens it.
        progress: told of each format.
        witness: notes the files' hashes in the custody log, and gives what proves it.

    Returns:
        The paths of the report's files, in the order of ``FORMATS``.

    Raises:
        InvalidInput: an unknown format, or none.
        ReportError: the files cannot be written; the earlier report is still there.
    """
    wanted = chosen(formats)
    writers = {name: FORMATS[name] for name in wanted}
    return write_files(Report(result, timezone, wanted, language, excel), out, writers, progress, witness)


def partner_reports(
    names: Sequence[str],
    of_partner: Callable[[str], Audited],
    out: Path,
    write: Callable[[Audited, Path], list[Path]] = write_report,
    progress: Progress | None = None,
) -> list[Path]:
    """Have a report of each of these partners written into a folder of its own below ``out``; raises as ``write``.

    A folder is called after the partner, with a few digits of its hash, so that no two are alike. It holds
    nothing of any other partner.
    """
    written: list[Path] = []
    told = progress or Progress()
    told.begin("Writing a report for each partner", len(names), "partners")
    for name in names:
        digits = sha256(name.encode()).hexdigest()[:6]
        written += write(of_partner(name), out / f"{plain_name(name)}-{digits}")
        told.advance(1)
    told.end()
    return written


def chosen(formats: Iterable[str]) -> tuple[str, ...]:
    """Return the formats that these names stand for, in the order of ``FORMATS``.

    Raises:
        InvalidInput: an unknown name, or none at all.
    """
    names = {each.strip().lower() for each in formats} - {""}
    if not names or names - FORMATS.keys():
        unknown = ", ".join(sorted(names - FORMATS.keys())) or "none given"
        raise InvalidInput("Unknown report format ({}); there are {}", unknown, ", ".join(FORMATS))
    return tuple(name for name in FORMATS if name in names)
