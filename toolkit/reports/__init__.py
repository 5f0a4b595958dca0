"""Reports for people: an audit's result as HTML, XLSX, CSV, JSON and PDF.

::

    report         what is shown, and how
    lists          the lists and what each is about; columns their columns; sections the cells, for all formats
    wording        the words for codes; notices the headline, the notices and the provenance
    web_page       HTML, one self-contained page: page_words has its words, charts draws its bars,
                   web_data packs its sales, web_cases what stands behind each row
    workbook       XLSX, sheet by sheet, from the columns of sheet_cells
    table_csv      CSV
    document_json  JSON; document_life the life of findings in it, and rows as JSON
    document_oscal OSCAL assessment results
    document_pdf   PDF, typeset by Typst
    folder         writing all of it at once, and verifying it later: earlier keeps and lists the reports before
"""

import re
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final
from unicodedata import normalize
from zoneinfo import ZoneInfo

from toolkit.errors import InvalidInput
from toolkit.extras import require
from toolkit.language import ENGLISH, Language
from toolkit.operations.judge.audit import AuditResult
from toolkit.operations.progress import Progress, Quiet
from toolkit.reports import document_json, document_oscal, table_csv, web_page, workbook
from toolkit.reports.folder import FileState, VerifiedFile, Witness, Writer, verify_files, write_files
from toolkit.reports.report import Report
from toolkit.settings import DEFAULT_TIMEZONE

__all__ = ["DEFAULT_FORMATS", "FORMATS", "FileState", "VerifiedFile", "chosen", "verify_files", "write_report"]


def _write_pdf(report: Report, path: Path) -> None:
    require("pdf", "PDF reports")
    from toolkit.reports import document_pdf  # its package is an extra

    document_pdf.write(report, path)


FORMATS: Final[dict[str, Writer]] = {
    "html": web_page.write,
    "xlsx": workbook.write,
    "csv": table_csv.write,
    "json": document_json.write,
    "pdf": _write_pdf,
    "oscal.json": document_oscal.write,
}
"""Each format that a report can have, and the function that writes it."""

DEFAULT_FORMATS: Final = ("html", "xlsx", "csv", "json")
"""The formats that are written where none are named; the page prints well, so a PDF is on request."""

_TIMEZONE: Final = ZoneInfo(DEFAULT_TIMEZONE)


def write_report(
    result: AuditResult,
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
        witness: takes note of the files' hashes, and gives the custody seal that covers them.

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
    result: AuditResult,
    out: Path,
    write: Callable[[AuditResult, Path], list[Path]] = write_report,
    progress: Progress | None = None,
) -> list[Path]:
    """Have one report for each partner written into a folder of its own below ``out``; raises as ``write`` does.

    A folder is called after the partner, with a few digits of its hash, so that no two are alike. It holds
    nothing of any other partner.
    """
    written: list[Path] = []
    told = progress or Quiet()
    names = sorted(result.counts["partner"].dropna().unique())
    told.begin("Writing a report for each partner", len(names), "partners")
    for name in names:
        letters = normalize("NFKD", name).encode("ascii", "ignore").decode()
        safe = re.sub(r"[^A-Za-z0-9.-]+", "_", letters).strip("._")[:60] or "partner"
        written += write(result.for_partner(name), out / f"{safe}-{sha256(name.encode()).hexdigest()[:6]}")
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
        raise InvalidInput(f"Unknown report format ({unknown}); there are {', '.join(FORMATS)}")
    return tuple(name for name in FORMATS if name in names)
