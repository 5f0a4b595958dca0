"""Reports for people: an audit as HTML, XLSX, CSV, JSON and PDF.

::

    reading        the numbers and lists of an audit folder; audited holds them
    report         what is shown, how, and its times
    wording        the words for codes, and those of the page; notices the headline, notices and provenance
    lists          the lists beside the sales: what each is about, its columns and its cells, for all formats
    page           HTML, one self-contained page with its charts, and what its script shows
    spreadsheets   XLSX, sheet by sheet, and CSV
    json_document  JSON
    pdf            PDF, typeset by Typst

A report is written into its folder as a whole, kept when the next one is written, and verified later.
``manifest.json`` names every file of the report with its size and SHA-256, and the totals. The newest report
lies in the folder itself, earlier ones beneath it in ``history/<moment>``.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Any, Final

from toolkit.atomic_files import PrivateFolder
from toolkit.audit.folder import FACTS
from toolkit.contract.fields import pick_camel
from toolkit.contract.findings import REPORT
from toolkit.errors import InvalidInput, ReportError
from toolkit.log.bundle import BUNDLE, LATER, Witness, digest_of, proven
from toolkit.progress import Progress
from toolkit.reports import json_document, page, pdf, spreadsheets
from toolkit.reports.report import Report, iso

FORMATS: Final[dict[str, Callable[[Report, Path], None]]] = {
    "html": page.write,
    "xlsx": spreadsheets.write_workbook,
    "csv": spreadsheets.write_csv,
    "json": json_document.write,
    "pdf": pdf.write,
}
"""Each format that a report can have, and the function that writes it."""

MANIFEST: Final = "manifest.json"
HISTORY: Final = "history"


def write_report(
    report: Report, out: Path, *, progress: Progress | None = None, witness: Witness | None = None
) -> list[Path]:
    """Write ``missing-evidence.*`` and its manifest into the folder ``out``; an earlier report moves beneath it.

    Everything is written aside first and moved to its place then, so a failure leaves what was there. Files
    with whole CPFs can be read by their owner only.

    Args:
        report: what the audit found, and how it is shown.
        out: the folder; it is made where it does not exist.
        progress: told of each format.
        witness: notes the files' hashes in the custody log, and gives what proves it: the root, which the manifest
            carries, and files to lie beside those of the report.

    Returns:
        The paths of the report's files, in the order of its formats.

    Raises:
        ReportError: the files cannot be written; the earlier report is still there.
    """
    if (out / FACTS).exists():
        raise ReportError("{} is the folder of an audit, whose proof the report would replace.", out)
    names = {name: report.file_name(name) for name in report.formats}
    shown = progress or Progress()
    try:
        with PrivateFolder(out) as draft:
            shown.begin("Writing the report", len(names), "files")
            for name, file in names.items():
                FORMATS[name](report, draft / file)
                shown.advance(1)
            shown.end()
            digests = {name: digest_of(draft / name) for name in names.values()}
            seal, beside = (None, {}) if witness is None else proven(witness, digests, digests)
            for name, content in beside.items():
                (draft / name).write_bytes(content)
            _write_manifest(report, draft, digests, seal)
            _keep_earlier(out)
            for name in (*digests, *beside, MANIFEST):
                if report.result.cpf_shown:
                    (draft / name).chmod(0o600)
                (draft / name).replace(out / name)
    except OSError as error:
        raise ReportError("The report cannot be written to {}: {}", out, error.strerror or error) from error
    return [out / name for name in digests]


def chosen(formats: Iterable[str]) -> tuple[str, ...]:
    """Return the formats that these names stand for, in the order of ``FORMATS``.

    Raises:
        InvalidInput: an unknown name, or none at all.
    """
    names = {each.strip().lower() for each in formats} - {""}
    if not names or names - FORMATS.keys():
        unknown = ", ".join(sorted(names - FORMATS.keys())) or "none given"
        raise InvalidInput("Unknown report format ({}); there are {}", unknown, ", ".join(FORMATS))
    return tuple(name for name in FORMATS if name in names)


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
        "asOf": iso(result.facts.as_of, report.timezone),
        **pick_camel(result, "partner", "cpf_shown"),
        "madeAt": iso(result.facts.made_at, report.timezone),
        **pick_camel(result, "sales", "compliant", "incomplete", "conflict", "coverage"),
        "verifiedFirst": result.facts.verified_first if result.facts.of_now else None,
        **pick_camel(result.facts.source, "toolkit", "rules", "embedded"),
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
    return FileState.AS_WRITTEN if digest_of(path) == recorded else FileState.CHANGED


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
