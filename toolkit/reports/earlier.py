"""Keep the earlier reports of a folder beneath it, and list all of them, newest first, in its ``index.html``."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import file_digest
from itertools import count
from pathlib import Path
from typing import Any, Final

from toolkit.domain.report_cells import REPORT
from toolkit.reports.charts import segments
from toolkit.reports.report import Report
from toolkit.reports.web_page import asset, hashed, template
from toolkit.reports.wording import STATUS_NAMES, TITLE, told

MANIFEST: Final = "manifest.json"
INDEX: Final = "index.html"
HISTORY: Final = "history"


@dataclass(frozen=True, slots=True)
class Kept:
    """A report that lies in a folder: its moment, its totals by status and where its files are."""

    as_of: datetime
    counts: dict[str, int]
    files: tuple[str, ...]
    """Paths from the folder of the newest report."""


def moment_name(moment: datetime) -> str:
    """``20261120T210000Z``, the name of a moment that sorts by time."""
    return moment.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def keep_earlier(out: Path, names: Sequence[str], identity: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Make room for a report: move the one before beneath the folder, where it is about another moment or partner.

    A report of the same stays, and so do its files of other formats: the list of them is returned for the
    new manifest. A file that somebody changed is moved before another one takes its place.
    """
    manifest = read_manifest(out)
    if manifest is None:
        return []
    files = [each for each in manifest["files"] if (out / each["name"]).is_file()]
    earlier = moment_name(datetime.fromisoformat(manifest["asOf"]))
    if any(manifest.get(name) != value for name, value in identity.items()):
        _move(out, [*(each["name"] for each in files), MANIFEST], earlier)
        return []
    changed = [each["name"] for each in files if digest(out / each["name"]) != each["sha256"]]
    _move(out, [name for name in changed if name in names], earlier)
    return [each for each in files if each["name"] not in names]


def reports_in(folder: Path) -> list[Kept]:
    """Return the reports in a folder and beneath it, the newest moment first."""
    places = [folder, *sorted((folder / HISTORY).glob("*/"))]
    return sorted(_kept(folder, places), key=lambda each: each.as_of, reverse=True)


def write_index(report: Report, folder: Path, path: Path) -> None:
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


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest of a folder, ``None`` where there is none that can be understood."""
    try:
        found: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        datetime.fromisoformat(found["asOf"])
        names = [Path(each["name"]) for each in found["files"] if each["sha256"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if all(name.name == str(name) and str(name).startswith(REPORT) for name in names) else None


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _move(out: Path, names: Sequence[str], moment: str) -> None:
    if not names:
        return
    for number in count(1):
        place = out / HISTORY / (moment if number == 1 else f"{moment}-{number}")
        if not place.exists():
            break
    place.mkdir(parents=True)
    for name in names:
        (out / name).replace(place / name)


def _kept(folder: Path, places: Sequence[Path]) -> Iterator[Kept]:
    for place in places:
        manifest = read_manifest(place)
        if manifest is not None:
            counts = {name: int(manifest.get(name, 0)) for name in ("compliant", "incomplete", "conflict")}
            files = [place / each["name"] for each in manifest["files"]]
            listed = tuple(path.relative_to(folder).as_posix() for path in files if path.is_file())
            yield Kept(datetime.fromisoformat(manifest["asOf"]), counts, listed)
