"""What ``toolkit verify`` says of an exported custody log."""

from __future__ import annotations

from pathlib import Path

from toolkit.faces.cli.context import DONE, NEEDS_ATTENTION, note, show
from toolkit.operations.custody_log import verify_log


def verify_custody_log(path: Path, kept_seal: str | None) -> int:
    """Follow the chain and name the first line that does not fit."""
    found = verify_log(path, kept_seal)
    if found.misfit is not None:
        show(f"changed     {path}: {found.misfit}")
        return NEEDS_ATTENTION
    show(f"as sealed   {path}: {found.events} events under {found.seals} seals")
    if found.newest is not None:
        show(f"newest seal {found.newest}")
    if kept_seal is None:
        note("toolkit: without --seal, a log that was forged as a whole or cut off at a seal looks the same")
    return DONE
