"""``toolkit dossier``: everything about one sale as a ZIP that opens without the toolkit.

It is made for somebody who never saw the toolkit: a regulator, a court, a distributor. It holds ``dossier.pdf``,
the same as ``sale.json``, ``README.txt``, the files of the evidence where they were asked for, the proof of each
event of the sale in the custody log, and ``SHA256SUMS``.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from shutil import copyfileobj
from typing import Any, Final
from uuid import UUID
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from toolkit.atomic_files import PrivateFolder
from toolkit.audit.sale_case import SaleCase
from toolkit.contract.events import HIDDEN
from toolkit.evidence.records import records_of
from toolkit.kit.sales import Rows, facts_of, sale_document, tables_of
from toolkit.kit.services import Services
from toolkit.kit.shown import json_text, worded
from toolkit.kit.spoken import _, counted, current_language, current_zone
from toolkit.log.bundle import bundle, digest_of, opened
from toolkit.log.sealing import prove, with_key
from toolkit.reports.pdf import breaking, typeset

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


def write_dossier(kit: Services, sale_id: str, out: Path, *, with_files: str | None, unmask: str | None) -> Path:
    """Write the archive about a sale into the folder ``out``, for its owner only; return its path.

    ``with_files`` is the reason for handing out the files of its evidence, ``unmask`` that for the whole CPF. An
    archive of the same sale that lies there is replaced. The custody log keeps the SHA-256 of the new one.
    """
    language, zone, unmasked = current_language(), kit.settings.timezone, unmask is not None
    say, about = language.text, [language.text(sentence) for sentence in ABOUT]
    with kit.scratch() as scratch:
        records = () if with_files is None else records_of(kit.database, sale_id)
        keys = {each.id: each.object_key for each in records}
        held = dict(kit.files_of(keys, with_files or "", scratch))
        # Later, so that the time line tells that the files were opened for it.
        case, cpf = kit.case_of(sale_id, unmask, "CPF and file names of a sale, in a dossier")
        made_at = kit.clock()
        title = say("Dossier of the sale {}", case.sale_id)
        as_of = say("as of {}", language.moment(made_at, zone))
        facts = {_(label): worded(value) for label, value in facts_of(case, cpf, unmasked=unmasked).items()}
        document = _document(case, made_at)
        files, rows = _evidence(case, held)
        shown = {*texts_of(document), *(each.object_key for each in case.records if unmasked)}
        files |= _proofs(kit, case, shown, scratch)
        tables = tables_of(case, unmasked=unmasked)
        if rows:
            columns = ["file", "size", "SHA-256", "state"]
            tables.append((_("Files in the archive"), columns, rows))
        private = PrivateFolder(out)
        with private as folder:
            parts = {name: folder / name for name in ("dossier.pdf", "sale.json", "README.txt")}
            content = {
                "title": title,
                "as_of": as_of,
                "facts": list(facts.items()),
                "tables": [_table(*each) for each in tables],
                "none": say("none"),
                "about": {"title": say("What this shows, and what it does not"), "sentences": about},
            }
            typeset("dossier.typ", content, language, parts["dossier.pdf"], made_at)
            text = json.dumps(document, ensure_ascii=False, indent=1, default=json_text)
            parts["sale.json"].write_text(text + "\n", "utf-8")
            lines = [title, as_of, "", *(f"{name}: {value}" for name, value in facts.items()), "", *about]
            parts["README.txt"].write_text("\n".join(lines) + "\n", "utf-8")
            parts |= files
            sums = "".join(f"{digest_of(path)}  {name}\n" for name, path in sorted(parts.items()))
            (folder / "SHA256SUMS").write_text(sums, "utf-8")
            parts["SHA256SUMS"] = folder / "SHA256SUMS"
            moment = made_at.astimezone(zone).timetuple()[:6]
            with ZipFile(folder / "draft.zip", "w", ZIP_DEFLATED) as archive:
                for name, path in parts.items():
                    entry = ZipInfo(name, moment)
                    entry.compress_type, entry.external_attr = ZIP_DEFLATED, _OWNER_ONLY
                    with path.open("rb") as source, archive.open(entry, "w", force_zip64=True) as target:
                        copyfileobj(source, target)
            digest = digest_of(folder / "draft.zip")
            written = private.publish(folder / "draft.zip", _file_name(case.sale_id))
    kit.record_report({"dossier.zip": digest})
    return written


def _file_name(sale_id: str) -> str:
    """Return a name that every system takes; that of an odd id ends in a part of its hash."""
    name = _SAFE.sub("_", sale_id)[:60]
    mark = "" if name == sale_id else f"-{sha256(sale_id.encode()).hexdigest()[:8]}"
    return f"dossier-{name}{mark}.zip"


def _document(case: SaleCase, made_at: datetime) -> dict[str, Any]:
    document = sale_document(case, made_at.astimezone(current_zone()).date())
    for event in document["timeline"]:  # what the log holds under a key is told beside the proofs, or not at all
        event["detail"] = {
            name: each for name, each in event["detail"].items() if name not in HIDDEN.get(event["kind"], ())
        }
    return document


def texts_of(document: Any) -> set[str]:
    """Return the values within a document of JSON, as texts."""
    if isinstance(document, Mapping):
        return texts_of([*document.values()])
    if isinstance(document, list | tuple):
        return set[str]().union(*map(texts_of, document))
    return {str(document)}


def _table(title: str, headings: Sequence[str], rows: Rows) -> dict[str, Any]:
    cells = [[breaking(worded(cell)) for cell in row] for row in rows]
    return {"title": _(title), "headings": [_(each) for each in headings], "rows": cells}


def _evidence(case: SaleCase, files: Mapping[UUID, Path]) -> tuple[dict[str, Path], Rows]:
    """Return the ``files`` of the records of a sale, by their names in the archive, and what is told of each."""
    held, rows = dict[str, Path](), Rows()
    for number, record in enumerate((each for each in case.records if each.id in files), start=1):
        path = files[record.id]
        name, digest = f"files/{number}-{record.evidence_type}{path.suffix}", digest_of(path)
        verified = record.file.sha256 if record.file else None
        state = _("as verified") if verified == digest else _("differs from what was verified")
        size = counted(path.stat().st_size, "byte")
        rows.append((name, size, digest, _("not verified before") if verified is None else state))
        held[name] = path
    return held, rows


def _proofs(kit: Services, case: SaleCase, shown: set[str], folder: Path) -> dict[str, Path]:
    """Write the proof that the custody log has it for each event of the sale, as far as it is sealed.

    Fields whose texts are ``shown`` are opened.
    """
    kit.seal_if_possible()
    with kit.database.transaction() as connection:
        events = {event.id: with_key(connection, event) for event, _ in case.timeline}
        proven = [(event, prove(connection, event.id)) for event in events.values()]
    files = {}
    for event, proof in proven:
        beside = {} if proof is None else {**bundle(*proof), **opened(proof[0], event, kit.log_keys, shown)}
        for name, content in beside.items():
            path = files[f"proofs/{event.id}/{name}"] = folder / f"{event.id}-{name}"
            path.write_bytes(content)
    return files
