"""``missing-evidence.pdf``: the report for those who print and file it, typeset by Typst.

A tagged PDF/A-2a and PDF/UA-1. The same result gives the same bytes: fonts are those that Typst brings, and the
document's moment is that of the audit.
"""

import json
import re
from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final

import typst

from toolkit.contract.codes import CODES
from toolkit.contract.findings import Reason, items
from toolkit.language import Language
from toolkit.reports import wording
from toolkit.reports.json_document import fingerprint
from toolkit.reports.lists import BESIDE, PROBLEMS, Section, cell_text, section
from toolkit.reports.notices import headline, notices, provenance
from toolkit.reports.page import Chart, Segment, charts, shares
from toolkit.reports.report import Report, tuples
from toolkit.reports.wording import COLOURS, STATUS_INK

SALES_SHOWN: Final = 5000
"""Sales in the document; the other formats hold all of them."""

ROWS_SHOWN: Final = 1000
"""Rows of each other list."""

_UNPRINTABLE: Final = re.compile(
    "[^\u0020-\u007e\u00a0-\u00ac\u00ae-\u024f\u0391-\u03a1\u03a3-\u03c9\u0400-\u045f\u200b\u2010-\u2015\u2018-\u201e\u2020-\u2022\u2026\u20ac\u2192]"
)
"""Characters that the fonts of the document may lack, which no PDF/A may hold."""
_LONGEST: Final = 18
"""Characters of an id on one line."""
_STAND_IN: Final = "\u25a1"


def write(report: Report, path: Path) -> None:
    """Write the document."""
    content = json.dumps(_printable(_content(report)), ensure_ascii=False)
    report.tell(0.2)  # what remains is one call
    source = files("toolkit.reports").joinpath("templates", "report.typ")
    with as_file(source) as template:
        typst.compile(
            str(template),
            output=str(path),
            format="pdf",
            ignore_system_fonts=True,
            sys_inputs={"report": content},
            pdf_standards=["a-2a", "ua-1"],
            timestamp=int(report.result.as_of.timestamp()),
        )


def _printable(value: Any) -> Any:
    """Return the same content, every character that the fonts may lack replaced by a box."""
    if isinstance(value, str):
        return _UNPRINTABLE.sub(_STAND_IN, " ".join(wording.unturned(value).split()))
    if isinstance(value, dict):
        return {name: _printable(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_printable(each) for each in value]
    return value


def _content(report: Report) -> dict[str, Any]:
    result, language = report.result, report.language
    say, number = language.text, language.number
    listed = (section(each, report) for each in (PROBLEMS, *BESIDE.values()))
    lang, _, region = language.code.partition("-")
    return {
        "lang": lang,
        "region": region or "us",
        "title": report.title,
        "headline": f"{headline(result, language)}.",
        "as_of": say("as of %(moment)s", moment=language.moment(result.as_of, report.timezone)),
        "page": say("page {n} of {all}"),
        "seal": result.source.seal or say("none yet"),
        "fingerprint": fingerprint(report),
        "colours": {str(code): colour for code, colour in COLOURS.items()},
        "notices": notices(result, language, report.timezone),
        "shares": [
            {"name": say(wording.STATUS_NAMES[each.code]), "percent": language.percent(each.length / 100)}  # type: ignore[index]
            | _segment(each, language)
            for each in (shares(result) if result.sales else ())
        ],
        "cards": [{"figure": number(figure), "name": name} for name, figure in _figures(report).items()],
        "charts": [_chart(chart, language) for chart in (charts(result, language) if result.sales else ())],
        "sections": [_section(each) for each in listed if each.total],
        "sales": list(_sales(report)),
        "sales_about": say(
            "The gravest and oldest first; %(shown)s of %(all)s.",
            shown=number(min(result.open, SALES_SHOWN)),
            all=number(result.open),
        ),
        "provenance": list(provenance(result, report.timezone, language).items()),
        "words": {
            "seal": say("Custody seal"),
            "fingerprint": say("Fingerprint (SHA-256 of missing-evidence.json)"),
            "sales": say("Sales to act on"),
            "sale": say("Sale"),
            "group": say("Group"),
            "status": say("Status"),
            "missing": say("What is missing, and why"),
            "partner": say("Partner, client"),
            "days": say("Days"),
            "provenance": say("Where the numbers come from"),
        },
    }


def _figures(report: Report) -> dict[str, int]:
    """Return the figures on top."""
    result, say = report.result, report.language.text
    if not result.open:
        return {}
    return {
        say("completed without evidence"): result.completed_without_evidence,
        say("days since the oldest open sale was created"): int(result.rows["ageDays"].max()),
        say("pieces missing"): int(result.missing[list(Reason)].to_numpy().sum()),
        say("files not examined"): result.unexamined,
    }


def _chart(chart: Chart, language: Language) -> dict[str, Any]:
    return {
        "name": chart.name,
        "title": chart.title,
        "about": chart.about,
        "heading": chart.heading,
        "columns": [{"code": code, "name": name} for code, name in chart.columns.items()],
        "bars": [
            {
                "code": bar.code if chart.name == "missing" else bar.meaning or bar.code,
                "name": bar.meaning or bar.code,
                "segments": [_segment(each, language) for each in bar.segments],
            }
            for bar in chart.bars
        ],
    }


def _segment(segment: Segment, language: Language) -> dict[str, Any]:
    return {
        "code": segment.code,
        "start": segment.start,
        "length": segment.length,
        "text": language.number(segment.count),
    }


def _section(section: Section) -> dict[str, Any]:
    report, language = section.report, section.report.language
    about = section.about
    if section.total > ROWS_SHOWN:
        about += " " + language.text(
            "The first %(shown)s of %(all)s.",
            shown=language.number(ROWS_SHOWN),
            all=language.number(section.total),
        )
    rows = section.rows(ROWS_SHOWN)
    return {
        "title": section.title,
        "about": about,
        "columns": section.headings,
        "widths": list(section.columns.values()),
        "numbers": [
            all(isinstance(cell, int | float | None) for cell in cells) for cells in zip(*rows, strict=True)
        ],
        "rows": [[_breaking(cell_text(cell, report)) for cell in row] for row in rows],
    }


def _sales(report: Report) -> Iterator[dict[str, Any]]:
    language = report.language
    say = language.text
    for row in tuples(report.result.rows.head(SALES_SHOWN)):
        pieces = zip(items(row.missing), items(row.reasons), strict=True)
        yield {
            "sale": _breakable(row.saleId),
            "group": row.utilityGroup or "",
            "status": say(wording.STATUS_NAMES[row.status]),
            "ink": STATUS_INK[row.status],
            "pieces": [
                {"name": say(wording.TYPE_NAMES[code]), "reason": reason, "why": say(CODES[reason].name)}  # type: ignore[index]
                for code, reason in pieces
            ],
            "problems": [say(CODES[problem].name) for problem in items(row.problems)],
            "partner": row.partner or say("no partner"),
            "cpf": row.cpf or say("no client"),
            "days": language.number(row.ageDays),
        }


def _breaking(text: str) -> str:
    """Return the same for each long word of a text."""
    return " ".join(_breakable(word) for word in text.split())


def _breakable(text: str) -> str:
    """Return the text with places where a line may end, so that a long id stays in its column."""
    if len(text) <= _LONGEST:
        return text
    return "\u200b".join(re.findall(f"[^_/@.]{{1,{_LONGEST}}}[_/@.]*|[_/@.]+", text))
