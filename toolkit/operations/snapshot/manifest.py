"""The manifest of an export: its moment, the export before it, and each of its files with its SHA-256."""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import TypeAdapter

from toolkit.domain.documents import named
from toolkit.errors import UnreadableFile

FORMAT: Final = 3
"""The version of the layout; a snapshot of another one is refused."""

PREFIX: Final = "manifest-"

_TOLD_AS_THEY_ARE: Final = ("schema", "toolkit", "database", "embedded", "seal", "key", "deadlines")


@dataclass(frozen=True, slots=True)
class File:
    """A Parquet file of an export; ``part`` is ``rows`` or ``closings``."""

    name: str
    table: str
    part: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of an export. With the exports before it, they are the whole history up to ``moment``."""

    moment: datetime
    previous: datetime | None
    """The moment of the export that this one continues, ``None`` for a full one."""
    schema: str
    """The version of the toolkit's schema in the database."""
    toolkit: str
    database: str
    embedded: bool
    """True if the database was the embedded one, for trying out."""
    seal: str | None
    records_assumed_at: datetime | None
    files: tuple[File, ...]
    hidden_rows: tuple[str, ...] = ()
    """Tables of the service whose policies might hide rows when the export was made."""
    copied_rows: tuple[str, ...] = ()
    """Materialised views of the service, which hold what there was when they were refreshed last."""
    key: str | None = None
    """Tells the key of the pseudonyms from others, and nothing about it."""
    deadlines: str | None = None
    """The zone, deadlines and holidays of the machine that exported; ``None`` where an older toolkit did."""

    @property
    def name(self) -> str:
        """The name of the manifest's file."""
        return name_of(self.moment)

    @property
    def rows(self) -> int:
        """Rows in all files."""
        return sum(file.rows for file in self.files)

    def as_json(self) -> str:
        """Return the manifest as it is stored."""
        document = {
            "format": FORMAT,
            "moment": self.moment.isoformat(),
            "previous": None if self.previous is None else self.previous.isoformat(),
            **named(self, *_TOLD_AS_THEY_ARE),
            "recordsAssumedAt": None if self.records_assumed_at is None else self.records_assumed_at.isoformat(),
            "hiddenRows": list(self.hidden_rows),
            "copiedRows": list(self.copied_rows),
            "files": [asdict(file) for file in self.files],
        }
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


_MANIFESTS: Final = TypeAdapter(Manifest)


def read_manifest(text: str, name: str) -> Manifest:
    """Return the manifest in ``text``, stored as ``name``.

    Raises:
        UnreadableFile: it is no manifest, or that of another version of the layout.
    """
    try:
        document: dict[str, Any] = json.loads(text)
        if document["format"] != FORMAT:
            raise UnreadableFile(
                f"{name} has format {document['format']}, and this toolkit reads {FORMAT}. "
                "Export into another place."
            )
        given = {"records_assumed_at": document["recordsAssumedAt"]}
        given |= {"hidden_rows": document.get("hiddenRows", ()), "copied_rows": document.get("copiedRows", ())}
        return _MANIFESTS.validate_python(document | given)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UnreadableFile(f"{name} cannot be read as the manifest of a snapshot.") from None


def name_of(moment: datetime) -> str:
    """Return the name of the manifest of an export of this moment."""
    return f"{PREFIX}{stamp_of(moment)}.json"


def stamp_of(moment: datetime) -> str:
    """Return the moment in the names of files: ``20261120T180000.000000Z``."""
    return moment.astimezone(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
