"""The custody log's events: their kinds, their JSON form, and the keys that hide fields of them.

A hash of a name, or of a file name that is a CPF, is found by trying all of them. So a sealed event holds keyed
hashes (HMAC-SHA256), each field under a key of its own: who is given it and the value checks this field alone.
"""

import hmac
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, Self


class CustodyEvent(StrEnum):
    """The kind of an event in the custody log.

    Beside it stand the fields that the log holds under a key: somebody could guess them, or has the very file.
    """

    hidden: tuple[str, ...]

    def __new__(cls, kind: str, *hidden: str) -> Self:
        """Make a member."""
        member = str.__new__(cls, kind)
        member._value_, member.hidden = kind, hidden
        return member

    ASKED = "ASKED", "request"
    ISSUED = "ISSUED", "record"
    REISSUED = "REISSUED"
    SALES_OBSERVED = "SALES_OBSERVED", "sales"
    SALE_GONE = "SALE_GONE"
    RECORDED = "RECORDED", "record"
    RECORD_CHANGED = "RECORD_CHANGED", "record"
    RECORD_GONE = "RECORD_GONE"
    UPLOADED = "UPLOADED", "key", "etag"
    RESTORED = "RESTORED", "key", "etag"
    GONE = "GONE", "key"
    VERIFIED = "VERIFIED", "sha256"
    WITHDRAWN = "WITHDRAWN", "by", "approvedBy", "account", "reason"
    COMPLETED = "COMPLETED", "sale", "files"
    AUDITED = "AUDITED"
    REPORTED = "REPORTED"
    PARTNER_TOLD = "PARTNER_TOLD", "partner"
    FINDING_ANSWERED = "FINDING_ANSWERED", "by"
    REVIEW_DRAWN = "REVIEW_DRAWN", "by"
    REVIEWED = "REVIEWED", "by"
    UNMASKED = "UNMASKED", "account", "reason"
    OPENED = "OPENED", "by", "account", "reason"
    WAIVED = "WAIVED"
    WAIVER_REVOKED = "WAIVER_REVOKED"
    BUCKET_ADOPTED = "BUCKET_ADOPTED"
    SERVICE_ADOPTED = "SERVICE_ADOPTED"
    EPOCH_OPENED = "EPOCH_OPENED"
    RESTORE_CONFIRMED = "RESTORE_CONFIRMED", "by", "approvedBy", "account", "reason"
    HELD = "HELD", "sale", "by", "basis"
    HOLD_RELEASED = "HOLD_RELEASED", "by", "reason"
    REQUESTED = "REQUESTED", "subject"
    ANSWERED = "ANSWERED", "by", "basis"
    ERASED = "ERASED", "by", "approvedBy", "account", "basis"
    KEY_ROTATED = "KEY_ROTATED"
    TIMESTAMPED = "TIMESTAMPED"


HIDDEN: Final[Mapping[str, tuple[str, ...]]] = {kind: kind.hidden for kind in CustodyEvent}
ERASED: Final = "erased"  # the mark in the detail of an event whose hashes were destroyed by an erasure


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


_encode: Final = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, check_circular=False
).encode


def canonical(document: object) -> bytes:
    """Return the one line of JSON that stands for a document in the log."""
    return _encode(document).encode()


def commitment(key: bytes, value: object) -> str:
    """Return what an entry holds instead of a value: its keyed hash, or that of its JSON where it is no text."""
    return hmac.digest(key, value.encode() if isinstance(value, str) else canonical(value), "sha256").hex()


@dataclass(frozen=True, slots=True)
class LogKeys:
    """The keys, the newest first: it seals, and what the others sealed can still be compared with the tables."""

    keys: tuple[str, ...] = field(default=(), repr=False)

    def _of_field(self, event: Event, name: str) -> Iterator[bytes]:
        """Yield the keys that a field may be sealed under, the one of now first; without a salt one for all."""
        keys = [key.encode() for key in (*self.keys, "")]
        if event.salt is None:
            yield from keys[:-1]
            return
        for key in keys:
            yield hmac.digest(key, event.salt + name.encode(), "sha256")
        for key in keys:  # earlier, one of the event stood between
            yield hmac.digest(hmac.digest(key, event.salt, "sha256"), name.encode(), "sha256")

    def sealed(self, event: Event) -> dict[str, Any]:
        """Return the event (as JSON) as it is sealed, its fields under their keys."""
        document = event.as_json()
        for name in HIDDEN.get(event.kind, ()):
            if name in event.detail and (key := next(self._of_field(event, name), None)) is not None:
                document["detail"][name] = commitment(key, event.detail[name])
        return document

    def opens(self, event: Event, name: str, told: object) -> bytes | None:
        """Return the key under which an entry holds a field of this event as ``told``, if one of these does."""
        keys = self._of_field(event, name)
        return next((key for key in keys if commitment(key, event.detail[name]) == told), None)

    def agrees(self, event: Event, name: str, told: object) -> bool:
        """Tell whether ``told`` stands for a field of this event, also where all had the key of the event."""
        value, salt = event.detail[name], event.salt or b""
        earlier = [commitment(hmac.digest(key.encode(), salt, "sha256"), value) for key in (*self.keys, "")]
        return told == value or self.opens(event, name, told) is not None or told in earlier
