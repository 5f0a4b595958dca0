"""``missing-evidence.html``: one page that needs nothing else, for people.

Style and script stand in the page, and its content policy names them by their hashes: nothing else runs and
nothing is fetched, whatever the data hold. Jinja escapes every value.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from toolkit.domain.codes import CODES, names_of
from toolkit.domain.evidence import EvidenceType
from toolkit.domain.findings import Problem, Reason
from toolkit.domain.integrity import IntegrityProblem
from toolkit.operations.judge.audit.expression import items
from toolkit.reports import wording
from toolkit.reports.charts import charts, shares
from toolkit.reports.report import STEM, Report, known, tuples
from toolkit.reports.times import offset, readable

ROWS_SHOWN: Final = 2000
"""Sales in the table of the page, so that a browser stays quick; the other formats hold all of them."""


FILE_FINDINGS_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class Piece:
    """A missing piece in words."""

    code: str
    name: str
    reason: str
    reason_name: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """A problem in words."""

    code: str
    name: str
    text: str
    severity: str
    sales: int = 0


@dataclass(frozen=True, slots=True)
class Line:
    """A sale in the table."""

    sale_id: str
    group: str
    status: str
    pieces: tuple[Piece, ...]
    troubles: tuple[Trouble, ...]
    counted: tuple[str, ...]
    partner: str
    cpf: str
    days: int
    created: str
    completed: str


def write(report: Report, path: Path) -> None:
    """Write the page."""
    _page().stream(_context(report)).dump(str(path), encoding="utf-8")


@cache
def _page() -> Template:
    environment = Environment(
        loader=PackageLoader("toolkit.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = lambda number: f"{number:,}"
    environment.filters["breakable"] = lambda code: Markup("_<wbr>").join(code.split("_"))
    return environment.get_template("page.html.j2")


def _context(report: Report) -> dict[str, Any]:
    result = report.result
    style, script = _asset("page.css"), _asset("page.js")
    return {
        "title": wording.TITLE,
        "headline": wording.headline(result),
        "as_of": readable(result.as_of, report.timezone),
        "zone": report.timezone.key,
        "offset": offset(result.as_of, report.timezone),
        "notices": wording.notices(result),
        "result": result,
        "oldest": int(result.rows["ageDays"].max()) if result.open else 0,
        "pieces": int(result.missing[list(Reason)].to_numpy().sum()),
        "never_requested": int(result.missing[Reason.NEVER_REQUESTED].sum()),
        "shares": shares(result),
        "charts": charts(result),
        "troubles": [_trouble(row.problem, row.sales) for row in tuples(result.problems) if row.sales],
        "lines": _lines(result.rows.head(ROWS_SHOWN), report.timezone),
        "shown": min(len(result.rows), ROWS_SHOWN),
        "file_findings": result.file_findings[:FILE_FINDINGS_SHOWN],
        "file_finding_names": names_of(IntegrityProblem),
        "files": [f"{STEM}.{each}" for each in report.formats if each != "html"],
        "glossary": wording.GLOSSARY,
        "codes": wording.MEANINGS,
        "types": {each: wording.TYPE_NAMES[EvidenceType(each)] for each in result.missing["evidenceType"]},
        "reasons": names_of(Reason),
        "problems": names_of(Problem),
        "provenance": wording.provenance(result, report.timezone),
        "style": style,
        "script": script,
        "policy": (
            f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; "
            "img-src data:; base-uri 'none'; form-action 'none'"
        ),
    }


def _asset(name: str) -> Markup:
    """A file that is part of the toolkit, to stand in the page as it is."""
    text = files("toolkit.reports").joinpath("templates", name).read_text(encoding="utf-8")
    return Markup(f"\n{text}")  # noqa: S704  # our own file, and the policy names its hash


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


def _lines(rows: pd.DataFrame, timezone: ZoneInfo) -> Iterator[Line]:
    for row in tuples(known(rows)):
        yield Line(
            sale_id=row.saleId,
            group=row.utilityGroup,
            status=row.status,
            pieces=tuple(_piece(*each) for each in zip(items(row.missing), items(row.reasons), strict=True)),
            troubles=tuple(_trouble(each) for each in items(row.problems)),
            counted=tuple(items(row.counted)),
            partner=row.partner or "",
            cpf=row.cpf or "",
            days=row.ageDays,
            created=_minute(row.createdAt, timezone),
            completed=_minute(row.completedAt, timezone),
        )


def _minute(moment: Any, timezone: ZoneInfo) -> str:
    return f"{moment.astimezone(timezone):%Y-%m-%d %H:%M}" if moment is not None else ""


def _piece(code: str, reason: str) -> Piece:
    return Piece(code, wording.TYPE_NAMES[EvidenceType(code)], reason, CODES[reason].name)


def _trouble(code: str, sales: int = 0) -> Trouble:
    known_code = CODES[code]
    return Trouble(code, known_code.name, known_code.meaning, str(known_code.severity), sales)
