"""Write a report into its folder as a whole, verify it later, and keep it when the next one is written.

``manifest.json`` names every file of the report with its size and SHA-256, and the totals. The newest report
lies in the folder itself, earlier ones beneath it in ``history/<moment>``; ``index.html`` leads to all of them.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import pyarrow as pa

from toolkit.domain.documents import named
from toolkit.domain.report_cells import REPORT
from toolkit.errors import ReportError
from toolkit.operations.private_folder import PrivateFolder
from toolkit.operations.progress import Progress, Quiet
from toolkit.reports.earlier import INDEX, MANIFEST, digest, keep_earlier, write_index
from toolkit.reports.report import Report
from toolkit.reports.times import iso, iso_exact

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
    names = [f"{REPORT}.{each}" for each in writers]
    told = progress or Quiet()
    try:
        folder = PrivateFolder(out)
        draft = folder.path
        try:
            for name, write in zip(names, writers.values(), strict=True):
                told.begin(f"Writing {name}", 100, "%")
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
        raise ReportError(f"The report cannot be written to {out}: {error.strerror or error}") from error
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
        "verifiedFirst": result.verification is not None if result.of_now else None,
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
        raise ReportError(f"There is no report in {folder}: it holds no {MANIFEST}") from None
    except OSError as error:
        raise ReportError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ReportError(f"{path} is not the manifest of a report") from None
    if any(Path(name).name != name for name in recorded):
        raise ReportError(f"{path} names files outside its folder")
    return recorded
