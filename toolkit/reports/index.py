"""``index.html``: the reports that a folder has kept, newest first, with the trend and links to all of them."""

from pathlib import Path
from typing import Any

from toolkit.reports.charts import segments
from toolkit.reports.earlier import Kept, reports_in
from toolkit.reports.report import Report
from toolkit.reports.web_page import asset, hashed, template
from toolkit.reports.wording import STATUS_NAMES, TITLE, told


def write(report: Report, folder: Path, path: Path) -> None:
    """Write the index of the reports in ``folder`` to ``path``."""
    found, style = reports_in(folder), asset("page.css")
    most = max((sum(each.counts.values()) for each in found), default=0)
    context = {
        "language": report.language.code,
        "title": report.language.text(TITLE),
        "style": style,
        "policy": (
            f"default-src 'none'; style-src {hashed(style)}; img-src data:; base-uri 'none'; form-action 'none'"
        ),
        "statuses": told(STATUS_NAMES, report.language),
        "reports": [_line(each, report, most) for each in found],
    }
    template("index.html.j2", report.language.code).stream(context).dump(str(path), encoding="utf-8")


def _line(kept: Kept, report: Report, most: int) -> dict[str, Any]:
    return {
        "moment": report.language.moment(kept.as_of, report.timezone),
        "segments": segments(kept.counts, most),
        "sales": sum(kept.counts.values()),
        "files": [{"path": path, "format": path.rpartition(".")[2].upper()} for path in kept.files],
    }
