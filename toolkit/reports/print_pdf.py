"""``missing-evidence.pdf``: the answer on one page, then the first sales to act on; to be printed or filed."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any, Final

from matplotlib.backends.backend_pdf import PdfPages

from toolkit.domain.codes import CODES
from toolkit.operations.judge.audit.expression import items
from toolkit.reports import wording
from toolkit.reports.charts import Chart, charts, shares
from toolkit.reports.palette import COLOURS, INK, NOTICE, SOFT, STATUS_INK
from toolkit.reports.paper import INNER, MARGIN, SERIF, WIDE, Paper, clipped
from toolkit.reports.report import Report, known, tuples
from toolkit.reports.times import readable

SALES_SHOWN: Final = 400
"""Sales in the document: some twenty pages; the other formats hold all of them."""

_RIGHT: Final = WIDE - MARGIN
_LINE: Final = 0.165
_COUNT: Final = 0.6
"""Inches that a column of counts takes."""

_COLUMNS: Final = {
    "Sale": 0.0,
    "Group": 1.55,
    "What is missing, and why": 2.05,
    "Partner, client": 5.0,
    "Days": 6.87,
}


def write(report: Report, path: Path) -> None:
    """Write the document."""
    metadata = {
        "Title": f"{wording.TITLE}: {wording.headline(report.result)}",
        "Creator": "evidence-toolkit",
        "CreationDate": report.result.as_of.astimezone(UTC),
    }
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a box stands for it, as everywhere
        with PdfPages(path, metadata=metadata) as document:
            papers = [_answer(report), *_sales(report)]
            for number, paper in enumerate(papers, start=1):
                _foot(paper, report, f"{number} of {len(papers)}")
                document.savefig(paper.figure)


def _answer(report: Report) -> Paper:
    """The first page: the headline, what weakens it, and the pictures."""
    result, paper = report.result, Paper()
    paper.y += 0.1
    paper.text(MARGIN, f"{wording.TITLE} as of {readable(result.as_of, report.timezone)}", colour=SOFT)
    for line in textwrap.wrap(f"{wording.headline(result)}.", 31):
        paper.y += 0.38
        paper.text(MARGIN, line, size=23, bold=True, family=SERIF)
    if result.sales:
        _draw_shares(paper, report)
    for notice in wording.notices(result):
        paper.y += 0.3
        paper.box(MARGIN, INNER, 0.26, NOTICE)
        paper.text(MARGIN + 0.12, notice, y=paper.y - 0.09, size=8)
    paper.y += 0.1
    for chart in charts(result, report.language) if result.sales else []:
        _draw_chart(paper, chart)
    _draw_problems(paper, report)
    return paper


def _draw_shares(paper: Paper, report: Report) -> None:
    paper.y += 0.42
    paper.bar(MARGIN, INNER, 0.16, shares(report.result))
    paper.y += 0.24
    for place, segment in enumerate(shares(report.result)):
        x = MARGIN + 1.7 * place
        paper.dot(x, segment.code)
        paper.text(x + 0.15, f"{segment.count:,} {segment.code}  ({segment.length:.0f}%)")
    paper.y += 0.15


def _draw_chart(paper: Paper, chart: Chart) -> None:
    paper.y += 0.36
    paper.text(MARGIN, chart.title, size=11, bold=True, family=SERIF)
    paper.y += 0.18
    paper.text(MARGIN, chart.about, size=7, colour=SOFT)
    paper.y += 0.2
    ends = [_RIGHT - _COUNT * place for place in range(len(chart.columns))][::-1]
    for place, (end, (code, name)) in enumerate(zip(ends, chart.columns.items(), strict=True)):
        paper.dot(MARGIN + 1.25 * place, code)
        paper.text(MARGIN + 1.25 * place + 0.14, name, size=7)
        paper.dot(end - 0.09, code)
    for bar in chart.bars:
        paper.y += 0.06
        paper.rule()
        paper.y += 0.16
        start = MARGIN + (2.6 if bar.meaning else 0.75)
        paper.text(MARGIN, bar.meaning or bar.code, size=7.5)
        paper.bar(start, ends[0] - _COUNT - start, 0.1, bar.segments)
        for end, segment in zip(ends, bar.segments, strict=True):
            paper.text(end, f"{segment.count:,}", size=8, align="right", colour=INK if segment.count else SOFT)


def _draw_problems(paper: Paper, report: Report) -> None:
    found = [row for row in tuples(report.result.problems) if row.sales]
    if not found:
        return
    paper.y += 0.36
    paper.text(MARGIN, "Problems", size=11, bold=True, family=SERIF)
    for row in found:
        paper.y += 0.2
        paper.text(MARGIN + 0.4, f"{row.sales:,}", bold=True, align="right")
        paper.text(MARGIN + 0.55, CODES[row.problem].meaning, size=8)


def _sales(report: Report) -> Iterator[Paper]:
    """The further pages: the sales to act on, the gravest and oldest first."""
    paper: Paper | None = None
    for row in tuples(known(report.result.rows.head(SALES_SHOWN))):
        lines = list(_lines(row))
        height = _LINE * max(2, len(lines)) + 0.14
        if paper is None or paper.left < height:
            if paper is not None:
                yield paper
            paper = _sales_page(report)
        _draw_sale(paper, row, lines)
        paper.y += height
    if paper is not None:
        yield paper


def _sales_page(report: Report) -> Paper:
    paper = Paper()
    shown = min(report.result.open, SALES_SHOWN)
    paper.text(MARGIN, "Sales to act on", size=11, bold=True, family=SERIF)
    about = f"the gravest and oldest first; {shown:,} of {report.result.open:,}"
    paper.text(_RIGHT, about, size=7.5, colour=SOFT, align="right")
    paper.y += 0.25
    for name, x in _COLUMNS.items():
        align = {"align": "right"} if name == "Days" else {}
        paper.text(MARGIN + x, name, size=7, colour=SOFT, **align)  # type: ignore[arg-type]
    paper.y += 0.05
    return paper


def _lines(row: Any) -> Iterator[tuple[str, str]]:
    """What is missing and what else is wrong, each with the colour of its dot."""
    for code, reason in zip(items(row.missing), items(row.reasons), strict=True):
        yield f"{code}: {CODES[reason].name}", COLOURS[reason]
    for problem in items(row.problems):
        yield CODES[problem].name, STATUS_INK["conflict"]


def _draw_sale(paper: Paper, row: Any, lines: list[tuple[str, str]]) -> None:
    paper.rule()
    start = paper.y
    columns = {name: MARGIN + x for name, x in _COLUMNS.items()}
    paper.y = start + _LINE
    paper.text(columns["Sale"], clipped(row.saleId, 20), size=8, bold=True)
    paper.text(columns["Group"], clipped(row.utilityGroup, 6), size=8)
    paper.text(columns["Partner, client"], clipped(row.partner or "no partner", 24), size=8)
    paper.text(columns["Days"], f"{row.ageDays:,}", size=8, align="right")
    paper.y += _LINE
    paper.text(columns["Sale"], row.status, size=7, colour=STATUS_INK[row.status])
    paper.text(columns["Partner, client"], row.cpf or "no client", size=7, colour=SOFT)
    for place, (text, colour) in enumerate(lines, start=1):
        paper.y = start + _LINE * place
        paper.box(columns["What is missing, and why"], 0.08, 0.08, colour)
        paper.text(columns["What is missing, and why"] + 0.14, text, size=7)
    paper.y = start


def _foot(paper: Paper, report: Report, number: str) -> None:
    source = report.result.source
    paper.y = 11.35
    paper.text(MARGIN, f"{source.database}, rules {source.rules}, toolkit {source.toolkit}", size=6.5, colour=SOFT)
    paper.text(_RIGHT, number, size=6.5, colour=SOFT, align="right")
