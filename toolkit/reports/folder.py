"""A report in its folder: written whole, and recognised later.

``manifest.json`` names every file of the report with its size and SHA-256. A folder holds one report; the
next one takes its place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import file_digest
from pathlib import Path
from typing import Any, Final

from toolkit.errors import ReportError
from toolkit.operations.private_folder import PrivateFolder
from toolkit.reports.report import STEM, Report
from toolkit.reports.times import iso

MANIFEST: Final = "manifest.json"

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


def write_files(report: Report, out: Path, writers: Mapping[str, Writer]) -> list[Path]:
    """Write one file for each format into ``out``, and the manifest last.

    Everything is written aside first and moved to its place then, so a failure leaves what was there. Files
    with whole CPFs can be read by their owner only.

    Raises:
        ReportError: the folder cannot be made or written.
    """
    names = [f"{STEM}.{each}" for each in writers]
    try:
        folder = PrivateFolder(out)
        draft = folder.path
        try:
            for name, write in zip(names, writers.values(), strict=True):
                write(report, draft / name)
            _write_manifest(report, draft, names)
            _remove_earlier(out, keep=names)
            for name in (*names, MANIFEST):
                if report.result.cpf_shown:
                    (draft / name).chmod(0o600)
                (draft / name).replace(out / name)
        finally:
            folder.remove()
    except OSError as error:
        raise ReportError(f"The report cannot be written to {out}: {error.strerror or error}") from error
    return [out / name for name in names]


def verify_files(folder: Path) -> list[VerifiedFile]:
    """Compare the files of a report with its manifest.

    Only files that are called like those of a report can be *added*; what else lies in the folder is no part
    of the report.

    Raises:
        ReportError: there is no manifest, or it cannot be read.
    """
    recorded = _recorded(folder)
    present = {path.name for path in folder.iterdir() if path.is_file()}
    found = [VerifiedFile(name, _state(folder / name, digest)) for name, digest in recorded.items()]
    added = sorted(name for name in present - recorded.keys() if name.startswith(STEM))
    return found + [VerifiedFile(name, FileState.ADDED) for name in added]


def _state(path: Path, digest: str) -> FileState:
    if not path.is_file():
        return FileState.MISSING
    return FileState.AS_WRITTEN if _digest(path) == digest else FileState.CHANGED


def _write_manifest(report: Report, folder: Path, names: list[str]) -> None:
    result = report.result
    document: dict[str, Any] = {
        "report": STEM,
        "asOf": iso(result.as_of, report.timezone),
        "madeAt": iso(result.made_at, report.timezone),
        "toolkit": result.source.toolkit,
        "rules": result.source.rules,
        "files": [
            {"name": name, "bytes": (folder / name).stat().st_size, "sha256": _digest(folder / name)}
            for name in names
        ],
    }
    (folder / MANIFEST).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _recorded(folder: Path) -> dict[str, str]:
    """The digest of each file that the manifest names."""
    path = folder / MANIFEST
    try:
        files = json.loads(path.read_text(encoding="utf-8"))["files"]
        recorded = {str(file["name"]): str(file["sha256"]) for file in files}
    except FileNotFoundError:
        raise ReportError(f"There is no report in {folder}: it holds no {MANIFEST}") from None
    except OSError as error:
        raise ReportError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError):
        raise ReportError(f"{path} is not the manifest of a report") from None
    if any(Path(name).name != name for name in recorded):
        raise ReportError(f"{path} names files outside its folder")
    return recorded


def _remove_earlier(folder: Path, keep: list[str]) -> None:
    """Remove the files of the report before, unless somebody changed them."""
    try:
        recorded = _recorded(folder)
    except ReportError:
        return
    for name, digest in recorded.items():
        if name not in keep and name.startswith(STEM) and _state(folder / name, digest) is FileState.AS_WRITTEN:
            (folder / name).unlink()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
