"""Write a report into its folder as a whole, keep it when the next one is written, and verify it later.

``manifest.json`` names every file of the report with its size and SHA-256, and the totals. The newest report
lies in the folder itself, earlier ones beneath it in ``history/<moment>``.
"""

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import file_digest
from itertools import count
from pathlib import Path
from typing import Any, Final

from toolkit.atomic_files import PrivateFolder
from toolkit.contract.fields import pick_camel
from toolkit.contract.findings import REPORT
from toolkit.errors import ReportError
from toolkit.log.bundle import BUNDLE, LATER, Witness, proven
from toolkit.progress import Progress
from toolkit.reports.report import Report, iso, iso_exact

MANIFEST: Final = "manifest.json"
HISTORY: Final = "history"

_AT_ONCE: Final = 2
"""Formats that are written at the same time: much of a workbook is made without Python, others with it."""

Writer = Callable[[Report, Path], None]


def write_files(
    report: Report,
    out: Path,
    writers: Mapping[str, Writer],
    progress: Progress | None = None,
    witness: Witness | None = None,
) -> list[Path]:
    """Write one file for each format into ``out``, then the manifest; an earlier report is moved beneath it.

    The ``witness`` is told of the files as they are; the manifest carries the root that it gives, and the files
    that prove it lie beside those of the report.

    Everything is written aside first and moved to its place then, so a failure leaves what was there. Files
    with whole CPFs can be read by their owner only.

    Raises:
        ReportError: the folder cannot be made or written.
    """
    names = [*map(report.file_name, writers)]
    told = progress or Progress()
    try:
        folder = PrivateFolder(out)
        draft = folder.path
        try:
            told.begin("Writing the report", len(names), "files")
            with ThreadPoolExecutor(_AT_ONCE) as threads:
                for _ in threads.map(lambda name, write: write(report, draft / name), names, writers.values()):
                    told.advance(1)
            told.end()
            digests = {name: _digest(draft / name) for name in names}
            seal, beside = (None, {}) if witness is None else proven(witness, digests, digests)
            for name, content in beside.items():
                (draft / name).write_bytes(content)
            _write_manifest(report, draft, digests, seal)
            _keep_earlier(out)
            for name in (*names, *beside, MANIFEST):
                if report.result.cpf_shown:
                    (draft / name).chmod(0o600)
                (draft / name).replace(out / name)
        finally:
            folder.remove()
    except OSError as error:
        raise ReportError("The report cannot be written to {}: {}", out, error.strerror or error) from error
    return [out / name for name in names]


def _keep_earlier(out: Path) -> None:
    """Move the report in a folder, if there is one, beneath it."""
    try:
        recorded, moment = _recorded(out)
    except ReportError:
        return
    name = f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}"  # sorts by time
    places = (out / HISTORY / (name if number == 1 else f"{name}-{number}") for number in count(1))
    place = next(place for place in places if not place.exists())
    place.mkdir(parents=True)
    for each in (*recorded, *BUNDLE, *LATER, MANIFEST):
        if (out / each).is_file():
            (out / each).replace(place / each)


def _write_manifest(report: Report, folder: Path, digests: Mapping[str, str], seal: str | None) -> None:
    result = report.result
    document: dict[str, Any] = {
        "report": REPORT,
        "asOf": iso_exact(result.as_of, report.timezone),
        **pick_camel(result, "partner", "cpf_shown"),
        "madeAt": iso(result.made_at, report.timezone),
        **pick_camel(result, "sales", "compliant", "incomplete", "conflict", "coverage"),
        "verifiedFirst": result.verified_first if result.of_now else None,
        **pick_camel(result.source, "toolkit", "rules", "embedded"),
        "custodySeal": seal,
        "files": [
            {"name": name, "bytes": (folder / name).stat().st_size, "sha256": sha256}
            for name, sha256 in digests.items()
        ],
    }
    (folder / MANIFEST).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


class FileState(StrEnum):
    """The state of a file compared with the report as it was written."""

    AS_WRITTEN = "as written"
    CHANGED = "changed"
    MISSING = "missing"
    ADDED = "added"


def verify_reports(folder: Path) -> dict[Path, FileState]:
    """Compare every report in a folder and beneath it with its manifest, also earlier ones.

    Only files that are called like those of a report can be *added*; what else lies there is no part of it.

    Raises:
        ReportError: there is no report at all, or a manifest cannot be read.
    """
    found: dict[Path, FileState] = {}
    for place in sorted(path.parent for path in folder.rglob(MANIFEST)) or [folder]:
        recorded, _ = _recorded(place)
        found |= {place / name: _state(place / name, sha256) for name, sha256 in recorded.items()}
    present = sorted(path for path in folder.rglob(f"{REPORT}*") if path.is_file())
    return found | dict.fromkeys((path for path in present if path not in found), FileState.ADDED)


def _state(path: Path, recorded: str) -> FileState:
    if not path.is_file():
        return FileState.MISSING
    return FileState.AS_WRITTEN if _digest(path) == recorded else FileState.CHANGED


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _recorded(folder: Path) -> tuple[dict[str, str], datetime]:
    """Return the digest of each file that the manifest of a folder names, and the moment of the report."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        recorded = {str(file["name"]): str(file["sha256"]) for file in manifest["files"]}
        moment = datetime.fromisoformat(manifest["asOf"])
    except FileNotFoundError:
        raise ReportError("There is no report in {}: it holds no {}", folder, MANIFEST) from None
    except OSError as error:
        raise ReportError("{} cannot be read: {}", path, error.strerror or error) from error
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ReportError("{} is not the manifest of a report", path) from None
    if any(Path(name).name != name or not name.startswith(REPORT) for name in recorded):
        raise ReportError("{} names files outside its folder", path)
    return recorded, moment
