"""The custody log's events: their kinds, their JSON form, and the keys that hide names in them.

A hash of a name, or of a file name that is a CPF, is found by trying all of them. So a sealed event holds its
keyed hash (HMAC-SHA256), and the key is kept apart from the log.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final


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
    PARTNER_TOLD = "PARTNER_TOLD"
    FINDING_ANSWERED = "FINDING_ANSWERED"
    REVIEW_DRAWN = "REVIEW_DRAWN"
    REVIEWED = "REVIEWED"
    UNMASKED = "UNMASKED"
    OPENED = "OPENED"
    WAIVED = "WAIVED"
    WAIVER_REVOKED = "WAIVER_REVOKED"
    BUCKET_ADOPTED = "BUCKET_ADOPTED"
    SERVICE_ADOPTED = "SERVICE_ADOPTED"
    EPOCH_OPENED = "EPOCH_OPENED"
    RESTORE_CONFIRMED = "RESTORE_CONFIRMED"
    HELD = "HELD"
    HOLD_RELEASED = "HOLD_RELEASED"
    REQUESTED = "REQUESTED"
    ANSWERED = "ANSWERED"
    ERASED = "ERASED"
    KEY_ROTATED = "KEY_ROTATED"
    TIMESTAMPED = "TIMESTAMPED"


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
    CustodyEvent.RESTORE_CONFIRMED: ("by", "approvedBy", "account", "reason"),
    CustodyEvent.COMPLETED: ("sale",),
    CustodyEvent.OPENED: ("by", "account", "reason"),
    CustodyEvent.PARTNER_TOLD: ("partner",),
    CustodyEvent.HELD: ("sale", "by", "basis"),
    CustodyEvent.HOLD_RELEASED: ("by", "reason"),
    CustodyEvent.REQUESTED: ("subject",),
    CustodyEvent.ANSWERED: ("by", "basis"),
    CustodyEvent.ERASED: ("by", "approvedBy", "account", "basis"),
    CustodyEvent.FINDING_ANSWERED: ("by",),
    CustodyEvent.REVIEW_DRAWN: ("by",),
    CustodyEvent.REVIEWED: ("by",),
}
"""The parts of an event that are hashes of something that could be guessed, such as a name or a CPF."""


ERASED: Final = "erased"
"""The mark in the detail of an event whose hashes were destroyed by an erasure."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to evidence; ``detail`` holds ids, hashes, counts and times only."""

    id: int
    kind: str
    happened_at: datetime
    detail: Mapping[str, Any]
    salt: bytes | None = None
    """Random; ``None`` where an erasure destroyed it, and of events that were sealed before there was one."""

    def as_json(self) -> dict[str, Any]:
        """Return the event as it is exported and hashed."""
        return {"id": self.id, "kind": self.kind, "at": _moment(self.happened_at), "detail": dict(self.detail)}


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True, slots=True)
class LogKeys:
    """The keys, the newest first: it seals, and what the others sealed can still be compared with the tables."""

    keys: tuple[str, ...] = field(default=(), repr=False)

    def hashed(self, event: Mapping[str, Any], salt: bytes | None) -> dict[str, Any]:
        """Return the event (as JSON) as it is sealed: its hashes are keyed, by the key and by the event's salt."""
        names = HASHES.get(event["kind"], ())
        if not names or (salt is None and not self.keys):
            return dict(event)
        key = self.keys[0].encode() if self.keys else b""
        if salt is not None:
            key = hmac.digest(key, salt, "sha256")
        detail = dict(event["detail"])
        for name in names:
            if isinstance(value := detail.get(name), str):
                detail[name] = hmac.digest(key, value.encode(), "sha256").hex()
        return {**event, "detail": detail}
