"""The chain of hashes over the custody log: the JSON form of events and seals, and their digests.

Each event's digest covers the digest of the event before, and each seal the last digest of its events and the
hash of the seal before. Whoever keeps the hash of one seal elsewhere can tell whether anything up to it was
changed, left out, put in or moved.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

BEGINNING: Final = "0" * 64
"""The value that stands for the seal before the first one."""

DIGEST_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to evidence; ``detail`` holds ids, hashes, counts and times only."""

    id: int
    kind: str
    happened_at: datetime
    detail: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return the event as it is exported and hashed."""
        return {"id": self.id, "kind": self.kind, "at": _moment(self.happened_at), "detail": dict(self.detail)}


@dataclass(frozen=True, slots=True)
class Seal:
    """The end of a batch of events."""

    number: int
    sealed_at: datetime
    events: int
    previous: str
    hash: str

    def as_json(self) -> dict[str, Any]:
        """Return the seal as it is exported; what is hashed is all of it but the hash."""
        return {**seal_header(self.number, self.sealed_at, self.events, self.previous), "hash": self.hash}


def seal_header(number: int, sealed_at: datetime, events: int, previous: str) -> dict[str, Any]:
    """Return the part of a seal that its hash covers."""
    return {"number": number, "sealedAt": _moment(sealed_at), "events": events, "previous": previous}


def first_digest(previous: str) -> bytes:
    """Return the digest that stands before the first event of a batch: the hash of the seal before."""
    return bytes.fromhex(previous)


def event_digest(before: bytes, event: Mapping[str, Any]) -> bytes:
    """Return the digest of an event (as JSON) after the one with the digest ``before``."""
    return hashlib.sha256(before + _canonical(event)).digest()


def seal_hash(last_digest: bytes, header: Mapping[str, Any]) -> str:
    """Return the hash of a seal after its last event."""
    return hashlib.sha256(last_digest + _canonical(header)).hexdigest()


def _canonical(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
