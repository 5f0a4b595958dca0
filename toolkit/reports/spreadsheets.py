"""``missing-evidence.xlsx`` for those who sort and filter, and ``missing-evidence.csv`` for programs.

The workbook: *Summary* has the totals, *Sales* one row a sale that is not compliant, *Missing* one row a missing
piece, *Findings* one row a finding with its history; then come the other lists, in a partner's workbook *Answers*,
which it fills in and sends back, and *Notes*, which tells what the words mean and where the numbers come from.
Texts are written as texts: nothing that a sale holds becomes a formula or a link.

The CSV: one row a sale that is not compliant, UTF-8 with commas for programs; with ``;`` and a byte order mark as
a Brazilian Excel opens it. Lists are joined by ``|``. A cell that a spreadsheet would take for a formula starts
with an apostrophe.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.contract.codes import CODES
from toolkit.contract.findings import Status
from toolkit.contract.resources import HEADINGS, AnswerKind
from toolkit.errors import ReportError
from toolkit.intake.sources import harmless
from toolkit.intake.workbook_writer import (
    CELL_CHARACTERS,
    SHEET_NAME,
    SHEET_ROWS,
    Cells,
    Form,
    SheetLooks,
    Style,
    Workbook,
    column_name,
    has_unwritable,
)
from toolkit.reports import wording
from toolkit.reports.audited import ROW_COLUMNS
from toolkit.reports.lists import ANSWERS, CHANGE, FINDINGS, MISSING, SALES, Section, section, sections_beside
from toolkit.reports.notices import acting_lines, headline, notices, provenance
from toolkit.reports.page import charts
from toolkit.reports.report import MOMENTS, ROWS_AT_ONCE, Report, iso_column
from toolkit.reports.wording import COLOURS, names_in

WIDEST: Final = 46.0  # characters that a column shows at most; longer texts are wrapped
SAMPLE: Final = 2000  # the number of rows by which the widths of columns are chosen
_TO_WRITE: Final = 24.0  # digits of a column that a partner fills in
_ROOM: Final = 4  # characters that the button of a filter takes

_DAY: Final = 86_400_000_000
_EPOCH: Final = 25_569  # the number that a workbook has for 1970-01-01
_FIRST_DAY: Final = 61  # the number of 1900-03-01; before it, workbooks count a day that did not exist


def statuses(names: pa.Array, report: Report) -> Cells:
    """Return the names of statuses, each on its colour."""
    words = wording.names_in(wording.STATUS_NAMES, report.language)
    styles = {Style.AMBER: words[Status.INCOMPLETE], Style.RED: words[Status.CONFLICT]}
    masks = {style: pc.equal(names, word).to_numpy(zero_copy_only=False) for style, word in styles.items()}
    return Cells(texts(names), style=Style.WRAPPED, styles=masks)


def fitting(name: str, cells: Cells) -> float:
    """Return the width, in digits, that shows each word of a heading and these cells, up to ``WIDEST``."""
    lines = pc.list_flatten(pc.split_pattern(cells.texts.unique().drop_null(), "\n"))
    longest = pc.max(pc.add(pc.utf8_length(lines), pc.divide(pc.count_substring_regex(lines, "[A-Z]"), 4))).as_py()
    shown = {Style.MOMENT: 17, Style.DAY: 11}.get(cells.style, longest or 8)
    return float(min(max(shown + 2, max(map(len, name.split())) + _ROOM), WIDEST))


def values(column: pa.Array, report: Report) -> Cells:
    """Return a column of a list, empty cells among it: times in the report's zone, days, numbers, texts."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return _times(column, report)
    if pa.types.is_boolean(kind):
        say = report.language.text
        return Cells(pc.if_else(column, say("yes"), say("no")), style=Style.WRAPPED)
    if pa.types.is_date(kind):
        days = pc.add(column.cast(pa.int32()), _EPOCH)
        return Cells(days.cast(pa.string()), Form.NUMBER, Style.DAY)
    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        style = Style.DECIMAL if pa.types.is_floating(kind) else Style.NUMBER
        return Cells(column.cast(pa.string()), Form.NUMBER, style)
    return Cells(texts(column), style=Style.WRAPPED)


def texts(column: pa.Array) -> pa.StringArray:
    """Return texts that a workbook can hold; what is too long for a cell is cut, and ends with an ellipsis."""
    found = column.cast(pa.string())
    found = pc.if_else(pc.equal(found, ""), None, found)
    if has_unwritable(found):
        found = pc.replace_substring_regex(found, "[\ufffe\uffff]", "\ufffd")
    if pc.any(pc.match_substring_regex(found, wording.TURNING)).as_py():
        found = pa.array([cell and wording.escape_bidi(cell) for cell in found.to_pylist()], pa.string())
    if (pc.max(pc.utf8_length(found)).as_py() or 0) <= CELL_CHARACTERS:
        return found
    cut = pc.binary_join_element_wise(pc.utf8_slice_codeunits(found, 0, CELL_CHARACTERS - 1), "…", "")
    return pc.if_else(pc.greater(pc.utf8_length(found), CELL_CHARACTERS), cut, found)


def _times(moments: pa.Array, report: Report) -> Cells:
    """Return the local time as a number of days, for a workbook knows no offsets; as text where too early."""
    local = pc.local_timestamp(moments.cast(pa.timestamp("us", report.timezone.key)))
    days = pc.add(pc.divide(pc.cast(pc.cast(local, pa.int64()), pa.float64(), safe=False), _DAY), _EPOCH)
    early = pc.fill_null(pc.less(days, _FIRST_DAY), False)
    cells = pc.cast(days, pa.string())
    if not pc.any(early).as_py():
        return Cells(cells, Form.NUMBER, Style.MOMENT)
    cells = pc.if_else(early, pc.strftime(local, "%Y-%m-%d %H:%M"), cells)
    return Cells(cells, Form.NUMBER, Style.MOMENT, {Form.TEXT: early.to_numpy(zero_copy_only=False)})


def write_workbook(report: Report, path: Path) -> None:
    """Write the workbook."""
    day = report.language.day_in_workbooks
    created = report.result.facts.as_of.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    with closing(Workbook(path, title=report.title, created=created, day=day)) as book:
        _write_summary(book, report)
        lists = [section(each, report) for each in (SALES, MISSING, FINDINGS)]
        for each in (*lists, *sections_beside(report).values()):
            if each.total or each.title == lists[0].title:
                _write_list(book, each)
        answers = section(ANSWERS, report) if report.result.partner is not None else None
        if answers is not None and answers.total:
            words = [report.language.text(kind.text) for kind in AnswerKind]
            _write_list(book, answers, {list(ANSWERS.columns).index(HEADINGS["answer"]): words})
        _write_notes(book, report)
    if book.problem:
        raise ReportError("No workbook can hold this report: {}.", book.problem)


def _write_summary(book: Workbook, report: Report) -> None:
    result, language = report.result, report.language
    say = language.text
    bars: dict[str, str] = {}
    missing = result.missing_shown
    book.begin_sheet(say("Summary"), SheetLooks((46, *[16] * len(missing.columns[1:])), pages=1))
    book.add_row(f"{headline(report)}.", style=Style.TITLE)
    book.add_row(report.as_of, style=Style.SOFT)
    for name, text in acting_lines(report).items():
        book.add_across(f"{name}: {text}")
    book.add_row("")
    for notice in notices(report):
        book.add_across(notice)
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
    book.add_rows(totals.items())
    for chart in charts(report):
        bars |= _write_counts(book, chart)
    book.add_row("")
    book.add_row(say("Problems"), style=Style.SECTION)
    problems = result.problems[["problem", "sales"]].itertuples(index=False, name=None)
    book.add_rows((say(CODES[code].name), int(sales), code) for code, sales in problems)
    book.end_sheet(bars)


def _write_counts(book: Workbook, chart: Mapping[str, Any]) -> dict[str, str]:
    """Write a chart's counts; return the cells that show their numbers as bars, and each column's colour."""
    columns = chart["columns"]
    book.add_row("")
    book.add_row(chart["title"], style=Style.SECTION)
    book.add_row(chart["about"], style=Style.SOFT)
    book.add_row("", *columns.values(), style=Style.NUMBER_HEADING)
    first = book.row + 1
    book.add_rows((bar["name"], *(each["count"] for each in bar["segments"])) for bar in chart["bars"])
    cells = (f"{name}{first}:{name}{book.row}" for name in map(column_name, range(1, len(columns) + 1)))
    return {ranged: COLOURS[code][0] for ranged, code in zip(cells, columns, strict=True)}


def _write_list(book: Workbook, section: Section, choices: Mapping[int, Sequence[str]] | None = None) -> None:
    """Write a list, on ``Sales 2`` and so on where its rows are more than a sheet holds.

    ``choices`` are the words that may be chosen in a column, by its place.
    """
    room = SHEET_ROWS - 1
    for number, first in enumerate(range(0, max(section.total, 1), room), start=1):
        last = min(first + room, section.total)
        sample = _sheet_cells(section, slice(first, min(first + SAMPLE, last)))
        widths = [fitting(*each) for each in zip(section.headings, sample, strict=True)]
        if choices:  # to be filled in, and therefore empty
            widths = [
                max(each, _TO_WRITE * (not any(cells.texts.to_pylist())))
                for each, cells in zip(widths, sample, strict=True)
            ]
        suffix = f" {number}" if number > 1 else ""
        book.begin_sheet(
            f"{section.title[: SHEET_NAME - len(suffix)]}{suffix}",
            SheetLooks(widths, frozen_columns=1, choices=choices or {}),
        )
        book.add([_heading(*each) for each in zip(section.headings, sample, strict=True)])
        book.add(sample)
        for start in range(first + SAMPLE, last, ROWS_AT_ONCE):
            book.add(_sheet_cells(section, slice(start, min(start + ROWS_AT_ONCE, last))))


def _heading(name: str, cells: Cells) -> Cells:
    """Return the heading of a column, on the side of its cells."""
    numbers = cells.style in (Style.NUMBER, Style.DECIMAL, Style.CHANGE)
    return Cells(pa.array([name]), style=Style.NUMBER_HEADING if numbers else Style.HEADING)


def _sheet_cells(section: Section, part: slice) -> list[Cells]:
    found = [
        (statuses if heading == "Status" else values)(column, section.report)
        for heading, column in zip(section.columns, section.cells(part), strict=True)
    ]
    changes = [heading == CHANGE for heading in section.columns]
    return [replace(each, style=Style.CHANGE) if sign else each for each, sign in zip(found, changes, strict=True)]


def _write_notes(book: Workbook, report: Report) -> None:
    say, language = report.language.text, report.language
    book.begin_sheet(say("Notes"), SheetLooks((52, 100)))
    notes = {
        say("Where the numbers come from"): provenance(report),
        say("Words"): {say(word): say(meaning) for word, meaning in wording.GLOSSARY.items()},
        say("Codes"): names_in(wording.MEANINGS, language),
    }
    for title, meanings in notes.items():
        book.add_row(title, style=Style.SECTION)
        words, names = (texts(pa.array([*each], pa.string())) for each in (meanings, meanings.values()))
        book.add([Cells(words, style=Style.BOLD), Cells(names, style=Style.WRAPPED)])
        book.add_row("")


_FREE_TEXTS: Final = {"saleId", "utilityGroup", "partner", "clientId", "cpf", "replica"}
"""The columns that hold what the service's tables hold."""


def write_csv(report: Report, path: Path) -> None:
    """Write the rows of the result; an empty cell stands for what is not known.

    Where a replica was read, a last column names it and its delay; the heading does where there are no rows.
    """
    rows, replica = report.result.rows[[*ROW_COLUMNS]], report.result.facts.source.replica
    rows = rows if replica is None else rows.assign(replica=replica)
    encoding, delimiter, end = ("utf-8-sig", ";", "\r\n") if report.excel else ("utf-8", ",", "\n")
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=end)
        replicas = [] if replica is None or len(rows) else [f"replica: {harmless(replica)}"]
        writer.writerow([*rows.columns[: len(rows.columns) - len(replicas)], *replicas])
        for start in range(0, len(rows), ROWS_AT_ONCE):
            part = rows.iloc[start : start + ROWS_AT_ONCE]
            writer.writerows(zip(*(_csv_cells(part[name], report) for name in part.columns), strict=True))


def _csv_cells(column: pd.Series[Any], report: Report) -> list[Any]:
    if column.name in MOMENTS:
        return [text or "" for text in iso_column(column, report.timezone)]
    if column.name == "isClientFinancialResponsible":
        return column.astype(object).map({True: "true", False: "false"}).fillna("").tolist()
    cells: list[Any] = column.astype(object).where(column.notna(), "").tolist()
    return [harmless(cell) for cell in cells] if column.name in _FREE_TEXTS else cells
