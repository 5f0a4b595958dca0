"""An evidence record in short sentences, for commands and notebooks."""

from toolkit.contract.codes import CODES
from toolkit.evidence.records import EvidenceRecord
from toolkit.kit.spoken import _, counted, current_language


def file_facts(record: EvidenceRecord) -> list[str]:
    """Return what is known of a record's file and its withdrawal: size, length, hash, fault, people."""
    file, taken, facts = record.file, record.withdrawal, []
    if file:
        length = [f"{current_language().number(round(file.seconds, 1))} s"] if file.seconds else []
        length += [counted(file.pages, "page")] if file.pages else []
        facts += [", ".join([counted(file.size, "byte"), *length]), f"{_('looked at')}: {file.coverage}"]
        facts += [f"SHA-256 {file.sha256}"] if file.sha256 else []
        facts += [f"{file.fault}: {_(CODES[file.fault].meaning)}"] if file.fault else []
    if taken:
        facts.append(f"{_('by')} {taken.withdrawn_by}, {_('approved by')} {taken.approved_by}: {taken.reason}")
    return [*facts, record.file_name] if record.file_name else facts
