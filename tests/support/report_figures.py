"""What a written report holds: all of it as one text, and each figure recomputed from its rows."""

import base64
import json
import re
import zlib
from collections import Counter, defaultdict
from html import unescape
from zipfile import ZipFile

from pypdf import PdfReader
from pypdf.generic import IndirectObject, StreamObject
from python_calamine import CalamineWorkbook

from toolkit.contract.findings import Reason
from toolkit.language import ENGLISH
from toolkit.reports.audited import _RARE as RARE
from toolkit.reports.wording import OWNER_NAMES

BANDS = {"0-1": (0, 1), "2-7": (2, 7), "8-30": (8, 30), "31-90": (31, 90), ">90": (91, 10**9)}
STANDING = ("open", "reopened")


def wrong_figures(folder, language=ENGLISH):
    """The figures of each format in the folder that their rows do not give."""
    document = json.loads((folder / "missing-evidence.json").read_text(encoding="utf-8"))
    figures = [*_of_json(document), *_of_workbook(folder, document, language)]
    if (folder / "missing-evidence.html").exists():
        figures += _of_page((folder / "missing-evidence.html").read_text("utf-8"), document, language)
    if (folder / "missing-evidence.pdf").exists():
        figures += _of_pdf(folder / "missing-evidence.pdf", document, language)
    assert len(figures) > 60
    return [f"{name}: {told}, but its rows give {given}" for name, told, given in figures if told != given]


def _of_json(document):
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
        names = {name: name for name in "ABCD"}
        own = [row for row in rows if names.get(row["utilityGroup"], "unknown") == group["utilityGroup"]]
        for status in ("incomplete", "conflict"):
            yield f"{group} {status}", group[status], sum(row["status"] == status for row in own)
    for missing in document["missing"]:
        for reason in missing.keys() - {"evidenceType"}:
            piece = {"evidenceType": missing["evidenceType"], "reason": reason}
            yield f"{piece}", missing[reason], sum(piece in row["missing"] for row in rows)
    for problem in document["problems"]:
        yield problem["problem"], problem["sales"], _having(listed, problem["problem"])
    for band in document["ages"]:
        first, last = BANDS[band["ageDays"]]
        own = [row for row in rows if first <= row["ageDays"] <= last]
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


def _of_changes(document):
    changes = document["changes"]
    if changes is None:
        return
    partners = {each["id"]: each["partner"] or "" for each in document["findings"]}
    since, there = changes["since"], [each for each in document["findings"] if each["status"] != "resolved"]
    new = sum(each["firstSeen"] > since for each in there)
    back = {each["id"] for each in document["changed"] if each["change"] == "reopened"}
    yield "new", changes["new"], new
    yield "reopened", changes["reopened"], sum(each["id"] in back and each["openedAt"] > since for each in there)
    yield "still open", changes["open"], len(there) - new - len(back)
    kinds = ("new", "resolved", "reopened", "between")
    given = Counter((each["change"], partners[each["id"]]) for each in document["changed"])
    for board in changes["byPartner"]:
        for kind in kinds:
            yield f"{board['partner']} {kind}", board[kind], given[kind, board["partner"]]
    total = sum(board[kind] for board in changes["byPartner"] for kind in kinds)
    yield "changes of all partners", total, given.total()


def _of_partner(board, document):
    def own(rows):
        return [row for row in rows if (row["partner"] or "") == board["partner"]]

    statuses = Counter(row["status"] for row in own(document["rows"]))
    yield f"{board} sales", board["sales"], board["compliant"] + statuses["incomplete"] + statuses["conflict"]
    for status in ("incomplete", "conflict"):
        yield f"{board} {status}", board[status], statuses[status]
    findings = own(document["findings"])
    yield f"{board} findings", board["findings"], sum(each["status"] in STANDING for each in findings)
    yield f"{board} waived", board["waived"], sum(each["status"] == "waived" for each in findings)
    yield f"{board} overdue", board["overdue"], sum(each["overdue"] for each in findings)


def _of_workbook(folder, document, language):
    book, say = CalamineWorkbook.from_path(folder / "missing-evidence.xlsx"), language.text
    sheets = {name: book.get_sheet_by_name(name).to_python() for name in book.sheet_names}
    counted = [[cell for cell in row[1:] if cell != ""] for row in sheets[say("Summary")]]
    for name, counts in _charts(document):
        places = [at for at in range(len(counted)) if counted[at : at + len(counts)] == counts]
        yield f"workbook, chart {name}", bool(places), True
    summary = {row[0]: row[1] for row in reversed(sheets[say("Summary")]) if len(row) > 1}
    names = {"Sales": "sales", "in conflict": "conflict", "files counted unexamined": "unexamined"}
    for name, told in (names | {"compliant": "compliant", "incomplete": "incomplete"}).items():
        yield f"workbook {name}", summary[say(name)], document[told]
    pieces = sum(len(row["missing"]) for row in document["rows"])
    lengths = {"Sales": len(document["rows"]), "Missing": pieces, "Findings": len(document["findings"])}
    for sheet, rows in lengths.items():
        yield f"sheet {sheet}", len(sheets[say(sheet)]) - 1, rows
    if document["changes"] is not None and document["changes"]["byPartner"]:
        kinds = ("new", "reopened", "resolved", "between", "open")
        given = [[each[kind] for kind in kinds] for each in document["changes"]["byPartner"]]
        yield "sheet Changes by partner", [row[1:] for row in sheets[say("Changes by partner")][1:]], given


def _charts(document):
    """The numbers of the three charts, row by row: each with those columns alone that the chart may leave out."""
    statuses = ("compliant", "incomplete", "conflict")
    kept = [each for each in Reason if each not in RARE or any(row[each] for row in document["missing"])]
    yield "group", [[row[each] for each in statuses] for row in document["byGroup"]]
    yield "age", [[row[each] for each in statuses[1:]] for row in document["ages"]]
    yield "missing", [[row[each] for each in kept] for row in document["missing"]]


def _of_page(page, document, language):
    """The figures that stand in the page: status, cards, charts, problems, who acts, and the lengths of lists."""

    def numbers(text, pattern):
        found = re.findall(rf"{pattern}\s*(?:<a[^>]*>)?([\d.,]+)", text)
        return [int(re.sub(r"\D", "", each)) for each in found]

    rows, listed, say = document["rows"], _listed(document), language.text
    legend = re.search(r'<ul class="legend">(.*?)</ul>', page, re.DOTALL)[1]
    given = [document[status] for status in ("compliant", "incomplete", "conflict")]
    yield "page, legend", numbers(legend, "<b>"), given
    cards = re.search(r'<section class="cards".*?</section>', page, re.DOTALL)[0]
    pieces = [piece["reason"] for row in rows for piece in row["missing"]]
    unexamined = sum(row["unexamined"] for row in listed)
    figures = [_having(rows, "COMPLETED_WITHOUT_EVIDENCE"), max(row["ageDays"] for row in rows), len(pieces)]
    yield "page, cards", numbers(cards, '<p class="figure">'), [*figures, unexamined]
    yield "page, never requested", numbers(cards, "<br>"), [pieces.count("NEVER_REQUESTED")]
    for name, counts in _charts(document):
        chart = re.search(rf'<figure class="chart chart-{name}">.*?</figure>', page, re.DOTALL)[0]
        told = [numbers(row, '<td class="count[^"]*">') for row in re.findall("<tr>.*?</tr>", chart, re.DOTALL)]
        yield f"page, chart {name}", told[1:], counts
    problems = re.search(r'<figure class="chart chart-troubles">.*?</figure>', page, re.DOTALL)
    counts = [each["sales"] for each in document["problems"] if each["sales"]]
    yield "page, problems", problems and numbers(problems[0], '<span class="figure">'), counts or None
    standing = [each for each in document["findings"] if each["status"] in STANDING]
    owners = Counter()
    for sale, owner in {(each["saleId"], each["owner"]) for each in standing if each["saleId"]}:
        owners[say(OWNER_NAMES.get(owner, owner))] += sale is not None
    acting = re.search(r'<dl class="acting">.*?</dl>', page, re.DOTALL)
    waiting = re.findall(r"<span>([^<]+?) <a[^>]*>(\d+)</a></span>", acting[0]) if acting else []
    yield "page, who acts", {unescape(name): int(number) for name, number in waiting}, dict(owners)
    late = {each["saleId"] for each in standing if each["overdue"] and each["saleId"]}
    told = numbers(acting[0], rf"{say('Sales with an overdue finding')}</dt><dd><span>") if acting else []
    yield "page, overdue", told, [len(late)] * bool(late)
    lists = dict(re.findall(r'<a href="#([\w-]+)">[^<]+</a> <small>([\d.,]+)</small>', page))
    given = {"open": standing, "waivers": document["waivers"]}
    given |= {"withdrawals": document["withdrawals"], "partners": document["partners"]}
    for name, each in given.items():
        yield f"page, list {name}", int(lists.get(name, 0)), len(each)


def _of_pdf(path, document, language):
    """The figures of all pages: the totals, the cards and the numbers of charts, row by row; who is listed."""
    text = "\n".join(page.extract_text() for page in PdfReader(path).pages)
    rows, say = document["rows"], language.text
    statuses = Counter(row["status"] for row in rows)
    names = {"incomplete": language.count("incomplete", "incomplete", statuses["incomplete"])}
    for status, name in (names | {"conflict": say("in conflict")}).items():
        found = re.search(rf"(\d+) {name} \d+%", text)
        yield f"PDF {status}", found and int(found[1]), statuses[status]
    completed = _having(rows, "COMPLETED_WITHOUT_EVIDENCE")
    for name, given in {
        language.count("completed without evidence", "completed without evidence", completed): completed,
        say("days since the oldest open sale was created"): max(row["ageDays"] for row in rows),
        say("pieces missing"): sum(len(row["missing"]) for row in rows),
        say("files not examined"): sum(row["unexamined"] for row in _listed(document)),
    }.items():
        found = re.search(rf"^(\d+)\n{name.split()[0]}\b", text, re.MULTILINE)
        yield f"PDF {name}", found and int(found[1]), given
    for name, counts in _charts(document):
        told = [f"(?:^| ){' '.join(map(language.number, row))}$" for row in counts]
        yield f"PDF, chart {name}", bool(re.search(r"(?:\n.*)*?".join(told), text, re.MULTILINE)), True
    words = {"incomplete": "incomplete", "conflict": "in conflict"}
    told = [[row["saleId"], row["utilityGroup"], say(words[row["status"]])] for row in rows]
    counts = ("sales", "compliant", "incomplete", "conflict", "findings", "overdue", "waived")
    for board in document["partners"]:
        told.append([board["partner"] or say("no partner"), *(language.number(board[each]) for each in counts)])
    text = "".join(text.split()).replace("\u200b", "")
    yield "PDF, sales and partners", [each for each in told if "".join("".join(each).split()) not in text], []


def _listed(document):
    """Every sale that a list of the report has, once."""
    names = ("rows", "warnings", "unverified")
    return list({row["saleId"]: row for name in names for row in document[name]}.values())


def _having(rows, problem):
    return sum(problem in row["problems"] for row in rows)


def everything_in(path):
    """The parts of a workbook, the objects, streams and texts of a PDF, the packed data of a page."""
    if path.suffix == ".xlsx":
        with ZipFile(path) as parts:
            texts = (parts.read(name).decode("utf-8", "replace") for name in parts.namelist())
            return "\n".join([*parts.namelist(), *texts])
    if path.suffix == ".pdf":
        return _objects_of(path)
    return _PACKED.sub(lambda packed: _unpacked(packed[0]), path.read_text(encoding="utf-8"))


def packed_data(page):
    """The sales that a page holds packed: its columns with their cells."""
    packed = _PACKED.search(page)
    assert packed
    return json.loads(_unpacked(packed[0]))


def packed_cases(page):
    """The records, events and findings of its first sales by the place of the sale."""
    cases = defaultdict(lambda: {"records": [], "events": [], "findings": []})
    for packed in _PACKED.findall(page)[1:]:
        for name, columns in json.loads(_unpacked(packed)).items():
            for values in zip(*columns.values(), strict=True):
                row = dict(zip(columns, values, strict=True))
                cases[row["sale"]][name].append(row)
    return cases


_PACKED = re.compile('(?<= type="text/plain">)[^<]+')


def _unpacked(packed):
    return zlib.decompress(base64.b64decode(packed), -zlib.MAX_WBITS).decode("utf-8")


def _objects_of(path):
    reader = PdfReader(path)
    found = [repr(reader.metadata), *(page.extract_text() for page in reader.pages)]
    for number in range(1, int(reader.trailer["/Size"])):
        each = IndirectObject(number, 0, reader).get_object()
        found.append(repr(each))
        if isinstance(each, StreamObject):
            found.append(each.get_data().decode("latin-1"))
    return "\n".join(found)
