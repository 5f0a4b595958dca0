"""Verify exports of the chain of hashes that the custody log was before version 0.2, by the file alone.

The last seal of that chain is the first entry of the log that followed it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from toolkit.contract.events import CustodyEvent
from toolkit.errors import UnreadableFile

_BEGINNING: Final = "0" * 64  # the value that stands for the seal before the first one


def verify_log(path: Path, kept_seal: str | None = None) -> ChainVerdict:
    """Follow the chain through an exported log, up to the first line that does not fit.

    ``kept_seal`` is the hash of a seal that was kept elsewhere: without it a log that was forged as a whole, or
    cut off at a seal, cannot be told from a true one.

    Raises:
        UnreadableFile: the file is missing, or no exported custody log at all.
    """
    found = ChainVerdict()
    try:
        with path.open(encoding="utf-8") as file:
            for number, text in enumerate(file, start=1):
                if (misfit := found.follow(text)) is not None:
                    found.misfit = f"line {number}: {misfit}"
                    return found
    except (OSError, UnicodeDecodeError):
        raise UnreadableFile("{} cannot be read as an exported custody log.", path) from None
    if found.under_way:
        found.misfit = f"the end is missing: {found.under_way} events have no seal"
    elif not found.seals:
        found.misfit = "it holds nothing: no event and no seal"
    elif kept_seal is not None and kept_seal.strip().lower() not in found.hashes - {_BEGINNING}:
        found.misfit = "no seal of this log is the one that was kept: it was forged as a whole, or cut off"
    return found


class ChainVerdict:
    """The contents of an exported log up to the first line that does not fit, which ``misfit`` names and why.

    ``newest`` is the hash of the last seal that fits.
    """

    def __init__(self) -> None:
        self.events = self.seals = self.under_way = 0
        self.misfit: str | None = None
        self.newest = _BEGINNING
        self.hashes = {_BEGINNING}
        self._sealed_at = ""
        self._digest = bytes.fromhex(_BEGINNING)

    def follow(self, text: str) -> str | None:
        """Follow one more line; return in which way it does not fit, or ``None``."""
        try:
            line = json.loads(text, object_pairs_hook=_object)
            if set(line) == {"event", "digest"}:
                return self._event(line["event"], line["digest"])
            if set(line) == {"seal"}:
                return self._seal(dict(line["seal"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            pass
        return "no event and no seal"

    def _event(self, event: Mapping[str, Any], digest: str) -> str | None:
        computed = sha256(self._digest + _canonical(event)).digest()
        if computed.hex() != digest:
            return f"event {event['id']} ({event['kind']}) was changed, put in or moved, or follows a gap"
        self._digest = computed
        self.events += 1
        self.under_way += 1
        before = event["detail"].get("seal") if event["kind"] == CustodyEvent.REPORTED else None
        if before is not None and before not in self.hashes:
            return f"seal {before} is named by a report and not here: the log was sealed anew since"
        return None

    def _seal(self, seal: dict[str, Any]) -> str | None:
        declared = seal.pop("hash")
        if not (
            seal["number"] == self.seals + 1
            and seal["previous"] == self.newest
            and seal["events"] == self.under_way
            and sha256(self._digest + _canonical(seal)).hexdigest() == declared
        ):
            return f"seal {seal['number']} does not fit the events before it"
        if seal["sealedAt"] < self._sealed_at:
            return f"seal {seal['number']} is older than the one before: the clock ran backwards"
        self._sealed_at, self.newest = seal["sealedAt"], declared
        self._digest = bytes.fromhex(declared)
        self.hashes.add(declared)
        self.seals += 1
        self.under_way = 0
        return None


def _canonical(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object, refusing a name that stands twice: only the last of its values would be hashed."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found
