"""``toolkit dossier``: everything about one sale as a ZIP that opens without the toolkit.

It is made for somebody who never saw the toolkit: a regulator, a court, a distributor. It holds ``dossier.pdf``,
the same as ``sale.json``, ``README.txt``, the files of the evidence where they were asked for, the proof of each
event of the sale in the custody log, and ``SHA256SUMS``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from hashlib import sha256
from pathlib import Path
from shutil import copyfileobj
from typing import Any, Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from toolkit.atomic_files import PrivateFolder
from toolkit.language import Language
from toolkit.log.bundle import digest_of
from toolkit.reports.pdf import typeset

ABOUT: Final = (
    "The verdict follows the minimum evidence rules of the contract, by what was last seen of the service and the "
    "bucket. What came later is not in it.",
    "A program looked whether each file opens, is of the kind that its type demands, and shows or sounds at all. "
    "What a file says, and who is heard in it, only people judge; what they found stands under Reviews by people.",
    "A CPF on the first page is masked, unless somebody asked for the whole one and said why.",
    "SHA256SUMS holds the SHA-256 of every other file; sha256sum -c SHA256SUMS tells which one was changed, but "
    "not who made the archive. The operator's custody log holds the SHA-256 of the whole archive.",
    "proofs holds, for each event of the sale, the entry of the custody log and the proof that a signed state of "
    "the log has it; VERIFY.md there tells how it is checked. That the log is complete is not proven.",
    "An entry holds names, reasons and hashes of files under keys. Where this dossier shows one of them, the file "
    "FIELD.opened beside the proof holds the key of that field, which opens no other one.",
)
"""Sentences about the limits of the dossier."""

_SAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_OWNER_ONLY: Final = 0o600 << 16


@dataclass(frozen=True, eq=False)
class Dossier:
    """The contents of a dossier in one language, as of a moment.

    ``tables`` holds a title, headings and rows for each; ``files`` the evidence by its name in the archive.
    """

    sale_id: str
    as_of: datetime
    facts: Mapping[str, str]
    tables: Sequence[tuple[str, Sequence[str], Sequence[Sequence[str]]]]
    document: Mapping[str, Any]
    files: Mapping[str, Path]

    @property
    def file_name(self) -> str:
        """A name that every system takes; that of an odd id ends in a part of its hash."""
        name = _SAFE.sub("_", self.sale_id)[:60]
        mark = "" if name == self.sale_id else f"-{sha256(self.sale_id.encode()).hexdigest()[:8]}"
        return f"dossier-{name}{mark}.zip"


def write_dossier(dossier: Dossier, out: Path, language: Language, timezone: tzinfo) -> tuple[Path, str]:
    """Write the archive into the folder ``out``, for its owner only; return its path and its SHA-256.

    An archive of the same sale that lies there is replaced.
    """
    say = language.text
    about = [say(sentence) for sentence in ABOUT]
    title = say("Dossier of the sale %(sale)s", sale=dossier.sale_id)
    as_of = say("as of %(moment)s", moment=language.moment(dossier.as_of, timezone))
    private = PrivateFolder(out)
    with private as folder:
        parts = {name: folder / name for name in ("dossier.pdf", "sale.json", "README.txt")}
        content = {
            "title": title,
            "as_of": as_of,
            "facts": list(dossier.facts.items()),
            "tables": [{"title": name, "headings": heads, "rows": rows} for name, heads, rows in dossier.tables],
            "none": say("none"),
            "about": {"title": say("What this shows, and what it does not"), "sentences": about},
        }
        typeset("dossier.typ", content, language, parts["dossier.pdf"], dossier.as_of)
        told = json.dumps(dossier.document, ensure_ascii=False, indent=1, default=str)
        parts["sale.json"].write_text(told + "\n", "utf-8")
        lines = [title, as_of, "", *(f"{name}: {value}" for name, value in dossier.facts.items()), "", *about]
        parts["README.txt"].write_text("\n".join(lines) + "\n", "utf-8")
        parts |= dossier.files
        sums = "".join(f"{digest_of(path)}  {name}\n" for name, path in sorted(parts.items()))
        (folder / "SHA256SUMS").write_text(sums, "utf-8")
        parts["SHA256SUMS"] = folder / "SHA256SUMS"
        moment = dossier.as_of.astimezone(timezone).timetuple()[:6]
        with ZipFile(folder / "draft.zip", "w", ZIP_DEFLATED) as archive:
            for name, path in parts.items():
                entry = ZipInfo(name, moment)
                entry.compress_type, entry.external_attr = ZIP_DEFLATED, _OWNER_ONLY
                with path.open("rb") as source, archive.open(entry, "w", force_zip64=True) as target:
                    copyfileobj(source, target)
        digest = digest_of(folder / "draft.zip")
        return private.publish(folder / "draft.zip", dossier.file_name), digest
