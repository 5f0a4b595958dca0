"""``missing-evidence.csv``: one row a sale that is not compliant, for spreadsheets and programs.

UTF-8 with commas for programs; with ``;`` and a byte order mark as a Brazilian Excel opens it. Lists are joined by
``|``. A cell that a spreadsheet would take for a formula starts with an apostrophe.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, Final

import pandas as pd

from toolkit.operations.spreadsheets.formulas import harmless
from toolkit.reports.report import MOMENTS, ROWS_AT_ONCE, Report, Rows
from toolkit.reports.times import iso_column

_FREE_TEXTS: Final = {"saleId", "utilityGroup", "partner", "clientId", "cpf"}
"""The columns that hold what the service's tables hold."""


def write(report: Report, path: Path) -> None:
    """Write the rows of the result; an empty cell stands for what is not known."""
    rows = report.result.rows
    encoding, delimiter, end = ("utf-8-sig", ";", "\r\n") if report.excel else ("utf-8", ",", "\n")
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=end)
        writer.writerow(rows.columns)
        written = Rows(report, len(rows))
        for start in range(0, len(rows), ROWS_AT_ONCE):
            part = rows.iloc[start : start + ROWS_AT_ONCE]
            writer.writerows(zip(*(_cells(part[name], report) for name in part.columns), strict=True))
            written.add(len(part))


def _cells(column: pd.Series[Any], report: Report) -> list[Any]:
    if column.name in MOMENTS:
        return [text or "" for text in iso_column(column, report.timezone)]
    if column.name == "isClientFinancialResponsible":
        return column.astype(object).map({True: "true", False: "false"}).fillna("").tolist()
    cells: list[Any] = column.astype(object).where(column.notna(), "").tolist()
    return [harmless(cell) for cell in cells] if column.name in _FREE_TEXTS else cells
