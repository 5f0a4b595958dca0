"""``missing-evidence.xlsx``: the report as a workbook in the reader's language, for those who sort and filter.

*Summary* has the totals, *Sales* one row a sale that is not compliant, *Missing* one row a missing piece,
*Findings* one row a finding with its life; then come the lists of ``sections``, and *Notes*, which tells what the
words mean and where the numbers come from. Texts are written as texts: nothing that a sale holds becomes a formula
or a link.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC
from pathlib import Path

import pandas as pd

from toolkit.domain.codes import CODES, names_of
from toolkit.domain.findings import Reason
from toolkit.errors import ReportError
from toolkit.operations.spreadsheets.xlsx_parts import Looks, Style, column_name
from toolkit.operations.spreadsheets.xlsx_writer import SHEET_NAME, SHEET_ROWS, Cells, Workbook
from toolkit.reports import sheet_cells, wording
from toolkit.reports.lists import BESIDE, FINDINGS, MISSING, SALES
from toolkit.reports.notices import headline, notices, provenance
from toolkit.reports.palette import COLOURS
from toolkit.reports.report import ROWS_AT_ONCE, Report, Rows, tuples
from toolkit.reports.sections import Section, section
from toolkit.reports.wording import told


def write(report: Report, path: Path) -> None:
    """Write the workbook."""
    created = report.result.as_of.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    say = report.language.text
    with closing(Workbook(path, title=say(wording.TITLE), created=created)) as book:
        _write_summary(book, report)
        lists = [section(each, report) for each in (SALES, MISSING, FINDINGS, *BESIDE.values())]
        written = Rows(report, sum(each.total for each in lists))
        for each in lists:
            _write_list(book, written, each)
        _write_notes(book, report)
    if book.problem:
        raise ReportError(f"No workbook can hold this report: {book.problem}.")


def _write_summary(book: Workbook, report: Report) -> None:
    result, language = report.result, report.language
    say = language.text
    bars: dict[str, str] = {}
    book.begin_sheet(say("Summary"), Looks((46, 16, 16, 20, 20), table=False))
    book.add_row(f"{headline(result, language)}.", style=Style.TITLE)
    book.add_row(say("as of %(moment)s", moment=language.moment(result.as_of, report.timezone)), style=Style.SOFT)
    for notice in notices(result, language, report.timezone):
        book.add_row(notice)
    book.add_row("")
    totals = {
        say("Sales"): result.sales,
        say("compliant"): result.compliant,
        say("incomplete"): result.incomplete,
        say("in conflict"): result.conflict,
        say("completed without evidence"): result.completed_without_evidence,
        say("sales without a client"): result.without_client,
        say("files counted unexamined"): result.unexamined,
    }
    for name, number in totals.items():
        book.add_row(name, number)
    statuses, reasons = told(wording.STATUS_NAMES, language), told(names_of(Reason), language)
    for title, table, names in (
        (say("Status by utility group"), result.by_group, statuses),
        (say("What is missing, and why"), result.missing, reasons),
        (say("Open sales by days since they were created"), result.ages, statuses),
    ):
        bars |= _write_counts(book, report, title, table, names)
    book.add_row("")
    book.add_row(say("Problems"), style=Style.SECTION)
    for row in tuples(result.problems):
        book.add_row(say(CODES[row.problem].name), int(row.sales), row.problem)
    book.end_sheet(bars)


def _write_counts(
    book: Workbook, report: Report, title: str, table: pd.DataFrame, names: Mapping[str, str]
) -> dict[str, str]:
    """Write a table of counts; return the cells that show their numbers as bars, and each column's colour."""
    say, types = report.language.text, told(wording.TYPE_NAMES, report.language)
    columns = [str(name) for name in table.columns[1:]]
    book.add_row("")
    book.add_row(title, style=Style.SECTION)
    book.add_row("", *(names[each] for each in columns), style=Style.HEADING)
    first = book.row + 1
    for row in table.itertuples(index=False, name=None):
        book.add_row(types.get(row[0], say(row[0])), *map(int, row[1:]))
    cells = [f"{column_name(place)}{first}:{column_name(place)}{book.row}" for place in range(1, len(columns) + 1)]
    return {ranged: COLOURS[name] for ranged, name in zip(cells, columns, strict=True)}


def _write_list(book: Workbook, written: Rows, section: Section) -> None:
    """Write a list, on ``Sales 2`` and so on where its rows are more than a sheet holds."""
    room = SHEET_ROWS - 1
    for number, first in enumerate(range(0, max(section.total, 1), room), start=1):
        sample = _cells(section, slice(first, min(first + sheet_cells.SAMPLE, section.total)))
        widths = [sheet_cells.fitting(*each) for each in zip(section.headings, sample, strict=True)]
        suffix = f" {number}" if number > 1 else ""
        book.begin_sheet(f"{section.title[: SHEET_NAME - len(suffix)]}{suffix}", Looks(widths, frozen_columns=1))
        book.add_row(*section.headings, style=Style.HEADING)
        last = min(first + room, section.total)
        for start in range(first, last, ROWS_AT_ONCE):
            part = slice(start, min(start + ROWS_AT_ONCE, last))
            book.add(_cells(section, part))
            written.add(part.stop - part.start)


def _cells(section: Section, part: slice) -> list[Cells]:
    return [
        (sheet_cells.statuses if heading == "Status" else sheet_cells.values)(column, section.report)
        for heading, column in zip(section.columns, section.cells(part), strict=True)
    ]


def _write_notes(book: Workbook, report: Report) -> None:
    language = report.language
    book.begin_sheet(language.text("Notes"), Looks((44, 100), table=False))
    for title, pairs in _notes(report):
        book.add_row(title, style=Style.SECTION)
        for word, meaning in pairs:
            book.add([sheet_cells.text(word, Style.BOLD), sheet_cells.text(meaning, Style.WRAPPED)])
        book.add_row("")


def _notes(report: Report) -> Iterator[tuple[str, Sequence[tuple[str, str]]]]:
    say, language = report.language.text, report.language
    origin = provenance(report.result, report.timezone, language)
    yield say("Where the numbers come from"), list(origin.items())
    yield say("Words"), [(say(word), say(meaning)) for word, meaning in wording.GLOSSARY.items()]
    yield say("Codes"), list(told(wording.MEANINGS, language).items())
