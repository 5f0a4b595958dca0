"""Lay proofs beside reports and audits, and check them without database and settings.

``SHA256SUMS`` has the hash of each file; ``entry.json`` is the entry of the log that names it, with its proof, the
signed checkpoint and the public key; ``VERIFY.md`` says in words what that shows, and ``verify.sh`` checks it.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from hashlib import file_digest, sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from toolkit.contract.events import HIDDEN, Event, LogKeys, commitment
from toolkit.errors import UnreadableFile
from toolkit.log.attestations import stamped_at
from toolkit.log.merkle import leaf_hash, root_of_inclusion
from toolkit.log.notes import Checkpoint, EntryProof, SignedState, VerifierKey, text_of
from toolkit.log.sealing import CLOCKS_DIFFER
from toolkit.message import Message

SUMS: Final = "SHA256SUMS"
ENTRY: Final = "entry.json"
PROOF: Final = "entry.json.tlog-proof"
CHECKPOINT: Final = "checkpoint"
VKEY: Final = "log.vkey"
PEM: Final = "log.pem"
_FOLDER: Final = files("toolkit.log").joinpath("templates")
_TEMPLATES: Final = {name: _FOLDER.joinpath(name).read_bytes() for name in ("VERIFY.md", "verify.sh")}

COSIGS: Final = "checkpoint.cosigs"  # the signatures of witnesses under the checkpoint, which come later
STAMP: Final = "checkpoint.tsr"  # the answer of an authority who stamped the checkpoint (RFC 3161)

BUNDLE: Final = (SUMS, ENTRY, PROOF, CHECKPOINT, VKEY, PEM, *_TEMPLATES)
"""The files of a bundle beside those that it proves."""

OPENED: Final = ".opened"
"""The end of the name of a file that opens a field of the entry: its key, its value, and the text of that hash."""

LATER: Final = (COSIGS, STAMP)  # the files that others may add to it

_MAY_GO: Final = ("sales.parquet", "records.parquet", "objects.parquet")
"""The inputs of an audit, which are kept for the newest audits only."""


@dataclass(frozen=True, slots=True)
class BundleVerdict:
    """One of the answers: true, false, or ``None`` where it cannot be known here; and the sentence."""

    holds: bool | None
    told: Message


Witness = Callable[[Mapping[str, str]], tuple[str | None, Mapping[str, bytes]]]
"""Notes the SHA-256 of files by their names; returns the root of the log that has them, and their proof."""


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def proven(
    witness: Witness, files: Mapping[str, str], noted: Mapping[str, str]
) -> tuple[str | None, Mapping[str, bytes]]:
    """Have ``SHA256SUMS`` of the files noted, together with some of their hashes.

    Returns:
        The root of the log that has it, and the files to lay beside: ``SHA256SUMS`` and what proves it.
    """
    listed = "".join(f"{digest}  {name}\n" for name, digest in files.items()).encode()
    root, proof = witness({**noted, SUMS: sha256(listed).hexdigest()})
    return root, {SUMS: listed, **proof}


def bundle(entry: bytes, proof: EntryProof, signed: SignedState) -> dict[str, bytes]:
    """Return the files of a bundle, without ``SHA256SUMS``."""
    return {ENTRY: entry, PROOF: str(proof).encode(), **signed.files(), **_TEMPLATES}


def opened(entry: bytes, event: Event, keys: LogKeys, shown: Set[str]) -> dict[str, bytes]:
    """Return the files that open fields of an entry to whoever has them: those whose text is shown anyway.

    The key of a field opens no other one. A field that was sealed without a key stays closed.
    """
    texts = {sha256(each.encode()).hexdigest(): each for each in shown}
    files = {}
    for name, value in ((name, event.detail.get(name)) for name in HIDDEN.get(event.kind, ())):
        if (
            isinstance(value, str)
            and {value, texts.get(value)} & shown
            and (key := keys.opens(event, name, _of(entry, "detail", name))) is not None
        ):
            lines = [key.hex(), str(value), *([texts[value]] if value in texts else [])]
            files[f"{name}{OPENED}"] = "".join(f"{line}\n" for line in lines).encode()
    return files


def verify_bundle(
    folder: Path,
    known: VerifierKey | None = None,
    witnesses: Sequence[VerifierKey] = (),
    authorities: Path | None = None,
) -> dict[str, BundleVerdict]:
    """Check the bundle in a folder, under the log's key as somebody knows it, or under the one in the folder.

    ``witnesses`` are the keys of those who must have signed its checkpoint, too; ``authorities`` a PEM file with
    the certificates of whoever must have stamped it.

    Returns:
        The verdicts about ``files``, ``inclusion``, ``time`` and ``witness``.

    Raises:
        UnreadableFile: there is no bundle, or a file of it cannot be read.
    """
    entry, checkpoint = _read(folder, ENTRY), _read(folder, CHECKPOINT)
    key = VerifierKey.parse(_read(folder, VKEY).decode("utf-8", "replace"))
    if known is not None and known != key:
        inclusion = BundleVerdict(False, Message("The key in the folder is another one: {}", str(key)))
    elif _read(folder, PEM) != key.pem():
        inclusion = BundleVerdict(False, Message("{} is another one than that of the proof.", PEM))
    else:
        inclusion = _inclusion(entry, _read(folder, PROOF), checkpoint, key, trusted=known is not None)
    return {
        "files": _files(folder, entry),
        "inclusion": inclusion,
        "time": _stamped(folder, entry, checkpoint, authorities),
        "witness": _witnessed(folder, checkpoint, key, witnesses),
    }


def _stamped(folder: Path, entry: bytes, checkpoint: bytes, authorities: Path | None) -> BundleVerdict:
    if authorities is None:
        return BundleVerdict(None, Message("Time stamps are looked at with --tsa: the time is that of the log."))
    if not (folder / STAMP).is_file():
        return BundleVerdict(False, Message("There is no time stamp: {} is missing.", STAMP))
    token = _read(folder, STAMP)
    at = stamped_at(token, checkpoint, authorities)
    if at is None:
        command = f"openssl ts -verify -data {CHECKPOINT} -in {STAMP} -CAfile {authorities}"
        return BundleVerdict(None, Message("The time stamp cannot be read here. Try: {}", command))
    if not at:
        return BundleVerdict(False, Message("The time stamp is not one of this checkpoint by that authority."))
    said = str(_of(entry, "at"))
    with suppress(ValueError, TypeError):
        if datetime.fromisoformat(said) > at + CLOCKS_DIFFER:
            stamped = Message(
                "The entry says that it is of {}, and was stamped before, at {}.", said, at.isoformat()
            )
            return BundleVerdict(False, stamped)
    return BundleVerdict(True, Message("Stamped at {}; the entry says {}.", at.isoformat(), said))


def _witnessed(
    folder: Path, checkpoint: bytes, key: VerifierKey, witnesses: Sequence[VerifierKey]
) -> BundleVerdict:
    if not witnesses:
        return BundleVerdict(None, Message("Signatures of witnesses are looked at with --witness."))
    if any(each.public == key.public for each in witnesses):
        return BundleVerdict(False, Message("The key of the log is no witness of it."))
    if len({each.public for each in witnesses}) < len(witnesses):
        return BundleVerdict(False, Message("Two of these witnesses have one key: they are the same."))
    text = text_of(checkpoint.decode("utf-8", "replace"))
    lines = (folder / COSIGS).read_text("utf-8", "replace") if (folder / COSIGS).is_file() else ""
    times = {each.name: each.cosigned_at(text, lines) for each in witnesses}
    if missing := [name for name, at in times.items() if at is None]:
        return BundleVerdict(False, Message("{} did not sign this state of the log.", ", ".join(missing)))
    signed = [f"{name} ({at.isoformat(timespec='seconds')})" for name, at in times.items() if at]
    return BundleVerdict(True, Message("Signed by {}.", ", ".join(signed)))


def _inclusion(entry: bytes, proof: bytes, checkpoint: bytes, key: VerifierKey, *, trusted: bool) -> BundleVerdict:
    found = EntryProof.parse(proof.decode("utf-8", "replace"))
    if found is None:
        return BundleVerdict(False, Message("{} is no proof.", PROOF))
    text = key.opens(found.note)
    state = None if text is None else Checkpoint.parse(text)
    if state is None or state.origin != key.name:
        return BundleVerdict(False, Message("The checkpoint in {} is not signed by the key of the log.", PROOF))
    if key.opens(checkpoint.decode("utf-8", "replace")) != text:
        return BundleVerdict(False, Message("{} is another one than that of the proof.", CHECKPOINT))
    if root_of_inclusion(leaf_hash(entry), found.index, state.size, found.path) != state.root:
        return BundleVerdict(False, Message("{} is not the entry that was signed.", ENTRY))
    place = Message("Entry {:,} of {:,} in the log {}", found.index, state.size, state.origin)
    if trusted:
        return BundleVerdict(True, place)
    return BundleVerdict(True, Message("{}; compare its key with the one that you know: {}", place, str(key)))


def _files(folder: Path, entry: bytes) -> BundleVerdict:
    named = _of(entry, "detail", "files", SUMS)
    if not (folder / SUMS).exists():
        return _fields(folder, entry) if named is None else BundleVerdict(False, Message("{} is missing.", SUMS))
    listed = _read(folder, SUMS)
    if named != sha256(listed).hexdigest():
        return BundleVerdict(False, Message("{} is not the one that {} names.", SUMS, ENTRY))
    recorded = re.findall(r"(?m)^([0-9a-f]{64})  (?!\.{0,2}/)(.+)\n", listed.decode("utf-8", "replace"))
    if "".join(f"{digest}  {name}\n" for digest, name in recorded).encode() != listed or not recorded:
        return BundleVerdict(False, Message("{} is no proof.", SUMS))
    for digest, name in recorded:
        if not (folder / name).is_file():
            if name not in _MAY_GO:
                return BundleVerdict(False, Message("{} is missing.", name))
        elif digest_of(folder / name) != digest:
            return BundleVerdict(False, Message("{} is not what was written.", name))
    names = {name for _, name in recorded}
    places = {Path(name).parts[0] for name in names}
    inside = (each for place in places for each in (folder / place).rglob("*"))
    present = {each for each in (*folder.glob("*"), *inside) if each.is_file()}
    found = {each.relative_to(folder).as_posix() for each in present}
    others = found - {*names, *BUNDLE, *LATER, "manifest.json"}
    called = {part for name in names for part in name.rsplit(".", 1)}  # another format of a report is none of it
    if added := sorted(name for name in others if not called.isdisjoint(name.rsplit(".", 1))):
        return BundleVerdict(False, Message("{} was added: nothing proves it.", ", ".join(added)))
    folders = {each for each in folder.iterdir() if each.is_dir() and each.name not in places}
    others |= {f"{each.name}/" for each in folders if not any(each.rglob(SUMS))}  # reports there have own proofs
    written = Message("Files as they were written: {:,}.", len(names & found))
    others |= found & {"manifest.json"}  # it names the root of the log that proves the others
    others |= {name for name in found & {*_TEMPLATES} if _read(folder, name) != _TEMPLATES[name]}
    if others:
        written = Message("{} Nothing proves {}.", written, ", ".join(sorted(others)))
    return BundleVerdict(True, written)


def _fields(folder: Path, entry: bytes) -> BundleVerdict:
    files = sorted(folder.glob(f"*{OPENED}"))
    for file in files:
        key, _, rest = _read(folder, file.name).decode("utf-8", "replace").partition("\n")
        value, _, text = rest.partition("\n")
        is_key = re.fullmatch("[0-9a-f]{64}", key) is not None
        of_text = not text or sha256(text.removesuffix("\n").encode()).hexdigest() == value
        committed = _of(entry, "detail", file.stem)
        if not (is_key and of_text and committed == commitment(bytes.fromhex(key), value)):
            return BundleVerdict(False, Message("{} is not what {} holds.", file.name, ENTRY))
    if files:
        return BundleVerdict(True, Message("{} holds: {}.", ENTRY, ", ".join(each.name for each in files)))
    return BundleVerdict(None, Message("This entry is about no files of this folder."))


def _of(entry: bytes, *names: str) -> Any:
    """Return what stands under these names in an entry, whatever the entry is; ``None`` where nothing does."""
    try:
        found = json.loads(entry)
        for name in names:
            found = found[name]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return found


def _read(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except OSError:
        raise UnreadableFile("There is no proof in {}: {} cannot be read.", folder, name) from None
