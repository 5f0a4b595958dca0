"""``missing-evidence.pdf``: the report for those who print and file it, typeset by Typst.

A tagged PDF/A-2a and PDF/UA-1. The same result gives the same bytes: fonts are those that Typst brings, and the
document's moment is that of the audit.
"""

import json
import re
from datetime import datetime
from importlib.resources import as_file, files
from itertools import repeat
from pathlib import Path
from typing import Any, Final
from unicodedata import normalize

from toolkit.extras import require
from toolkit.language import Language
from toolkit.reports import wording
from toolkit.reports.json_document import fingerprint
from toolkit.reports.lists import PROBLEMS, TO_ACT_ON, Section, cell_text, section, sections_beside
from toolkit.reports.notices import acting_lines, headline, notices, provenance
from toolkit.reports.page import charts, shares
from toolkit.reports.report import Report
from toolkit.reports.wording import COLOURS

SALES_SHOWN: Final = 5000  # sales in the document; the other formats hold all of them
ROWS_SHOWN: Final = 1000  # rows of each other list

_UNPRINTABLE: Final = re.compile(
    "[^\u0020-\u007e\u00a0-\u00ac\u00ae-\u024f\u0391-\u03a1\u03a3-\u03c9\u0400-\u045f\u200b\u2010-\u2015\u2018-\u201e\u2020-\u2022\u2026\u20ac\u2192]"
)
"""Characters that the fonts of the document may lack, which no PDF/A may hold."""
_LONGEST: Final = 18  # characters of an id on one line
_STAND_IN: Final = "\u25a1"


def write(report: Report, path: Path) -> None:
    """Write the document."""
    require("pdf", "PDF reports")
    typeset("report.typ", _content(report), report.language, path, report.result.facts.as_of)


def typeset(template: str, content: dict[str, Any], language: Language, path: Path, moment: datetime) -> None:
    """Write the document that a template makes of ``content`` in a language, dated at ``moment``.

    Every character that the fonts may lack is replaced by a box.
    """
    import typst  # of an extra

    lang, _, region = language.code.partition("-")
    content |= {"lang": lang, "region": region or "us", "page": language.text("page {n} of {all}")}
    with as_file(files("toolkit.reports").joinpath("templates", template)) as source:
        typst.compile(
            str(source),
            output=str(path),
            format="pdf",
            ignore_system_fonts=True,
            sys_inputs={"report": json.dumps(_printable(content), ensure_ascii=False)},
            pdf_standards=["a-2a", "ua-1"],
            timestamp=int(moment.timestamp()),
        )


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return _UNPRINTABLE.sub(_STAND_IN, normalize("NFC", " ".join(wording.escape_bidi(value).split())))
    if isinstance(value, dict):
        return {name: _printable(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_printable(each) for each in value]
    return value


def _content(report: Report) -> dict[str, Any]:
    result, language = report.result, report.language
    say, number = language.text, language.number
    listed = sections_beside(report).values()
    return {
        "title": report.title,
        "headline": f"{headline(report)}.",
        "as_of": report.as_of,
        "seal": result.facts.source.seal or say("none yet"),
        "fingerprint": fingerprint(report),
        "colours": {str(code): colour for code, (colour, _) in COLOURS.items()},
        "notices": notices(report),
        "shares": shares(report) if result.sales else [],
        "cards": [{"figure": number(figure), "name": name} for name, figure in _figures(report).items()],
        "charts": charts(report) if result.sales else [],
        "acting": list(acting_lines(report).items()),
        "signed": [say("Prepared by"), say("Checked by"), say("Date")],
        "sections": [
            _section(section(PROBLEMS, report), ROWS_SHOWN),
            _section(section(TO_ACT_ON, report), SALES_SHOWN),
            *(_section(each, ROWS_SHOWN) for each in listed if each.total),
        ],
        "provenance": list(provenance(report).items()),
        "words": {
            "seal": say("Custody seal"),
            "fingerprint": say("Fingerprint (SHA-256 of missing-evidence.json)")
            if "json" in report.formats
            else say("Fingerprint (SHA-256 of this report as JSON)"),
            "provenance": say("Where the numbers come from"),
        },
    }


def _figures(report: Report) -> dict[str, int]:
    result, language, say = report.result, report.language, report.language.text
    if not result.open:
        return {}
    return {
        language.count(
            "completed without evidence", "completed without evidence", result.completed_without_evidence
        ): result.completed_without_evidence,
        say("days since the oldest open sale was created"): result.oldest,
        say("pieces missing"): result.pieces,
        say("files not examined"): result.unexamined,
    }


def _section(section: Section, most: int) -> dict[str, Any]:
    report, language = section.report, section.report.language
    about = section.about
    if section.total > most:
        about += " " + language.text("The first {:,} of {:,}.", most, section.total)
    rows = section.rows(most)
    return {
        "title": section.title,
        "about": about,
        "columns": section.headings,
        "widths": list(section.columns.values()),
        "numbers": [
            all(isinstance(cell, int | float | None) for cell in cells) for cells in zip(*rows, strict=True)
        ],
        "rows": [
            [breaking(cell_text(*each)) for each in zip(row, repeat(report), section.columns)] for row in rows
        ],
    }


def breaking(text: str) -> str:
    """Return the text with places in its long words where a line may end."""
    pieces = f"[^-_/@.]{{1,{_LONGEST}}}[-_/@.]*|[-_/@.]+"
    return " ".join(
        word if len(word) <= _LONGEST else "\u200b".join(re.findall(pieces, word)) for word in text.split()
    )
