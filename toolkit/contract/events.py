"""The custody log's events: their kinds, their JSON form, and the keys that hide fields of them.

A hash of a name, or of a file name that is a CPF, is found by trying all of them. So a sealed event holds keyed
hashes (HMAC-SHA256), each field under a key of its own: who is given it and the value checks this field alone.
It is made of the random key of the sale, or of a salt where no sale is known: an erasure destroys both.
"""

import hmac
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple, Self


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
    UNMASKED = "UNMASKED", "account", "reason", "sale"
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


class Event(NamedTuple):
    """Something that happened to evidence; ``detail`` holds ids, hashes, counts and times only."""

    id: int
    kind: str
    happened_at: datetime
    detail: Mapping[str, Any]
    secret: bytes | None = None
    """The wrapped key of its sale, or a salt; ``None`` where it is destroyed, and where there never was one."""

    def as_json(self) -> dict[str, Any]:
        """Return the event as it is exported and hashed."""
        return {"id": self.id, "kind": self.kind, "at": _moment(self.happened_at), "detail": dict(self.detail)}


@lru_cache(maxsize=1024)  # events of one transaction have one moment
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


_SALT_BYTES: Final = 16
_NONCE_BYTES: Final = 12
_KEY_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class LogKeys:
    """The keys, the newest first: it seals, and what the others sealed can still be compared with the tables."""

    keys: tuple[str, ...] = field(default=(), repr=False)

    def new_sale_key(self) -> bytes:
        """Return a new random key for a sale, wrapped by the newest of these (AES-GCM, its nonce before)."""
        nonce = os.urandom(_NONCE_BYTES)
        wrapped: bytes = _cipher(self.keys[0]).encrypt(nonce, os.urandom(_KEY_BYTES), None)
        return nonce + wrapped

    def can_unwrap(self, wrapped: bytes | None) -> bool:
        """Tell whether one of these wrapped the key of a sale, which was not destroyed."""
        return wrapped is not None and _unwrapped(self.keys, wrapped) is not None

    def sealed(self, event: Event) -> dict[str, Any]:
        """Return the event (as JSON) as it is sealed, its fields under their keys."""
        document = event.as_json()
        detail = document["detail"]
        for name in HIDDEN.get(event.kind, ()):
            if name in detail and (key := _key_of_field(self.keys, event, name)) is not None:
                detail[name] = commitment(key, detail[name])
        return document

    def opens(self, event: Event, name: str, committed: object) -> bytes | None:
        """Return the key under which an entry holds a field of this event as ``committed``, if one does."""
        keys = (_key_of_field((key,), event, name) for key in (*self.keys, ""))
        return next((key for key in keys if key and commitment(key, event.detail[name]) == committed), None)

    def agrees(self, event: Event, name: str, committed: object) -> bool:
        """Tell whether ``committed`` stands for a field of this event."""
        return committed == event.detail[name] or self.opens(event, name, committed) is not None


def _key_of_field(keys: tuple[str, ...], event: Event, name: str) -> bytes | None:
    """Return the key that a field is sealed under; ``None`` where there is none."""
    secret, own = event.secret, keys[0].encode() if keys else b""
    if secret is None:
        return own or None
    if len(secret) == _SALT_BYTES:
        return hmac.digest(own, secret + name.encode(), "sha256")
    key = _unwrapped(keys, secret)
    return key and hmac.digest(key, b"%d\0%b" % (event.id, name.encode()), "sha256")


def _cipher(key: str) -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # of an extra, as the key that signs

    return AESGCM(hmac.digest(key.encode(), b"wraps keys of sales", "sha256"))


@lru_cache(maxsize=65_536)
def _unwrapped(keys: tuple[str, ...], wrapped: bytes) -> bytes | None:
    """Return the key of a sale that one of the keys wrapped; ``None`` where none did."""
    from cryptography.exceptions import InvalidTag

    for key in keys:
        with suppress(InvalidTag):
            found: bytes = _cipher(key).decrypt(wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:], None)
            return found
    return None
