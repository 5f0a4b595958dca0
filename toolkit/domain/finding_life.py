"""The identity of a finding over time, and the states of its life."""

from enum import StrEnum
from hashlib import sha1
from typing import Final
from uuid import UUID

from toolkit.domain.integrity import HASH, IntegrityFinding, IntegrityProblem

NAMESPACE: Final = UUID("6f9b3f0e-4c1d-5b8e-9d55-2d1f0c7a6e21")
"""The namespace of the ids of findings; an id is a UUID of version 5 in it and never changes."""


class FindingStatus(StrEnum):
    """The state of a finding at one moment."""

    OPEN = "open"
    WAIVED = "waived"
    RESOLVED = "resolved"
    REOPENED = "reopened"


_VARIANT: Final = {f"{digit:x}": f"{digit & 3 | 8:x}" for digit in range(16)}


def finding_id(code: str, *subject: str) -> str:
    """Return the id of a finding: of a sale, its code and the sale id; of a file, also what tells the file.

    The parts are joined by the unit separator, which neither a sale id nor a code can hold.
    """
    # As ``uuid5`` makes it, in a third of the time: there may be millions of findings.
    digits = sha1(NAMESPACE.bytes + "\x1f".join((code, *subject)).encode(), usedforsecurity=False).hexdigest()
    variant = _VARIANT[digits[16]] + digits[17:20]
    return f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-{variant}-{digits[20:32]}"


def file_finding_ids(finding: IntegrityFinding) -> list[tuple[str, str | None]]:
    """Return one id for each sale that the file concerns, with the sale; one without a sale where there is none.

    Files with the same contents are told by them, since another may join them, and every other by the key of its
    object; what lies outside the layout is one finding, whatever lies there.
    """
    contents = finding.problem.startswith("CONTENT_") and "".join(finding.detail.partition(HASH)[1:])
    all_alike = finding.problem is IntegrityProblem.KEY_OUTSIDE_LAYOUT
    subject = "" if all_alike else contents or "|".join(dict.fromkeys(finding.keys))
    if not finding.sale_ids:
        return [(finding_id(finding.problem, subject), None)]
    return [(finding_id(finding.problem, subject, sale_id), sale_id) for sale_id in finding.sale_ids]
