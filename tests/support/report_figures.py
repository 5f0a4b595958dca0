"""Recompute each figure of a written report from the rows that it leads to."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from pypdf import PdfReader
from python_calamine import CalamineWorkbook

from tests.support.report_text import packed_data

BANDS = {"0-1": (0, 1), "2-7": (2, 7), "8-30": (8, 30), "31-90": (31, 90), ">90": (91, 10**9)}
STANDING = ("open", "reopened")

Row = dict[str, Any]


def wrong_figures(folder: Path) -> list[str]:
    """The figures of the JSON, the page, the workbook and, if written, the PDF that their rows do not give."""
    document = json.loads((folder / "missing-evidence.json").read_text(encoding="utf-8"))
    page = (folder / "missing-evidence.html").read_text(encoding="utf-8")
    figures = [*_of_json(document), *_of_page(page, document), *_of_workbook(folder, document)]
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


def _of_page(page: str, document: Row) -> Iterator[Figure]:
    """Each number that is a link, and what the sales count to that its filters find."""
    listed = _listed(document)
    known, (sales, partners) = {row["saleId"] for row in listed}, _columns(page, "saleId", "partner")
    assert known <= set(sales)
    good = {
        "status": "compliant",
        "missing": [],
        "problems": [],
        "unexamined": 0,
        "utilityGroup": "A",
        "ageDays": 0,
    }
    others = ({"saleId": sale, "partner": who, **good} for sale, who in zip(sales, partners, strict=True))
    listed += [row for row in others if row["saleId"] not in known]  # with a finding about a file, no more
    overdue = Counter(each["saleId"] for each in document["findings"] if each["overdue"])
    standing = [each for each in document["findings"] if each["status"] in STANDING]
    for row in listed:
        own = [each for each in standing if each["saleId"] == row["saleId"]]
        row["owners"] = {each["owner"] for each in own}
        row["open"], row["critical"] = bool(own), any(each["severity"] == "critical" for each in own)
    for address, text in re.findall(r'<a class="rows" href="#([^"]*)">([0-9,]+)</a>', page):
        view = dict(parse_qsl(unescape(address)))
        if view.keys() & {"sort", "sale"}:
            continue
        found = [row for row in listed if all(_fits(row, *choice, overdue) for choice in view.items())]
        if view.keys() >= {"missing", "reason"}:  # both are of the same piece
            piece = {"evidenceType": view["missing"], "reason": view["reason"]}
            found = [row for row in found if piece in row["missing"]]
        if not view.keys() & {"status", "problem", "only", "owner"}:
            found = [row for row in found if row["status"] != "compliant"]
        counts = {len(found), *(count(found, overdue) for count in _OTHERWISE)}
        number = int(text.replace(",", ""))
        yield f"page {view}", number, number if number in counts else len(found)


def _columns(page: str, *names: str) -> Iterator[list[str]]:
    """The cells of columns that the page holds packed."""
    document = packed_data(page)
    for column in (each for name in names for each in document["columns"] if each["name"] == name):
        values = column.get("values")
        yield column["cells"] if values is None else [values[at] if at >= 0 else "" for at in column["at"]]


_OTHERWISE: tuple[Callable[[list[Row], Counter[str]], int], ...] = (
    lambda rows, _: sum(row["unexamined"] for row in rows),
    lambda rows, _: sum(len(row["missing"]) for row in rows),
    lambda rows, _: sum(piece["reason"] == "NEVER_REQUESTED" for row in rows for piece in row["missing"]),
    lambda rows, overdue: sum(overdue[row["saleId"]] for row in rows),
)
"""What a figure of the page counts, where it does not count sales: files, pieces, findings."""


def _fits(row: Row, name: str, wanted: str, overdue: Counter[str]) -> bool:
    pieces = row["missing"]
    fits: dict[str, Callable[[], bool]] = {
        "status": lambda: row["status"] == wanted,
        "group": lambda: _group(row) == wanted,
        "missing": lambda: any(piece["evidenceType"] == wanted for piece in pieces),
        "reason": lambda: any(piece["reason"] == wanted for piece in pieces),
        "problem": lambda: wanted in row["problems"],
        "partner": lambda: (row["partner"] or " ") == wanted,
        "age": lambda: _fits_age(row, wanted),
        "owner": lambda: wanted in row["owners"],
        "only": lambda: {
            "unexamined": row["unexamined"] > 0,
            "overdue": overdue[row["saleId"]] > 0,
            "open": row["open"],
            "critical": row["critical"],
        }[wanted],
    }
    return fits[name]()


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
    """The figures on the first pages: in total, on cards, and in the tables of the charts."""
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
    for group, *numbers in re.findall(r"^([A-D]|unknown) \d+ (\d+) (\d+)$", text, re.MULTILINE):
        own = Counter(row["status"] for row in rows if _group(row) == group)
        yield f"PDF group {group}", [*map(int, numbers)], [own[status] for status in names.values()]
    for band, *numbers in re.findall(r"^(\d+-\d+|>90) (\d+) (\d+)$", text, re.MULTILINE):
        own = Counter(row["status"] for row in rows if _fits_age(row, band))
        yield f"PDF age {band}", [*map(int, numbers)], [own[status] for status in names.values()]
    chart = text.partition("by how far the best attempt")[2].partition("Missing evidence, as of")[0]
    told = [[*map(int, each.split())] for each in re.findall(r"(?:^| )(\d+(?: \d+){3,5})$", chart, re.MULTILINE)]
    reasons = ["UNUSABLE", "NOT_UPLOADED", "EXPIRED", "NEVER_REQUESTED"]  # the others where they occur
    reasons[1:1] = ["VANISHED"] * any(each["reason"] == "VANISHED" for each in pieces)
    reasons[-2:-2] = ["EXPIRY_UNKNOWN"] * any(each["reason"] == "EXPIRY_UNKNOWN" for each in pieces)
    for rare in ("WITHDRAWN", "TYPE_UNKNOWN"):
        reasons[-1:-1] = [rare] * any(each["reason"] == rare for each in pieces)
    kinds = [each["evidenceType"] for each in document["missing"]]
    given = [[pieces.count({"evidenceType": kind, "reason": why}) for why in reasons] for kind in kinds]
    yield "PDF missing", told[: len(given)], given


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
