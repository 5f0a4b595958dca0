"""Write a report into its folder as a whole, keep it when the next one is written, and verify it later.

``manifest.json`` names every file of the report with its size and SHA-256, and the totals. The newest report
lies in the folder itself, earlier ones beneath it in ``history/<moment>``; ``index.html`` leads to all of them.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import file_digest
from itertools import count
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from toolkit.message import Message
from toolkit.atomic_files import PrivateFolder
from toolkit.contract.fields import named
from toolkit.contract.findings import REPORT
from toolkit.errors import ReportError
from toolkit.progress import Progress, Quiet
from toolkit.reports.page import asset, hashed, segments, template
from toolkit.reports.report import Report, iso, iso_exact
from toolkit.reports.wording import STATUS_NAMES, told

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
        "title": report.title,
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
        "segments": segments(kept.counts, most, report.language),
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


Writer = Callable[[Report, Path], None]


class FileState(StrEnum):
    """The state of a file compared with the report as it was written."""

    AS_WRITTEN = "as written"
    CHANGED = "changed"
    MISSING = "missing"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class VerifiedFile:
    """One file of a report's folder."""

    name: str
    state: FileState


Witness = Callable[[Mapping[str, str]], str | None]
"""Notes the SHA-256 of each file of a report, and returns the custody seal that covers it, if any."""


def write_files(
    report: Report,
    out: Path,
    writers: Mapping[str, Writer],
    progress: Progress | None = None,
    witness: Witness | None = None,
) -> list[Path]:
    """Write one file for each format into ``out``, then the manifest, and the index last.

    The ``witness`` is told of the files as they are, and the manifest carries the seal that it gives.

    Everything is written aside first and moved to its place then, so a failure leaves what was there. Files
    with whole CPFs can be read by their owner only.

    Raises:
        ReportError: the folder cannot be made or written.
    """
    names = [*map(report.file_name, writers)]
    told = progress or Quiet()
    try:
        folder = PrivateFolder(out)
        draft = folder.path
        try:
            for name, write in zip(names, writers.values(), strict=True):
                told.begin(Message("Writing {}", name), 100, "%")
                write(replace(report, tell=_percents(told)), draft / name)
                told.end()
                pa.default_memory_pool().release_unused()  # for the next format
            kept = keep_earlier(out, names, _identity(report))
            seal = witness({name: digest(draft / name) for name in names}) if witness is not None else None
            _write_manifest(report, draft, names, kept, seal)
            for name in (*names, MANIFEST):
                if report.result.cpf_shown:
                    (draft / name).chmod(0o600)
                (draft / name).replace(out / name)
            write_index(report, out, draft / INDEX)
            (draft / INDEX).replace(out / INDEX)
        finally:
            folder.remove()
    except OSError as error:
        raise ReportError("The report cannot be written to {}: {}", out, error.strerror or error) from error
    return [out / name for name in names]


def _percents(told: Progress) -> Callable[[float], None]:
    done = 0

    def tell(share: float) -> None:
        nonlocal done
        told.advance(round(100 * share) - done)
        done = round(100 * share)

    return tell


def verify_files(folder: Path) -> list[VerifiedFile]:
    """Compare the files of a report with its manifest.

    Only files that are called like those of a report can be *added*; what else lies in the folder is no part
    of the report.

    Raises:
        ReportError: there is no manifest, or it cannot be read.
    """
    recorded = _recorded(folder)
    present = {path.name for path in folder.iterdir() if path.is_file()}
    found = [VerifiedFile(name, _state(folder / name, sha256)) for name, sha256 in recorded.items()]
    added = sorted(name for name in present - recorded.keys() if name.startswith(REPORT))
    return found + [VerifiedFile(name, FileState.ADDED) for name in added]


def verify_reports(folder: Path) -> list[tuple[Path, list[VerifiedFile]]]:
    """Compare every report in a folder and beneath it with its manifest, also earlier ones.

    A file beneath it that is called like one of a report, and stands beside no manifest, is *added*.

    Raises:
        ReportError: there is no report at all, or a manifest cannot be read.
    """
    beneath = sorted(path.parent for path in folder.rglob(MANIFEST))
    places = beneath or [folder]
    found = [(place, verify_files(place)) for place in places]
    strays = sorted(path for path in folder.rglob(f"{REPORT}*") if path.is_file() and path.parent not in places)
    return [*found, *((path.parent, [VerifiedFile(path.name, FileState.ADDED)]) for path in strays)]


def _state(path: Path, recorded: str) -> FileState:
    if not path.is_file():
        return FileState.MISSING
    return FileState.AS_WRITTEN if digest(path) == recorded else FileState.CHANGED


def _identity(report: Report) -> dict[str, Any]:
    """Return the contents of a report: two with the same are one, in other formats perhaps."""
    result = report.result
    as_of = iso_exact(result.as_of, report.timezone)
    return {"asOf": as_of, "partner": result.partner, "cpfShown": result.cpf_shown}


def _write_manifest(
    report: Report, folder: Path, names: list[str], kept: list[dict[str, Any]], seal: str | None
) -> None:
    result = report.result
    document: dict[str, Any] = {
        "report": REPORT,
        **_identity(report),
        "madeAt": iso(result.made_at, report.timezone),
        **named(result, "sales", "compliant", "incomplete", "conflict", "coverage"),
        "verifiedFirst": result.verified_first if result.of_now else None,
        **named(result.source, "toolkit", "rules", "embedded"),
        "custodySeal": seal,
        "files": [
            {"name": name, "bytes": (folder / name).stat().st_size, "sha256": digest(folder / name)}
            for name in names
        ]
        + kept,
    }
    (folder / MANIFEST).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _recorded(folder: Path) -> dict[str, str]:
    """Return the digest of each file that the manifest names."""
    path = folder / MANIFEST
    try:
        files = json.loads(path.read_text(encoding="utf-8"))["files"]
        recorded = {str(file["name"]): str(file["sha256"]) for file in files}
    except FileNotFoundError:
        raise ReportError("There is no report in {}: it holds no {}", folder, MANIFEST) from None
    except OSError as error:
        raise ReportError("{} cannot be read: {}", path, error.strerror or error) from error
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ReportError("{} is not the manifest of a report", path) from None
    if any(Path(name).name != name for name in recorded):
        raise ReportError("{} names files outside its folder", path)
    return recorded
