"""The kinds of events that the custody log holds."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class CustodyEvent(StrEnum):
    """The kind of an event in the custody log."""

    ASKED = "ASKED"
    ISSUED = "ISSUED"
    REISSUED = "REISSUED"
    SALES_OBSERVED = "SALES_OBSERVED"
    SALE_GONE = "SALE_GONE"
    RECORDED = "RECORDED"
    RECORD_CHANGED = "RECORD_CHANGED"
    RECORD_GONE = "RECORD_GONE"
    UPLOADED = "UPLOADED"
    RESTORED = "RESTORED"
    GONE = "GONE"
    VERIFIED = "VERIFIED"
    WITHDRAWN = "WITHDRAWN"
    COMPLETED = "COMPLETED"
    AUDITED = "AUDITED"
    REPORTED = "REPORTED"
    UNMASKED = "UNMASKED"
    OPENED = "OPENED"
    WAIVED = "WAIVED"
    WAIVER_REVOKED = "WAIVER_REVOKED"
    OBSERVATIONS_MOVED = "OBSERVATIONS_MOVED"
    BUCKET_ADOPTED = "BUCKET_ADOPTED"
    SERVICE_ADOPTED = "SERVICE_ADOPTED"
    EPOCH_OPENED = "EPOCH_OPENED"


HASHES: Final[Mapping[str, tuple[str, ...]]] = {
    CustodyEvent.ASKED: ("request",),
    CustodyEvent.ISSUED: ("record",),
    CustodyEvent.SALES_OBSERVED: ("sales",),
    CustodyEvent.RECORDED: ("record",),
    CustodyEvent.RECORD_CHANGED: ("record",),
    CustodyEvent.UPLOADED: ("key",),
    CustodyEvent.RESTORED: ("key",),
    CustodyEvent.GONE: ("key",),
    CustodyEvent.WITHDRAWN: ("by", "approvedBy", "account", "reason"),
    CustodyEvent.COMPLETED: ("sale",),
    CustodyEvent.OPENED: ("by", "account", "reason"),
}
"""The parts of an event that are hashes of something that could be guessed, such as a name or a CPF."""
