"""``missing-evidence.html``: one page that needs nothing else, for people.

It holds every sale that is not compliant: packed, for the grid that the page's script draws, and the first ones as
a plain table, for readers without it. Style and script stand in the page, and its content policy names them by
hashes: nothing else runs and nothing is fetched, whatever the data hold. Jinja escapes every value.
"""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from toolkit.domain.evidence import UtilityGroup
from toolkit.domain.finding_life import FindingStatus
from toolkit.domain.findings import Reason, Status
from toolkit.domain.report_cells import REPORT, items
from toolkit.domain.rules import Sale, requirements
from toolkit.language import language as language_of
from toolkit.operations.judge.audit.census import AGE_BANDS, OLDER, UNKNOWN_GROUP
from toolkit.reports import web_cases, web_data, wording
from toolkit.reports.charts import charts, shares
from toolkit.reports.lists import BESIDE
from toolkit.reports.notices import headline, notices, provenance
from toolkit.reports.page_words import NOBODY, filters, page_words, script_words
from toolkit.reports.report import Report, tuples
from toolkit.reports.sections import Cell, Section, cell_text, section
from toolkit.reports.times import told_detail
from toolkit.reports.wording import told

STATIC_ROWS: Final = 100
"""Sales in the plain table; the grid has all of them."""

PRINTED_ROWS: Final = 2000
"""Sales that the page prints; it says so where there are more."""

SECTION_ROWS: Final = 200
"""Rows of each list below the sales; the workbook has all of them."""

_NEVER: Final = np.datetime64("9999-12-31", "us")

_PAYERS: Final = {"true": True, "false": False, "": None}
"""``isClientFinancialResponsible`` as the cells of the page write it."""

_SCRIPTS: Final = ("page_data.js", "page_view.js", "page_grid.js", "page_sale.js", "page_case.js", "page.js")


def write(report: Report, path: Path) -> None:
    """Write the page."""
    template("page.html.j2", report.language.code).stream(_context(report)).dump(
        str(path), encoding="utf-8", errors="replace"
    )


@cache
def template(name: str, code: str) -> Template:
    """Return a template of the package in a language."""
    language = language_of(code)
    environment = Environment(
        loader=PackageLoader("toolkit.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: wording.unturned(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
    )
    environment.install_gettext_translations(language.translations, newstyle=True)  # type: ignore[attr-defined]
    environment.filters["number"] = language.number
    environment.filters["listed"] = items
    environment.filters["percent"] = lambda share: language.percent(share / 100)
    environment.filters["breakable"] = lambda code: Markup("_<wbr>").join(code.split("_"))
    return environment.get_template(name)


def _context(report: Report) -> dict[str, Any]:
    result, language = report.result, report.language
    style, script = asset("page.css"), asset(*_SCRIPTS)
    return {
        "language": language.code,
        "title": language.text(wording.TITLE),
        "headline": headline(result, language),
        "as_of": language.moment(result.as_of, report.timezone),
        "zone": report.timezone.key,
        "notices": notices(result, language, report.timezone),
        "result": result,
        "oldest": int(result.rows["ageDays"].max()) if result.open else 0,
        "pieces": int(result.missing[list(Reason)].to_numpy().sum()),
        "never_requested": int(result.missing[Reason.NEVER_REQUESTED].sum()),
        "shares": shares(result),
        "charts": charts(result, language),
        "troubles": [(row.problem, row.sales) for row in tuples(result.problems) if row.sales],
        "lines": tuples(result.rows.head(STATIC_ROWS)),
        "day": lambda moment: language.day(moment.astimezone(report.timezone).date()),
        "shown": min(len(result.rows), STATIC_ROWS),
        "filters": filters(report),
        "sections": [_section(name, section(each, report)) for name, each in BESIDE.items()],
        "files": [f"{REPORT}.{each}" for each in report.formats if each != "html"],
        "words": page_words(language),
        "glossary": {language.text(word): language.text(text) for word, text in wording.GLOSSARY.items()},
        "codes": told(wording.MEANINGS, language),
        "provenance": provenance(result, report.timezone, language),
        "listed": len(result.told),
        "data": _packed(report) if len(result.told) else "",
        "cases": map(Markup, web_cases.blocks(report, lambda share: report.tell((1 + share) / 2))),
        "style": style,
        "script": script,
        "policy": (
            f"default-src 'none'; style-src {hashed(style)}; script-src {hashed(script)}; "
            "img-src data:; base-uri 'none'; form-action 'none'"
        ),
    }


def _section(name: str, of: Section) -> dict[str, Any]:
    """Return a list below the sales; sale ids and the figures of partners lead to the sales."""
    rows = [_cells(name, dict(zip(of.columns, row, strict=True)), of.report) for row in of.rows(SECTION_ROWS)]
    if name == "file-findings":
        found, told = of.report.result.file_findings, of.report.result.told["saleId"]
        listed = set(told[told.isin({sale_id for finding in found for sale_id in finding.sale_ids})])
        for cells, finding in zip(rows, found, strict=False):
            cells[0]["sales"] = {sale_id: sale_id in listed for sale_id in finding.sale_ids}
    about = {"title": of.title, "about": of.about, "headings": of.headings, "total": of.total}
    return {"name": name, "rows": rows, **about}


def _cells(name: str, row: Mapping[str, Cell], report: Report) -> list[dict[str, Any]]:
    links = _links(name, row, report)
    return [
        {
            "text": cell_text(cell, report),
            "number": cell if isinstance(cell, int | float) else None,
            "link": links.get(heading) if cell else None,
            "sales": {},
        }
        for heading, cell in row.items()
    ]


def _links(name: str, row: Mapping[str, Cell], report: Report) -> dict[str, dict[str, Any]]:
    """Return the filters that cells lead to, by their headings."""
    if name == "partners":
        own = {"partner": NOBODY if row["Partner"] == report.language.text("no partner") else row["Partner"]}
        return {
            "Partner": own if row["incomplete"] or row["in conflict"] else {},
            "incomplete": own | {"status": str(Status.INCOMPLETE)},
            "in conflict": own | {"status": str(Status.CONFLICT)},
            "Overdue": own | {"only": "overdue"},
        }
    return {"Sale": {"sale": row["Sale"]}} if "Sale" in row and name != "waivers" else {}


def _with_deadlines(report: Report) -> pd.DataFrame:
    """Return the sales behind the numbers, each with its next deadline and overdue findings."""
    findings, rows = report.result.life.findings, report.result.told
    standing = findings["status"].isin([str(FindingStatus.OPEN), str(FindingStatus.REOPENED)])
    own = findings.loc[standing, ["saleId", "dueAt", "overdue"]]
    at = pc.index_in(pa.array(own["saleId"], pa.large_string()), pa.array(rows["saleId"], pa.large_string()))
    known = at.is_valid().to_numpy(zero_copy_only=False)  # others are about sales that are no longer told
    at = at.drop_null().to_numpy()
    due = np.full(len(rows), _NEVER)
    np.minimum.at(due, at, own["dueAt"].to_numpy(dtype="datetime64[us]")[known])
    overdue = np.bincount(at[own["overdue"].to_numpy(dtype=bool)[known]], minlength=len(rows))
    return rows.assign(dueAt=pd.Series(due, rows.index).mask(due == _NEVER).dt.tz_localize("UTC"), overdue=overdue)


def _packed(report: Report) -> Iterator[Markup]:
    first_half = replace(report, tell=lambda share: report.tell(share / 2))
    pieces = web_data.packed(_data(report), _with_deadlines(report), first_half)
    return map(Markup, pieces)  # letters and digits of base64, too many to look through for others


def _data(report: Report) -> dict[str, Any]:
    """Return what the script of the page needs beside the sales: the words for codes, and the files."""
    result, payers = report.result, _PAYERS.items()
    return {
        "language": report.language.code,
        "asOf": report.language.moment(result.as_of, report.timezone),
        "words": page_words(report.language) | {"page": script_words(report.language)},
        "ages": [[band, last] for band, last in AGE_BANDS.items()],
        "older": OLDER,
        "months": [report.language.day(date(2000, month, 1)) for month in range(1, 13)],
        "unknownGroup": UNKNOWN_GROUP,
        "open": len(result.rows),
        "compliant": str(Status.COMPLIANT),
        "printed": PRINTED_ROWS,
        "notInCsv": ["dueAt", "overdue"],
        "rules": {
            group: {payer: [each.accepts for each in requirements(Sale(group, pays))] for payer, pays in payers}
            for group in UtilityGroup
        },
        "cases": {"sales": web_cases.SALES, "atOnce": web_cases.AT_ONCE},
        "fileFindings": [
            {"problem": each.problem, "sales": each.sale_ids, "folders": each.folders}
            | {"detail": told_detail(each.detail, report.language, report.timezone)}
            for each in result.file_findings
        ],
    }


def asset(*names: str) -> Markup:
    """Return files that are part of the toolkit, to stand in the page as they are."""
    folder = files("toolkit.reports").joinpath("templates")
    text = "".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)
    return Markup(f"\n{text}")  # noqa: S704  # our own files, and the policy names their hash


def hashed(text: str) -> str:
    """Return a text as a content policy names it."""
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"
