"""Verify exports of the chain of hashes that the custody log was before version 0.2, by the file alone.

The last seal of that chain is the first entry of the log that followed it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from toolkit.contract.events import CustodyEvent
from toolkit.errors import UnreadableFile

_BEGINNING: Final = "0" * 64
"""The value that stands for the seal before the first one."""


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
    chain, misfit = Chain(), None
    try:
        with path.open(encoding="utf-8") as file:
            for number, text in enumerate(file, start=1):
                if (misfit := _misfit(chain, text)) is not None:
                    misfit = f"line {number}: {misfit}"
                    break
    except (OSError, UnicodeDecodeError):
        raise UnreadableFile("{} cannot be read as an exported custody log.", path) from None
    if misfit is None and chain.under_way:
        misfit = f"the end is missing: {chain.under_way} events have no seal"
    if misfit is None and not chain.seals:
        misfit = "it holds nothing: no event and no seal"
    if misfit is None and kept_seal is not None and not chain.holds(kept_seal):
        misfit = "no seal of this log is the one that was kept: it was forged as a whole, or cut off"
    return LogVerdict(chain.events, chain.seals, chain.newest if chain.seals else None, misfit)


class Chain:
    """Follows the lines of a log; ``broken`` after one that nothing can follow."""

    def __init__(self) -> None:
        self.events = self.seals = self.under_way = 0
        self.newest = _BEGINNING
        self.broken = False
        self._sealed_at = ""
        self._hashes = {_BEGINNING}
        self._digest = bytes.fromhex(_BEGINNING)

    def holds(self, kept_seal: str) -> bool:
        """Tell whether a seal so far has this hash."""
        return kept_seal.strip().lower() in self._hashes - {_BEGINNING}

    def follow(self, line: Mapping[str, Any]) -> str | None:
        """Follow one more line; return in which way it does not fit, or ``None``."""
        if "event" in line:
            return self._event(line["event"], line["digest"])
        return self._seal(dict(line["seal"]))

    def _event(self, event: Mapping[str, Any], digest: str) -> str | None:
        computed = sha256(self._digest + _canonical(event)).digest()
        if computed.hex() != digest:
            self.broken = True
            return f"event {event['id']} ({event['kind']}) was changed, put in or moved, or follows a gap"
        self._digest = computed
        self.events += 1
        self.under_way += 1
        before = event["detail"].get("seal") if event["kind"] == CustodyEvent.REPORTED else None
        if before is not None and before not in self._hashes:
            return f"seal {before} is named by a report and not here: the log was sealed anew since"
        return None

    def _seal(self, seal: dict[str, Any]) -> str | None:
        declared = seal.pop("hash")
        self.broken = not (
            seal["number"] == self.seals + 1
            and seal["previous"] == self.newest
            and seal["events"] == self.under_way
            and sha256(self._digest + _canonical(seal)).hexdigest() == declared
        )
        if self.broken:
            return f"seal {seal['number']} does not fit the events before it"
        before, self._sealed_at = self._sealed_at, seal["sealedAt"]
        self._hashes.add(declared)
        self.seals += 1
        self.under_way = 0
        self.newest = declared
        self._digest = bytes.fromhex(declared)
        if self._sealed_at < before:
            return f"seal {seal['number']} is older than the one before: the clock ran backwards"
        return None


def _canonical(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def _misfit(chain: Chain, text: str) -> str | None:
    """Follow a line of a file; return the reason why it does not fit, or ``None``."""
    try:
        line = json.loads(text, object_pairs_hook=_object)
        if set(line) in ({"event", "digest"}, {"seal"}):
            return chain.follow(line)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    return "no event and no seal"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object, refusing a name that stands twice: only the last of its values would be hashed."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found
