"""Recompute each figure of a written report from the rows that it leads to."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pypdf import PdfReader
from python_calamine import CalamineWorkbook

BANDS = {"0-1": (0, 1), "2-7": (2, 7), "8-30": (8, 30), "31-90": (31, 90), ">90": (91, 10**9)}
STANDING = ("open", "reopened")

Row = dict[str, Any]


def wrong_figures(folder: Path) -> list[str]:
    """The figures of the JSON, the workbook and, if written, the PDF that their rows do not give."""
    document = json.loads((folder / "missing-evidence.json").read_text(encoding="utf-8"))
    figures = [*_of_json(document), *_of_workbook(folder, document)]
    if (folder / "missing-evidence.pdf").exists():
        figures += _of_pdf(folder / "missing-evidence.pdf", document)
    assert len(figures) > 60
    return [f"{name}: {told}, but its rows give {given}" for name, told, given in figures if told != given]


Figure = tuple[str, Any, Any]


def _of_json(document: Row) -> Iterator[Figure]:
    rows, listed, findings = document["rows"], _listed(document), document["findings"]
    statuses = Counter(row["status"] for row in rows)
    yield "sales", document["sales"], document["compliant"] + len(rows)
    yield "incomplete", document["incomplete"], statuses["incomplete"]
    yield "conflict", document["conflict"], statuses["conflict"]
    completed = _having(rows, "COMPLETED_WITHOUT_EVIDENCE")
    yield "completedWithoutEvidence", document["completedWithoutEvidence"], completed
    yield "withoutClient", document["withoutClient"], sum(row["clientId"] is None for row in listed)
    yield "unexamined", document["unexamined"], sum(row["unexamined"] for row in listed)
    yield "compliantVerified", document["compliantVerified"], document["compliant"] - len(document["unverified"])
    for depth in ("firstBytes", "never", "unreadable"):
        yield depth, document["coverage"][depth], sum(row[depth] for row in listed)
    for group in document["byGroup"]:
        own = [row for row in rows if _group(row) == group["utilityGroup"]]
        for status in ("incomplete", "conflict"):
            yield f"{group} {status}", group[status], sum(row["status"] == status for row in own)
    for missing in document["missing"]:
        for reason in missing.keys() - {"evidenceType"}:
            piece = {"evidenceType": missing["evidenceType"], "reason": reason}
            yield f"{piece}", missing[reason], sum(piece in row["missing"] for row in rows)
    for problem in document["problems"]:
        yield problem["problem"], problem["sales"], _having(listed, problem["problem"])
    for band in document["ages"]:
        own = [row for row in rows if _fits_age(row, band["ageDays"])]
        for status in ("incomplete", "conflict"):
            yield f"{band} {status}", band[status], sum(row["status"] == status for row in own)
    lives = Counter(each["status"] for each in findings)
    for status in ("open", "waived", "resolved", "reopened"):
        yield status, document["findingCounts"][status], lives[status]
    yield "overdue", document["findingCounts"]["overdue"], sum(each["overdue"] for each in findings)
    for day in document["trend"][-1:]:
        yield "trend", day["present"], len(findings) - lives["resolved"]
    yield from _of_changes(document)
    for board in document["partners"]:
        yield from _of_partner(board, document)


def _of_changes(document: Row) -> Iterator[Figure]:
    changes = document["changes"]
    if changes is None:
        return
    since, there = changes["since"], [each for each in document["findings"] if each["status"] != "resolved"]
    came = Counter((each["openedAt"] > since, each["firstSeen"] > since) for each in there)
    yield "new", changes["new"], came[True, True]
    yield "reopened", changes["reopened"], came[True, False]
    yield "still open", changes["open"], came[False, False]


def _of_partner(board: Row, document: Row) -> Iterator[Figure]:
    def own(rows: Iterable[Row]) -> list[Row]:
        return [row for row in rows if (row["partner"] or "") == board["partner"]]

    statuses = Counter(row["status"] for row in own(document["rows"]))
    yield f"{board} sales", board["sales"], board["compliant"] + statuses["incomplete"] + statuses["conflict"]
    for status in ("incomplete", "conflict"):
        yield f"{board} {status}", board[status], statuses[status]
    findings = own(document["findings"])
    yield f"{board} findings", board["findings"], sum(each["status"] in STANDING for each in findings)
    yield f"{board} waived", board["waived"], sum(each["status"] == "waived" for each in findings)
    yield f"{board} overdue", board["overdue"], sum(each["overdue"] for each in findings)


def _of_workbook(folder: Path, document: Row) -> Iterator[Figure]:
    book = CalamineWorkbook.from_path(folder / "missing-evidence.xlsx")
    sheets = {name: book.get_sheet_by_name(name).to_python() for name in book.sheet_names}
    summary = {row[0]: row[1] for row in reversed(sheets["Summary"]) if len(row) > 1}
    for name, told in (("Sales", "sales"), ("compliant", "compliant"), ("incomplete", "incomplete")):
        yield f"workbook {name}", summary[name], document[told]
    yield "workbook unexamined", summary["files counted unexamined"], document["unexamined"]
    pieces = sum(len(row["missing"]) for row in document["rows"])
    for sheet, rows in {
        "Sales": len(document["rows"]),
        "Missing": pieces,
        "Findings": len(document["findings"]),
    }.items():
        yield f"sheet {sheet}", len(sheets[sheet]) - 1, rows


def _of_pdf(path: Path, document: Row) -> Iterator[Figure]:
    """The figures on the first page, in total and on cards."""
    text = "\n".join(page.extract_text() for page in PdfReader(path).pages)
    rows, names = document["rows"], {"incomplete": "incomplete", "in conflict": "conflict"}
    for name, status in names.items():
        found = re.search(rf"(\d+) {name} \d+%", text)
        yield f"PDF {name}", found and int(found[1]), sum(row["status"] == status for row in rows)
    cards = re.findall(r"^(\d+)\n(completed|days|pieces|files)\b", text, re.MULTILINE)
    pieces = [piece for row in rows for piece in row["missing"]]
    yield (
        "PDF cards",
        {name: int(figure) for figure, name in cards},
        {
            "completed": _having(rows, "COMPLETED_WITHOUT_EVIDENCE"),
            "days": max(row["ageDays"] for row in rows),
            "pieces": len(pieces),
            "files": sum(row["unexamined"] for row in _listed(document)),
        },
    )


def _listed(document: Row) -> list[Row]:
    """Every sale that a list of the report has, once."""
    names = ("rows", "warnings", "unverified")
    return list({row["saleId"]: row for name in names for row in document[name]}.values())


def _having(rows: list[Row], problem: str) -> int:
    return sum(problem in row["problems"] for row in rows)


def _group(row: Row) -> str:
    return row["utilityGroup"] if row["utilityGroup"] in ("A", "B", "C", "D") else "unknown"


def _fits_age(row: Row, band: str) -> bool:
    first, last = BANDS[band]
    return bool(first <= row["ageDays"] <= last)
