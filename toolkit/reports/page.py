"""``missing-evidence.html``: one page that needs nothing else, for people, with its charts.

It holds every sale that is not compliant: packed, for the grid that the page's script draws, and the first ones as
a plain table, for readers without it. Style and script stand in the page, and its content policy names them by
hashes: nothing else runs and nothing is fetched, whatever the data hold. Jinja escapes every value. A chart is a
table whose rows carry a bar: an SVG that stretches, its texts are texts of the page.

The page's script unpacks columns, whose times are local ones with their offset::

    {"name": "saleId",  "cells": ["S-1", null, ...]}
    {"name": "partner", "values": ["Norte", ...], "at": [0, -1, ...]}    where few values repeat; -1: nothing

and cases, in blocks that it unpacks when one of their sales is opened::

    {"records":  {"sale": [the place of its sale, ...], "id": [...], ... the columns of ``Audited.records``},
     "events":   {"sale": [...], "at": ["2026-11-20T18:00:00-03:00", ...], "kind": ["UPLOADED", ...],
                  "record": [the place of its record among those of the sale, ...]},
     "findings": {"sale": [...], "code": ["MISSING_POV", ...], "status": ["open", ...], "firstSeen": [...],
                  "dueAt": [...], "overdue": [false, ...],
                  "waiver": [{"end": "2026-12-31", "owner": "...", "approvedBy": "...", "reason": "..."}
                             or null, ...]}}
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import cache, partial
from hashlib import sha256
from importlib.resources import files
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from toolkit.audit.folder import CASES
from toolkit.contract.codes import names_of
from toolkit.contract.evidence import UtilityGroup
from toolkit.contract.fields import pick_camel
from toolkit.contract.findings import Reason, Status, items
from toolkit.contract.rules import Sale, requirements
from toolkit.language import Language
from toolkit.reports import wording
from toolkit.reports.audited import AGE_BANDS, OF_FINDINGS, OLDER, UNKNOWN_GROUP
from toolkit.reports.lists import Cell, Section, cell_text, sections_beside
from toolkit.reports.notices import acting, headline, notices, provenance
from toolkit.reports.report import TITLE, Report, iso, iso_column, tuples, worded_detail
from toolkit.reports.wording import names_in

WIDTH: Final = 100.0  # the width of the longest bar, in units of its drawing


def charts(report: Report) -> list[dict[str, Any]]:
    """Return three tables of bars; ``name`` and ``filter`` are the filters that lead from a number to its sales.

    ``columns`` has the name of each code that a segment of the ``bars`` can have.
    """
    result, language, say = report.result, report.language, report.language.text
    statuses, missing = names_in(wording.STATUS_NAMES, language), result.missing_shown
    return [
        {
            "name": "group",
            "filter": "status",
            "title": say("Status by utility group"),
            "about": say("All sales"),
            "heading": say("Group"),
            "columns": statuses,
            "bars": _bars(result.by_group, {UNKNOWN_GROUP: say("unknown")}, language),
        },
        {
            "name": "age",
            "filter": "status",
            "title": say("How long it has been open"),
            "about": say("Open sales, by days since they were created"),
            "heading": say("Days"),
            "columns": {status: name for status, name in statuses.items() if status != Status.COMPLIANT},
            "bars": _bars(result.ages, {}, language),
        },
        {
            "name": "missing",
            "filter": "reason",
            "title": say("What is missing, and why"),
            "about": say("Incomplete sales that lack each piece, by how far the best attempt at it got"),
            "heading": say("Evidence"),
            "columns": names_in(names_of(missing.columns[1:]), language),
            "bars": _bars(missing, names_in(wording.TYPE_NAMES, language), language),
        },
    ]


def shares(report: Report) -> list[dict[str, Any]]:
    """Return all sales as one bar, by status."""
    result, language = report.result, report.language
    bar = segments({str(status): getattr(result, status) for status in Status}, result.sales, language)
    names = (
        language.count("compliant", "compliant", result.compliant),
        language.count("incomplete", "incomplete", result.incomplete),
        language.text(wording.STATUS_NAMES[Status.CONFLICT]),
    )
    return [
        each | {"name": name, "percent": language.percent(each["length"] / WIDTH)}
        for each, name in zip(bar, names, strict=True)
    ]


def _bars(table: pd.DataFrame, names: Mapping[str, str], language: Language) -> list[dict[str, Any]]:
    """Return a bar for each row of a table of counts, named by its first column; the longest is full width."""
    _, *columns = table.columns
    rows = [*table.itertuples(index=False, name=None)]
    longest = max((sum(counts) for _, *counts in rows), default=0)
    return [
        {"code": code, "name": names.get(code, code)}
        | {"segments": segments(dict(zip(columns, counts, strict=True)), longest, language)}
        for code, *counts in rows
    ]


def segments(counts: Mapping[str, int], longest: int, language: Language) -> list[dict[str, Any]]:
    """Return counts as the pieces of one bar; ``longest`` is the count that has the full width."""
    found, start = [], 0.0
    for code, count in counts.items():
        length = WIDTH * int(count) / longest if longest else 0.0
        place = {"start": round(start, 3), "length": round(length, 3)}
        found.append({"code": str(code), "count": int(count), "text": language.number(int(count)), **place})
        start += length
    return found


STATIC_ROWS: Final = 100  # sales in the plain table; the grid has all of them
PRINTED_ROWS: Final = 2000  # sales that the page prints; it says so where there are more
SECTION_ROWS: Final = 200  # rows of each list below the sales; the workbook has all of them
_PIECES: Final = 500  # pieces of the page that are written at once
_SHORT: Final = 18  # characters that a cell does not wrap
_BREAK: Final = re.compile("(?<=[_@])")  # where a line may end within a code or an address

_PAYERS: Final = {"true": True, "false": False, "": None}
"""``isClientFinancialResponsible`` as the cells of the page write it."""

TABLE_SCRIPT: Final = "page_table.js"
SCRIPTS: Final = (
    *("page_data.js", "page_view.js", "page_grid.js", "page_sale.js", "page_case.js"),
    *(TABLE_SCRIPT, "page.js"),
)


def write(report: Report, path: Path) -> None:
    """Write the page."""
    text = _template(report.language).stream(_context(report))
    text.enable_buffering(_PIECES)
    text.dump(str(path), encoding="utf-8", errors="replace")


@cache
def _template(language: Language) -> Template:
    environment = Environment(
        loader=PackageLoader("toolkit.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: wording.escape_bidi(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
    )
    environment.install_gettext_translations(language.translations, newstyle=True)  # type: ignore[attr-defined]
    environment.filters["number"] = language.number
    environment.filters["listed"] = items
    environment.filters["named"] = names_in(wording.TYPE_NAMES, language).get
    environment.filters["breakable"] = lambda code: _linked(code, "")
    return environment.get_template("page.html.j2")


def _context(report: Report) -> dict[str, Any]:
    result, language = report.result, report.language
    style, script = asset("page.css") + _fills(), asset(*SCRIPTS)
    troubles = result.problems.loc[result.problems["sales"] > 0, ["problem", "sales"]]
    sections = [_list_below(*each) for each in sections_beside(report).items()]
    return {
        "language": language.code,
        "title": language.text(TITLE),
        "headline": headline(report),
        "as_of": report.as_of,
        "notices": notices(report),
        "result": result,
        "never_requested": int(result.missing[Reason.NEVER_REQUESTED].sum()),
        "shares": shares(report),
        "charts": charts(report),
        "troubles": [*troubles.itertuples(index=False, name=None)],
        "lines": tuples(result.rows.head(STATIC_ROWS)),
        "day": report.day,
        "shown": min(len(result.rows), STATIC_ROWS),
        "filters": wording.filters(report),
        "sections": sections,
        "contents": [(each["name"], each["title"], each["total"]) for each in sections if each["rows"]],
        "files": [report.file_name(each) for each in report.formats if each != "html"],
        "words": wording.page_words(language),
        "glossary": {language.text(word): language.text(text) for word, text in wording.GLOSSARY.items()},
        "codes": names_in(wording.MEANINGS, language),
        "provenance": provenance(report),
        "listed": len(result.listed),
        "acting": acting(report),
        "data": _harmless(_pieces(report)) if len(result.listed) else "",
        "cases": blocks(report),
        "style": style,
        "script": script,
        "policy": (
            f"default-src 'none'; style-src {hashed(style)}; script-src {hashed(script)}; "
            "img-src data:; base-uri 'none'; form-action 'none'"
        ),
    }


def _list_below(name: str, of: Section) -> dict[str, Any]:
    """Return a list below the sales, its rows as HTML; sale ids and the figures of partners lead to the sales."""
    report, rows = of.report, of.rows(SECTION_ROWS)
    cell_of = cache(partial(_cell, report))  # most cells stand in many rows
    lines = []
    for row in rows:
        links = _links(name, dict(zip(of.columns, row, strict=True)), report)
        lines.append([*map(cell_of, of.columns, row, links)])
    if name == "file-findings":
        ids, named = report.result.listed["saleId"], [each["saleIds"] for each in report.result.file_findings]
        listed = set(ids[ids.isin({*chain.from_iterable(named)})])
        for line, row, sales in zip(lines, rows, named, strict=False):
            if sales:
                links = [_linked(each, urlencode({"sale": each}) if each in listed else "") for each in sales]
                line[0] = _cell(report, next(iter(of.columns)), row[0], shown=Markup(", ").join(links))
    whole = sum(of.columns.values())
    widths = [f"{share / whole:.1%}" for share in of.columns.values()]
    counted = [isinstance(cell, int | float) for cell in rows[0]] if rows else []
    headings = [*zip(of.headings, counted, strict=False)]
    about = {"title": of.title, "about": of.about, "headings": headings, "widths": widths, "total": of.total}
    return {"name": name, "rows": [*map(_row, lines)], **about}


def _row(cells: Sequence[str]) -> Markup:
    """Return a row of HTML; whoever made its cells has escaped their texts."""
    first, *rest = cells
    lines = (f'<th scope="row"{first}</th>', *(f"<td{each}</td>" for each in rest))
    return Markup("      <tr>\n{}\n      </tr>\n".format("\n".join(f"        {each}" for each in lines)))  # noqa: S704


def _cell(report: Report, heading: str, cell: Cell, link: str = "", shown: str = "") -> str:
    """Return the attributes and the content of a cell, of which ``shown`` is HTML in place of its text."""
    text, value = cell_text(cell, report, heading), _order(heading, cell, report)
    kind = ' class="short"' if len(text) <= _SHORT else ""
    kind = ' class="count"' if isinstance(cell, int | float) else kind
    ordered = "" if value is None else f' data-value="{value}"'
    return f' data-label="{escape(report.language.text(heading))}"{kind}{ordered}>{shown or _linked(text, link)}'


def _linked(text: str, query: str) -> Markup:
    text = wording.escape_bidi(text)
    if query:
        return Markup('<a class="rows" href="#{}">{}</a>').format(query, text)
    return Markup("<wbr>").join(_BREAK.split(text))


def _order(heading: str, cell: Cell, report: Report) -> float | str | None:
    """Return what a cell is sorted by, where that is not its text."""
    weights = [*map(report.language.text, wording.SEVERITY_NAMES.values())] if heading == "Weight" else []
    if cell in weights:
        return weights.index(str(cell))
    return cell.isoformat() if isinstance(cell, date) else cell if isinstance(cell, int | float) else None


def _links(name: str, row: Mapping[str, Cell], report: Report) -> list[str]:
    """Return the filters that the cells of a row lead to, as queries."""
    links: dict[str, dict[str, Any]] = {}
    if name == "partners":
        nobody = row["Partner"] == report.language.text("no partner")
        own = {"partner": wording.NOBODY if nobody else row["Partner"]}
        links = {
            "Partner": own if row["incomplete"] or row["in conflict"] else {},
            "incomplete": own | {"status": str(Status.INCOMPLETE)},
            "in conflict": own | {"status": str(Status.CONFLICT)},
            "Overdue": own | {"only": "overdue"},
        }
    elif name not in {"changed-partners", "waivers"} and "Sale" in row:
        links = {"Sale": {"sale": row["Sale"]}}
    return [urlencode(links.get(heading, {})) if cell else "" for heading, cell in row.items()]


def _data(report: Report) -> dict[str, Any]:
    """Return what the script of the page needs beside the sales: the words for codes, and the files."""
    result, payers = report.result, _PAYERS.items()
    for_excel = report.excel or report.language.code == "pt-BR"  # for people, the CSV that the page saves
    sentences = wording.script_words(asset(*SCRIPTS), report.language)
    return {
        "language": report.language.code,
        "asOf": report.as_of,
        "offset": iso(result.facts.as_of, report.timezone)[-6:],
        "words": {**wording.page_words(report.language), "sentences": sentences},
        "ages": [[band, last] for band, last in AGE_BANDS.items()],
        "older": OLDER,
        "months": [report.language.day(date(2000, month, 1)) for month in range(1, 13)],
        "unknownGroup": UNKNOWN_GROUP,
        "open": len(result.rows),
        "compliant": str(Status.COMPLIANT),
        "printed": PRINTED_ROWS,
        "csv": {"delimiter": ";", "mark": "\ufeff"} if for_excel else {"delimiter": ",", "mark": ""},
        "notInCsv": OF_FINDINGS,
        "rules": {
            group: {payer: [each.accepts for each in requirements(Sale(group, pays))] for payer, pays in payers}
            for group in UtilityGroup
        },
        "cases": {"sales": CASES, "atOnce": AT_ONCE},
        "fileFindings": [
            {"problem": each["problem"], "sales": each["saleIds"], "folders": each["folders"]}
            | {"detail": worded_detail(each["detail"], report.language, report.timezone)}
            for each in result.file_findings
        ],
    }


@cache
def asset(*names: str) -> Markup:
    """Return files that are part of the toolkit, to stand in the page as they are."""
    folder = files("toolkit.reports").joinpath("templates")
    text = "".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)
    return Markup(f"\n{text}")  # noqa: S704  # our own files, and the policy names their hash


@cache
def _fills() -> Markup:
    light, dark = (
        "\n".join(
            f".fill-{code} {{ fill: {each[at]}; background: {each[at]}; }}"
            for code, each in wording.COLOURS.items()
        )
        for at in (0, 1)
    )
    return Markup(f"{light}\n@media screen and (prefers-color-scheme: dark) {{\n{dark}\n}}\n")  # noqa: S704  # ours


def hashed(text: str) -> str:
    """Return a text as a content policy names it."""
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


_LEVEL: Final = 4  # the level of compression: 6 takes twice as long for 3 % less


def _pieces(report: Report) -> Iterator[bytes]:
    """Yield the sales and what the script needs beside them as JSON: all of it takes more memory than the page."""
    rows = report.result.listed
    yield _json(_data(report)).removesuffix(b"}") + b',"columns":['
    for place, name in enumerate(rows.columns):
        yield b"," * (place > 0) + _json({"name": name} | _column(rows[name], report.timezone))
    yield b"]}"


def _harmless(pieces: Iterator[bytes]) -> str:
    """Return base64 of the deflated pieces, which means nothing in HTML."""
    deflate = zlib.compressobj(level=_LEVEL, wbits=-zlib.MAX_WBITS)
    return base64.b64encode(b"".join([*map(deflate.compress, pieces), deflate.flush()])).decode()


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _column(column: pd.Series[Any], timezone: ZoneInfo) -> dict[str, Any]:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return {"values": column.cat.categories.tolist(), "at": column.cat.codes.tolist()}
    if pd.api.types.is_datetime64_any_dtype(column):
        return {"cells": iso_column(column, timezone)}
    return {"cells": pa.array(column, from_pandas=True).to_pylist()}


AT_ONCE: Final = 250  # the sales of a block

_OF_FINDING: Final = ["saleId", "code", "status", "firstSeen", "dueAt", "overdue", "waiverId"]


def blocks(report: Report) -> Iterator[str]:
    """Yield the cases of the first sales of ``Audited.listed``, in its order: base64 of deflated JSON."""
    result, zone = report.result, report.timezone
    sale_ids = pa.array(result.listed["saleId"].head(CASES), pa.large_string())
    waivers = {
        str(each.id): pick_camel(each, "owner", "approved_by", "reason") | {"end": each.end.isoformat()}
        for each in result.waivers
    }
    all_findings = pa.Table.from_pandas(result.findings[_OF_FINDING], nthreads=1, preserve_index=False)
    parts = (
        _by_block(sale_ids, table, name)
        for table, name in ((result.records, "sale_id"), (result.events, "sale_id"), (all_findings, "saleId"))
    )
    for records, events, findings in zip(*parts, strict=True):
        firsts = np.searchsorted(records["sale"], events["sale"])
        places = pc.subtract(pc.index_in(events["evidence_id"], records["id"].combine_chunks()), pa.array(firsts))
        happened = {"at": _plain(events["happened_at"], zone), "kind": events["kind"].to_pylist()}
        held = {"waiver": [*map(waivers.get, findings["waiverId"].to_pylist())]}
        block = {
            "records": _columns(records, zone),
            "events": {"sale": events["sale"].to_pylist(), "record": places.to_pylist(), **happened},
            "findings": _columns(findings.drop_columns(["waiverId"]), zone) | held,
        }
        yield _harmless(iter([_json(block)]))


def _by_block(sale_ids: pa.Array, table: pa.Table, name: str) -> Iterator[pa.Table]:
    """Yield the rows of each block of sales in their order, the place of each one's ``sale`` for its id."""
    places = pc.index_in(table[name].cast(pa.large_string()), sale_ids)
    rows = table.drop_columns([name]).append_column("sale", places)
    order = pc.array_sort_indices(places.combine_chunks())[: len(places) - places.null_count]
    ends = np.searchsorted(places.take(order), range(0, len(sale_ids) + AT_ONCE, AT_ONCE))
    for first, end in pairwise(ends):
        yield rows.take(order[first:end])


def _columns(table: pa.Table, zone: ZoneInfo) -> dict[str, list[Any]]:
    return {name: _plain(table[name], zone) for name in table.column_names}


def _plain(column: pa.ChunkedArray, zone: ZoneInfo) -> list[Any]:
    return iso_column(column.combine_chunks(), zone) if pa.types.is_timestamp(column.type) else column.to_pylist()
