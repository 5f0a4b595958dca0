"""The keys of the custody log: without them nobody can guess what a hash in it stands for.

A hash of a name, or of a file name that is a CPF, is found by trying all of them. So a sealed event holds its
keyed hash (HMAC-SHA256), and the key is kept apart from the log.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolkit.domain.custody_events import HASHES


@dataclass(frozen=True, slots=True)
class LogKeys:
    """The keys, the newest first; events are sealed with that one, and earlier seals are read with theirs."""

    keys: tuple[str, ...] = field(default=(), repr=False)

    @property
    def newest(self) -> str | None:
        """The id of the key that seals; ``None`` where there is none, and hashes have no key."""
        return key_id(self.keys[0]) if self.keys else None

    def has(self, wanted: str | None) -> bool:
        """Tell whether events that were sealed with this key can be written."""
        return wanted is None or any(key_id(key) == wanted for key in self.keys)

    def hashed(self, event: Mapping[str, Any], wanted: str | None) -> dict[str, Any]:
        """Return the event (as JSON) as it is sealed with the key of this id, which must be here."""
        if wanted is None:
            return dict(event)
        key = next(key for key in self.keys if key_id(key) == wanted).encode()
        detail = {
            name: hmac.new(key, value.encode(), hashlib.sha256).hexdigest()
            if name in HASHES.get(event["kind"], ()) and isinstance(value, str)
            else value
            for name, value in event["detail"].items()
        }
        return {**event, "detail": detail}


def key_id(key: str) -> str:
    """Return the name of a key, which says nothing of it."""
    return hashlib.sha256(b"custody log key " + key.encode()).hexdigest()[:16]
