"""Tell whether an exported custody log is what was sealed; needs the file only, and a seal kept elsewhere."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.domain.custody_chain import BEGINNING, event_digest, first_digest, seal_hash
from toolkit.domain.custody_events import CustodyEvent
from toolkit.errors import UnreadableFile


@dataclass(frozen=True, slots=True)
class LogVerdict:
    """The contents of an exported log, and the first line that does not fit, with the reason.

    ``misfit`` is ``None`` where everything fits; ``newest`` is the hash of the last seal that fits.
    """

    events: int
    seals: int
    newest: str | None
    misfit: str | None


def verify_log(path: Path, kept_seal: str | None = None) -> LogVerdict:
    """Follow the chain through an exported log, up to the first line that does not fit.

    ``kept_seal`` is the hash of a seal that was kept elsewhere: without it a log that was forged as a whole, or
    cut off at a seal, cannot be told from a true one.

    Raises:
        UnreadableFile: the file is missing, or no exported custody log at all.
    """
    chain = _Chain(kept_seal.strip().lower() if kept_seal is not None else None)
    try:
        with path.open(encoding="utf-8") as file:
            for number, text in enumerate(file, start=1):
                chain.misfit = chain.follow(number, text)
                if chain.misfit is not None:
                    break
    except (OSError, UnicodeDecodeError):
        raise UnreadableFile(f"{path} cannot be read as an exported custody log.") from None
    return chain.verdict()


class _Chain:
    def __init__(self, kept_seal: str | None) -> None:
        self.misfit: str | None = None
        self._kept, self._kept_found = kept_seal, False
        self._events = self._seals = self._under_way = 0
        self._newest = BEGINNING
        self._sealed_at = ""
        self._hashes = {BEGINNING}
        self._digest = first_digest(BEGINNING)

    def follow(self, number: int, text: str) -> str | None:
        """Follow one more line; return the reason why it does not fit, or ``None``."""
        try:
            line = json.loads(text, object_pairs_hook=_object)
            if set(line) == {"event", "digest"}:
                return self._event(number, line["event"], line["digest"])
            if set(line) == {"seal"}:
                return self._seal(number, dict(line["seal"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            pass
        return f"line {number} is no event and no seal"

    def verdict(self) -> LogVerdict:
        """Return the verdict after the last line."""
        if self.misfit is None and self._under_way:
            self.misfit = f"the end is missing: {self._under_way} events have no seal"
        if self.misfit is None and not self._seals:
            self.misfit = "it holds nothing: no event and no seal"
        if self.misfit is None and self._kept is not None and not self._kept_found:
            self.misfit = "no seal of this log is the one that was kept: it was forged as a whole, or cut off"
        newest = self._newest if self._seals else None
        return LogVerdict(self._events, self._seals, newest, self.misfit)

    def _event(self, number: int, event: dict[str, Any], digest: str) -> str | None:
        computed = event_digest(self._digest, event)
        if computed.hex() != digest:
            named = f"event {event['id']} ({event['kind']})"
            return f"line {number}: {named} was changed, put in or moved, or follows a gap"
        before = event["detail"].get("seal") if event["kind"] == CustodyEvent.REPORTED else None
        if before is not None and before not in self._hashes:
            return f"line {number}: a report was written after a seal that this log lacks: it was sealed anew"
        self._digest = computed
        self._events += 1
        self._under_way += 1
        return None

    def _seal(self, number: int, seal: dict[str, Any]) -> str | None:
        declared = seal.pop("hash")
        fits = (
            seal["number"] == self._seals + 1
            and seal["previous"] == self._newest
            and seal["events"] == self._under_way
            and seal_hash(self._digest, seal) == declared
        )
        if not fits:
            return f"line {number}: seal {seal['number']} does not fit the events before it"
        if seal["sealedAt"] < self._sealed_at:
            return f"line {number}: seal {seal['number']} is older than the one before: the clock ran backwards"
        self._sealed_at = seal["sealedAt"]
        self._hashes.add(declared)
        self._seals += 1
        self._under_way = 0
        self._newest = declared
        self._digest = first_digest(declared)
        self._kept_found = self._kept_found or declared == self._kept
        return None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object, refusing a name that stands twice: only the last of its values would be hashed."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found
