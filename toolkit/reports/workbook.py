"""``missing-evidence.xlsx``: the report as a workbook, for those who filter and sort in a spreadsheet.

*Summary* has totals and charts, *Sales* one row a sale that is not compliant, *Missing* one row a missing
piece, *File findings* one row a finding about a file, *Notes* what the words mean and where the numbers come
from. Texts are written as texts: nothing that a sale holds becomes a formula or a link.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import pandas as pd
import xlsxwriter

from toolkit.domain.codes import CODES, names_of
from toolkit.domain.evidence import EvidenceType
from toolkit.domain.findings import Problem
from toolkit.operations.judge.audit import AuditResult
from toolkit.operations.judge.audit.expression import items
from toolkit.reports import wording
from toolkit.reports.palette import COLOURS, STATUS_INK, STATUS_WASH
from toolkit.reports.report import MOMENTS, Report, known, tuples
from toolkit.reports.sheets import ROWS, Formats, Sheet
from toolkit.reports.times import readable

_WIDTHS: Final = {
    "saleId": 20,
    "missing": 36,
    "reasons": 30,
    "problems": 30,
    "counted": 24,
    "isClientFinancialResponsible": 27,
    "partner": 24,
    "clientId": 38,
    "cpf": 16,
    "createdAt": 17,
    "completedAt": 17,
    "oldestRequest": 17,
    "evidenceType": 32,
    "meaning": 46,
    "reason": 20,
    "reasonInWords": 22,
    "finding": 28,
    "findingInWords": 32,
    "saleIds": 40,
    "evidenceIds": 40,
    "folders": 62,
    "detail": 72,
}
_WIDTH: Final = 13

_CHART_COLUMN: Final = 6
_CHART_ROWS: Final = 14
"""From one chart to the next."""

_PIECES: Final = (
    "saleId",
    "utilityGroup",
    "evidenceType",
    "meaning",
    "reason",
    "reasonInWords",
    "partner",
    "createdAt",
    "ageDays",
)


_FILE_FINDING: Final = ("finding", "findingInWords", "saleIds", "evidenceIds", "folders", "detail")


def write(report: Report, path: Path) -> None:
    """Write the workbook."""
    options = {
        "constant_memory": True,
        "tmpdir": str(path.parent),  # rather than the folder for such files that everybody can look into
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "strings_to_numbers": False,
    }
    with xlsxwriter.Workbook(str(path), options) as book:
        book.set_properties(
            {
                "title": wording.TITLE,
                "subject": f"As of {readable(report.result.as_of, report.timezone)}",
                "created": report.result.as_of.astimezone(UTC).replace(tzinfo=None),
            }
        )
        formats = Formats(book)
        _write_summary(book, formats, report)
        rows = _local(report)
        _write_long(book, formats, "Sales", list(rows.columns), rows.itertuples(index=False, name=None))
        _write_long(book, formats, "Missing", _PIECES, _pieces(rows))
        _write_long(book, formats, "File findings", _FILE_FINDING, _file_findings(report.result))
        _write_notes(book, formats, report)


def _write_summary(book: Any, formats: Formats, report: Report) -> None:
    result = report.result
    sheet = Sheet(book, formats, "Summary", [34, 14, 16, 18, 18, 4])
    sheet.line(f"{wording.headline(result)}", style=formats.title, height=28)
    sheet.line(f"As of {readable(result.as_of, report.timezone)}", style=formats.soft)
    for notice in wording.notices(result):
        sheet.line(notice)
    sheet.line()
    totals = {
        "Sales": result.sales,
        "Compliant": result.compliant,
        "Incomplete": result.incomplete,
        "In conflict": result.conflict,
        "Completed without evidence": result.completed_without_evidence,
        "Without a client": result.without_client,
        "Files counted unexamined": result.unexamined,
    }
    for name, count in totals.items():
        sheet.line(name, count)
    for number, (title, counts) in enumerate(
        {
            "Status by utility group": result.by_group,
            "What is missing, and why": result.missing,
            "Open sales by days since they were created": result.ages,
        }.items()
    ):
        sheet.line()
        sheet.line(title, style=formats.section)
        lines = sheet.table(list(counts.columns), counts.itertuples(index=False, name=None))
        chart = _chart(book, sheet, title, list(counts.columns), lines)
        sheet.paper.insert_chart(_CHART_ROWS * number + 1, _CHART_COLUMN, chart)
    sheet.line()
    sheet.line("Problems", style=formats.section)
    names = names_of(Problem)
    sheet.table(
        ["problem", "sales", "inWords"],
        [(row.problem, row.sales, names[row.problem]) for row in tuples(result.problems)],
    )


def _chart(book: Any, sheet: Sheet, title: str, columns: Sequence[str], lines: range) -> Any:
    """Stacked bars of a table of counts that stands in these lines of the sheet."""
    chart = book.add_chart({"type": "bar", "subtype": "stacked"})
    for place, name in enumerate(columns[1:], start=1):
        chart.add_series(
            {
                "name": [sheet.name, lines.start - 1, place],
                "categories": [sheet.name, lines.start, 0, lines.stop - 1, 0],
                "values": [sheet.name, lines.start, place, lines.stop - 1, place],
                "fill": {"color": COLOURS[name]},
                "gap": 40,
            }
        )
    chart.set_title({"name": title, "name_font": {"size": 11}})
    chart.set_x_axis({"major_gridlines": {"visible": True, "line": {"color": "#E2DDD2"}}})
    chart.set_y_axis({"reverse": True})
    chart.set_legend({"position": "bottom"})
    chart.set_size({"width": 560, "height": 260})
    return chart


def _write_long(
    book: Any, formats: Formats, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """Write a table that may be longer than a sheet: it goes on in ``Sales 2`` and so on."""
    for number, part in enumerate(_sheetfuls(rows), start=1):
        sheet = Sheet(
            book,
            formats,
            f"{name} {number}" if number > 1 else name,
            [_WIDTHS.get(column, _WIDTH) for column in columns],
        )
        lines = sheet.table(columns, part)
        sheet.paper.freeze_panes(1, 1)
        sheet.paper.repeat_rows(0)
        sheet.paper.autofilter(0, 0, max(lines.stop - 1, 0), len(columns) - 1)
        if "status" in columns and lines:
            _colour_status(book, sheet, lines, columns.index("status"))


def _sheetfuls(rows: Iterable[Sequence[Any]]) -> Iterator[Iterator[Sequence[Any]]]:
    """The rows in parts that fit a sheet below its heading; one empty part where there are none."""
    rest = iter(rows)
    first = next(rest, None)
    if first is None:
        yield iter(())
    while first is not None:
        yield chain([first], islice(rest, ROWS - 2))
        first = next(rest, None)


def _colour_status(book: Any, sheet: Sheet, lines: range, place: int) -> None:
    for status, wash in STATUS_WASH.items():
        style = book.add_format({"bg_color": wash, "font_color": STATUS_INK[status]})
        rule = {"type": "cell", "criteria": "==", "value": f'"{status}"', "format": style}
        sheet.paper.conditional_format(lines.start, place, lines.stop - 1, place, rule)


def _local(report: Report) -> pd.DataFrame:
    """The rows with times of the report's zone."""
    rows = report.result.rows
    local = {name: rows[name].dt.tz_convert(report.timezone) for name in MOMENTS}
    return known(rows.assign(**local))


def _pieces(rows: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    """One row a missing piece, in words too."""
    for row in tuples(rows):
        for code, reason in zip(items(row.missing), items(row.reasons), strict=True):
            yield (
                row.saleId,
                row.utilityGroup,
                code,
                wording.TYPE_NAMES[EvidenceType(code)],
                reason,
                CODES[reason].name,
                row.partner,
                row.createdAt,
                row.ageDays,
            )


def _file_findings(result: AuditResult) -> Iterator[tuple[str, ...]]:
    """One row a finding about files."""
    for finding in result.file_findings:
        yield (
            finding.problem,
            CODES[finding.problem].name,
            "|".join(finding.sale_ids),
            "|".join(map(str, finding.evidence_ids)),
            "|".join(finding.folders),
            finding.detail,
        )


def _write_notes(book: Any, formats: Formats, report: Report) -> None:
    sheet = Sheet(book, formats, "Notes", [44, 100])
    sheet.line("Where the numbers come from", style=formats.section)
    sheet.list_of(wording.provenance(report.result, report.timezone))
    sheet.line()
    sheet.line("Words", style=formats.section)
    sheet.list_of(wording.GLOSSARY)
    sheet.line()
    sheet.line("Codes", style=formats.section)
    sheet.list_of(wording.MEANINGS)
