"""The catalogue of the codes that the toolkit gives for what is wrong; ``toolkit explain`` shows it."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Final

from toolkit.contract.contents import ContentProblem, IntegrityProblem
from toolkit.contract.evidence import EvidenceType
from toolkit.contract.findings import Problem, Reason
from toolkit.contract.rules import GROUP_RULES
from toolkit.contract.service_rows import JUMPS, code_of
from toolkit.message import LabelledEnum, Message, either


class Severity(StrEnum):
    """The weight of a finding, gravest first."""

    CRITICAL = "critical"
    ERROR = "error"
    WARNING = "warning"


class Subject(LabelledEnum):
    """The subject of a code."""

    SALE = "sale", "Findings about sales"
    FILE = "file", "Findings about files"
    SERVICE = "service", "Findings about rows of the service"
    PERSON = "person", "Findings about requests of persons"
    REASON = "reason", "Reasons why a piece is missing"
    FAULT = "fault", "Faults that make a file unusable"
    END = "gone finding", "Reasons why a finding is gone that nobody mended"


class Owner(LabelledEnum):
    """The people who have to act on a finding."""

    PARTNER = "partner", "the partner"
    COMPLIANCE = "compliance", "compliance"
    OPERATIONS = "operations", "operations"


WITHOUT_CLIENT: Final = "WITHOUT_CLIENT"  # a sale names no client, which does not concern its evidence
REQUEST_OVERDUE: Final = "REQUEST_OVERDUE"  # a request of a person has no answer after the days of the law
SALE_GONE: Final = "SALE_GONE"  # a finding is gone with its sale, although nobody mended it
WRONG_KIND: Final = "WRONG_KIND"  # a file whose contents are whole is of another kind than its type demands


@dataclass(frozen=True, slots=True)
class Code:
    """One code: its meaning, its section of the contract, and the remedy.

    ``deadline`` is in business days since the finding came or came back. A reason or a fault has the weight, the
    owner and the deadline of the missing piece that it belongs to.
    """

    code: str
    subject: Subject
    severity: Severity | None
    owner: Owner | None
    deadline: int | None
    name: str
    meaning: str
    remedy: str
    section: str = "not in the contract"


MINIMUM: Final = "Minimum evidence rules per utility group"
_TYPES: Final = "Allowed evidenceType values"
_UPLOAD: Final = "3. Upload the file to the storage bucket"
_REQUEST: Final = "2. Request evidence upload credentials"
_STATES: Final = "States and transitions"

_ASK_AGAIN: Final = (
    "Request credentials for the type again, upload a whole file, and withdraw the record of this one."
)


def missing_code(evidence_type: EvidenceType | str) -> str:
    """Return the code of a missing piece, such as ``MISSING_POV``, whatever the reason why it is missing."""
    return f"MISSING_{evidence_type}"


def _missing(evidence_type: EvidenceType) -> Code:
    what = evidence_type.text[0].lower() + evidence_type.text[1:]
    return Code(
        missing_code(evidence_type),
        Subject.SALE,
        Severity.ERROR,
        Owner.PARTNER,
        5,
        f"{what} missing",
        f"The sale needs a{'n' * what.startswith('a')} {what}, and no usable file of that type counts.",
        f"Request credentials for {evidence_type}, upload the file, and sync the bucket; the reason says how far "
        "the best attempt got.",
        MINIMUM,
    )


def _reason(code: Reason, name: str, meaning: str, remedy: str, section: str = _REQUEST) -> Code:
    return Code(code, Subject.REASON, None, None, None, name, meaning, remedy, section)


def _fault(code: str, name: str, meaning: str, remedy: str = _ASK_AGAIN) -> Code:
    return Code(code, Subject.FAULT, None, None, None, name, meaning, remedy, _TYPES)


def _jump(count: str, name: str) -> Code:
    return Code(
        code_of(count),
        Subject.SERVICE,
        Severity.ERROR,
        Owner.OPERATIONS,
        2,
        name,
        "There are many more such rows than before, or some where there were none. What they stand for may be "
        "missing from the audit.",
        "Look at them: toolkit db check. Correct the rows in the service, or service.sql; where they are right, "
        "accept them by a waiver. It is resolved when there are no more than before.",
    )


_ALL: Final[tuple[Code, ...]] = (
    Code(
        Problem.COMPLETED_WITHOUT_EVIDENCE, Subject.SALE, Severity.CRITICAL, Owner.COMPLIANCE, 1,
        "completed without evidence",
        "The sale is marked as completed, but its evidence does not allow it.",
        "Find out who completed it and on what; mend what else is found about the sale, or undo the completion in "
        "the system that the sale belongs to.",
        _STATES,
    ),
    Code(
        Problem.GROUP_UNKNOWN, Subject.SALE, Severity.ERROR, Owner.OPERATIONS, 2,
        "unknown utility group",
        "The utility group is none of A, B, C, D: no rule says what the sale needs.",
        "Correct the utility group in the system that the sale belongs to; withdrawing a record cannot mend it.",
        MINIMUM,
    ),
    Code(
        Problem.PAYER_UNKNOWN, Subject.SALE, Severity.ERROR, Owner.OPERATIONS, 2,
        "unknown payer",
        "Nothing says whether the contracting party pays, so that nobody can tell what the sale needs.",
        "Correct who pays in the system that the sale belongs to, or its code in the mapping; withdrawing a "
        "record cannot mend it.",
        MINIMUM,
    ),
    Code(
        Problem.KYC_NOT_ALONE, Subject.SALE, Severity.ERROR, Owner.COMPLIANCE, 3,
        "KYC beside other evidence",
        "A KYC file replaces all other evidence and must not be sent together with any.",
        "Decide which holds, and withdraw the records of the other: the KYC, or everything beside it.",
        MINIMUM,
    ),
    Code(
        Problem.KYC_REPEATED, Subject.SALE, Severity.ERROR, Owner.COMPLIANCE, 3,
        "more than one KYC",
        "Exactly one KYC file may be sent.",
        "Withdraw the records of all KYC files but one.",
        MINIMUM,
    ),
    Code(
        Problem.TYPE_UNKNOWN, Subject.SALE, Severity.ERROR, Owner.OPERATIONS, 2,
        "evidence of an unknown type",
        "A record names an evidence type that the contract does not know: its file never counts.",
        "Correct the evidence type in the system that the record belongs to, or withdraw the record.",
        _TYPES,
    ),
    *map(_missing, dict.fromkeys(each.named for rule in GROUP_RULES.values() for each in rule)),
    Code(
        Problem.DOCUMENT_REDUNDANT, Subject.SALE, Severity.WARNING, Owner.PARTNER, 20,
        "redundant document",
        "The combined document is there, and so is a separate one that it replaces.",
        "Withdraw the record of the document that is not needed. The sale stays compliant as it is.",
        MINIMUM,
    ),
    Code(
        WITHOUT_CLIENT, Subject.SALE, Severity.WARNING, Owner.PARTNER, 10,
        "sale without a client",
        "The sale names no client: nobody can be asked for evidence.",
        "Register the client, and name it in the system that the sale belongs to.",
        "Sale",
    ),
    Code(
        IntegrityProblem.REVIEW_FAILED, Subject.FILE, Severity.CRITICAL, Owner.COMPLIANCE, 1,
        "failed a review",
        "Somebody looked at the file, or listened to it, and gave a critical answer to a question about it.",
        "Withdraw the record and request the evidence again, or accept it by a waiver. The file goes on counting.",
    ),
    Code(
        IntegrityProblem.CONTENT_REUSED, Subject.FILE, Severity.CRITICAL, Owner.COMPLIANCE, 1,
        "same file for several sales",
        "The same file is the evidence of more than one sale.",
        "Look at the file, decide which sale it belongs to, and withdraw the record of every other sale.",
    ),
    Code(
        IntegrityProblem.CONTENT_ALIKE, Subject.FILE, Severity.CRITICAL, Owner.COMPLIANCE, 1,
        "same content for several sales",
        "The same recording or pages, in files that differ otherwise, are the evidence of more than one sale.",
        "Look at the files, decide which sale they belong to, and withdraw the record of every other sale.",
    ),
    Code(
        IntegrityProblem.OVERWRITTEN, Subject.FILE, Severity.CRITICAL, Owner.COMPLIANCE, 1,
        "replaced after it was seen",
        "The file was replaced by another one after it had been seen.",
        "Find out who wrote it; withdraw the record and request the evidence again, or accept it by a waiver.",
        _UPLOAD,
    ),
    Code(
        IntegrityProblem.REQUESTED_BY_OTHER, Subject.FILE, Severity.CRITICAL, Owner.COMPLIANCE, 1,
        "requested by another partner",
        "The upload credentials were requested by somebody who is not the partner of the sale.",
        "Find out whether the sale changed its partner; if not, withdraw the record, and look at what else that "
        "partner requested.",
        _REQUEST,
    ),
    Code(
        IntegrityProblem.ACTIVE_CONTENT, Subject.FILE, Severity.ERROR, Owner.COMPLIANCE, 3,
        "document with active parts",
        "The document holds scripts, actions, attachments or other files, or could not be looked at as a whole.",
        "Do not open it in a browser; withdraw the record and request a plain document, or accept it by a waiver. "
        "The file goes on counting.",
    ),
    Code(
        IntegrityProblem.BLANK_DOCUMENT, Subject.FILE, Severity.ERROR, Owner.PARTNER, 3,
        "document on which nothing is seen",
        "The document is whole, but nothing can be seen on its pages, or what stands in their margins alone.",
        "Look at it: toolkit evidence link EVIDENCE_ID; withdraw the record and request the document again, or "
        "accept it by a waiver. The file goes on counting.",
    ),
    Code(
        IntegrityProblem.STORED_TYPE_DIFFERS, Subject.FILE, Severity.ERROR, Owner.COMPLIANCE, 3,
        "stored as another type",
        "The bucket hands the file out as another type than was declared, which whoever uploaded it chose.",
        "Do not open it in a browser; withdraw the record and request the evidence again, or accept it by a "
        "waiver. The file goes on counting.",
        _UPLOAD,
    ),
    Code(
        IntegrityProblem.WRITTEN_LATE, Subject.FILE, Severity.ERROR, Owner.COMPLIANCE, 3,
        "written too late",
        "The file was written after its upload credentials had run out.",
        "Find out who wrote it; withdraw the record and request the evidence again, or accept it by a waiver.",
        _UPLOAD,
    ),
    Code(
        IntegrityProblem.CONTENT_REPEATED, Subject.FILE, Severity.ERROR, Owner.PARTNER, 5,
        "same file as two types",
        "The same file is two types of evidence of one sale.",
        "Withdraw the record of the wrong type, and request that type again for the right file.",
        _TYPES,
    ),
    Code(
        IntegrityProblem.KEY_DIFFERS, Subject.FILE, Severity.ERROR, Owner.OPERATIONS, 3,
        "key written otherwise",
        "No file lies under the key of the record, but one of no record does under that key in another writing.",
        "Have the statement of the service yield keys as the bucket writes them, without an address, a slash in "
        "front or %20; the file counts for no sale until then.",
        _UPLOAD,
    ),
    Code(
        IntegrityProblem.TYPE_DIFFERS, Subject.FILE, Severity.WARNING, Owner.PARTNER, 20,
        "another type than declared",
        "The file is of the right kind, but not of the type that was declared.",
        "Declare what is sent: correct fileFormat and type in the requests. The file goes on counting.",
        "Evidence upload request (shape)",
    ),
    Code(
        IntegrityProblem.EXTERNAL_LINK, Subject.FILE, Severity.WARNING, Owner.COMPLIANCE, 20,
        "document with external links",
        "The document leads to an address or to another file.",
        "Follow no link in it; where it is usual, accept it by a waiver. The file goes on counting.",
    ),
    Code(
        IntegrityProblem.NO_SPEECH, Subject.FILE, Severity.WARNING, Owner.COMPLIANCE, 20,
        "recording without speech",
        "There is sound in the recording, but no speech was found in it.",
        "Listen to it: toolkit evidence link EVIDENCE_ID. A program looked for speech and may be wrong: "
        "withdraw the record only if you hear none. The file goes on counting.",
    ),
    Code(
        IntegrityProblem.SILENCE_UNKNOWN, Subject.FILE, Severity.WARNING, Owner.COMPLIANCE, 20,
        "recording not heard to its end",
        "The recording could not be decoded to its end here, or ends before its header says.",
        "Listen to it: toolkit evidence link EVIDENCE_ID. The file goes on counting.",
    ),
    Code(
        IntegrityProblem.OBJECT_WITHOUT_RECORD, Subject.FILE, Severity.WARNING, Owner.OPERATIONS, 10,
        "belongs to no record",
        "The file belongs to no evidence record.",
        "Find out who wrote it; it counts for no sale.",
        _REQUEST,
    ),
    Code(
        IntegrityProblem.KEY_OUTSIDE_LAYOUT, Subject.FILE, Severity.WARNING, Owner.OPERATIONS, 10,
        "lies outside the layout",
        "The file lies where no upload form leads.",
        "Find out who wrote it and whether it belongs in this bucket; it counts for no sale.",
        _UPLOAD,
    ),
    *(_jump(count, name) for count, name in JUMPS.items()),
    Code(
        REQUEST_OVERDUE, Subject.PERSON, Severity.CRITICAL, Owner.COMPLIANCE, 1,
        "request of a person overdue",
        "A person asked for data, or for their erasure, and has no answer after 15 days (LGPD, art. 19).",
        "Answer, also where the answer is a reasoned refusal, and note it: toolkit privacy request list.",
    ),
    _reason(
        Reason.UNUSABLE,
        "file unusable",
        "A file is in the bucket, but it cannot be used.",
        "Request credentials again and send a whole file of the right kind; toolkit sale show names the fault of "
        "this one.",
        _TYPES,
    ),
    _reason(
        Reason.VANISHED,
        "file vanished",
        "A file was seen in the bucket under the key of the record, and is there no more.",
        "Find out who deleted it and restore it, or request credentials and send the file again.",
    ),
    _reason(
        Reason.NOT_UPLOADED,
        "not uploaded yet",
        "Credentials were issued and are still valid; the file has not arrived.",
        "Upload the file before the credentials run out.",
        _UPLOAD,
    ),
    _reason(
        Reason.EXPIRY_UNKNOWN,
        "no file, expiry unknown",
        "A record was made, and no file is there; nobody says until when its credentials are valid.",
        "Ask the partner whether the file is on its way; otherwise request credentials again.",
        _UPLOAD,
    ),
    _reason(
        Reason.EXPIRED,
        "credentials expired",
        "Credentials were issued and ran out before a file arrived.",
        "Request credentials again, and upload the file at once.",
    ),
    _reason(
        Reason.WITHDRAWN,
        "withdrawn",
        "What was asked for was withdrawn, and nothing was asked for since.",
        "Request credentials again, and upload the right file.",
    ),
    _reason(
        Reason.NEVER_REQUESTED,
        "never requested",
        "Nobody has asked for upload credentials.",
        "Request credentials and upload the file.",
    ),
    _fault(ContentProblem.EMPTY, "empty", "The file has no content."),
    _fault(
        ContentProblem.DAMAGED,
        "damaged",
        "The file is truncated or broken: it cannot be opened as what it is.",
    ),
    _fault(
        ContentProblem.ENCRYPTED,
        "encrypted",
        "The document is encrypted.",
        "Save the document without a password, and send it under new credentials.",
    ),
    _fault(ContentProblem.TOO_SHORT, "too short", "The recording lasts less than one second."),
    _fault(ContentProblem.SILENT, "silent", "The recording is silent, but for less than a quarter of a second."),
    _fault(
        WRONG_KIND,
        "of another kind",
        "The file is not of the kind that its evidenceType demands.",
        "Send a PDF for a document and a recording for an audio, under new credentials.",
    ),
    Code(
        SALE_GONE, Subject.END, None, None, None,
        "sale is gone",
        "The service holds the sale no more: its findings are gone with it, and nobody mended them.",
        "Find out who removed the sale, and why; a sale that is back has its findings again.",
        _STATES,
    ),
)  # fmt: skip

CODES: Final = {code.code: code for code in _ALL}
"""Every code, gravest first within its subject; a member of an enumeration finds the entry of its code."""

NOT_TOLD_TO_PARTNERS: Final = tuple(
    code for code, each in CODES.items() if each.subject is Subject.FILE and each.owner is Owner.COMPLIANCE
)
"""The codes of suspicions about files, of which partners are not told."""


def names_of(codes: Iterable[str]) -> dict[str, str]:
    """Return each of these codes with its short name."""
    return {str(code): CODES[code].name for code in codes}


def similar(text: str) -> list[str]:
    """Return the codes that somebody who wrote ``text`` may have meant, the likeliest first."""
    wanted = text.strip().upper().replace("-", "_").replace(" ", "_")
    holding = [code for code in CODES if len(wanted) > 2 and wanted in code]
    return list(dict.fromkeys([*holding, *get_close_matches(wanted, CODES, n=5, cutoff=0.5)]))[:5]


def no_finding(code: str) -> Message | None:
    """Return why no finding can have this code; ``None`` where one can."""
    if code in CODES and CODES[code].severity is not None:
        return None
    likely = [each for each in similar(code) if CODES[each].severity] if code not in CODES else []
    if likely:
        return Message("{} is the code of no finding (did you mean {}?)", code, either(likely))
    return Message("{} is the code of no finding (toolkit explain lists all codes)", code)
