"""Write the log as a directory of tiles, from which other people's tools make the proofs themselves.

The directory has the form of C2SP ``tlog-tiles``: ``checkpoint``, ``tile/LEVEL/NUMBER`` with up to 256 hashes, and
``tile/entries/NUMBER`` with the entries, each after its length in two bytes.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.atomic_files import PrivateFolder
from toolkit.contract.events import ERASED, HIDDEN, CustodyEvent, Event, LogKeys
from toolkit.database.connection import Database
from toolkit.errors import InvalidInput, UnreadableFile
from toolkit.log.merkle import HASH_BYTES, TILE, ReadTile, append, leaf_hash, root
from toolkit.log.notes import Checkpoint, SignedState, VerifierKey, text_of
from toolkit.log.sealing import CLOCKS_DIFFER, LONGEST_ENTRY, entry_of, signed_state
from toolkit.message import Message

_MADE: Final = (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError, UnreadableFile)
"""The errors of reading an entry or an event that somebody made."""

OTHER_ENTRIES: Final = Message("The entries are not those that were signed.")


def export_tiles(database: Database, out: Path, keys: LogKeys) -> tuple[SignedState, Message | None]:
    """Write the log up to its newest checkpoint into the empty folder ``out``.

    The tree is computed anew from the entries, and each entry is compared with its event: a change in the tables
    shows.

    Returns:
        The state that was written, and the first thing in the database that does not fit it, if any.

    Raises:
        InvalidInput: nothing is sealed yet, or the folder is not empty.
    """
    with database.snapshot() as connection:
        signed = signed_state(connection)
        with PrivateFolder(out) as draft:
            if any(each.name != draft.name for each in out.iterdir()):
                raise InvalidInput("{} is not empty.", out)
            misfit = _write(connection, signed, draft / "log", keys)
            for part in list((draft / "log").iterdir()):
                part.replace(out / part.name)
        return signed, misfit


def read_tiles(folder: Path) -> tuple[ReadTile, int, list[str]]:
    """Return what reads the tiles of a log that was exported, the number of its entries, and its keys.

    Its keys are the newest one, and those that were replaced: each signed the one after it (``KEY_ROTATED``).

    Raises:
        UnreadableFile: it is none.
    """

    def tile(level: int, number: int) -> bytes:
        return _read(_stored(folder, str(level), number))

    found = Checkpoint.parse(text_of(_read(folder / "checkpoint").decode("utf-8", "replace")))
    keys = [_read(folder / "log.vkey").decode("utf-8", "replace").strip()]
    replaced = [each for entries in _entries(folder) for each in entries if b'"KEY_ROTATED"' in each]
    for entry in reversed(replaced):
        with suppress(*_MADE):
            detail = json.loads(entry)["detail"]
            old = VerifierKey.parse(detail["old"])
            if detail["new"] in keys and old.opens(f"{detail['new']}\n\n{detail['signature']}") is not None:
                keys.append(str(old))
    return tile, found.size if found else 0, keys


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        raise UnreadableFile("{} cannot be read as a part of an exported log.", path) from None


def _write(connection: Connection, signed: SignedState, out: Path, keys: LogKeys) -> Message | None:
    misfit: Message | None = None
    unsaid = 0
    found = connection.execute(sa.text(_ENTRIES), {"size": signed.size}, execution_options={"yield_per": TILE})
    for number, rows in enumerate(found.partitions(TILE)):
        misfit = misfit or next((wrong for row in rows if (wrong := _misfit(row, keys)) is not None), None)
        unsaid += 0 if misfit else sum(_erased(row) for row in rows)
        framed = b"".join(min(len(row.entry), LONGEST_ENTRY).to_bytes(2, "big") + row.entry for row in rows)
        _put(_place(out, "entries", number, len(rows)), framed)
    for name, content in signed.files().items():
        _put(out / name, content)
    whole, turned_back = computed(out, write=True)
    if not signed.is_of(VerifierKey.parse(signed.vkey), whole):
        return OTHER_ENTRIES
    if misfit is None and unsaid > 0:
        return Message("Events whose hashes are gone, and no erasure says so: {:,}.", unsaid)
    if misfit and not all(map(keys.can_unwrap, connection.scalars(sa.text(_OLDEST_KEY)))):
        return Message("{} Or its key is missing: put it into TOOLKIT_LOG_KEY, behind the newest one.", misfit)
    return misfit or turned_back


def computed(folder: Path, *, write: bool = False) -> tuple[bytes, Message | None]:
    """Compute the tree of an exported log anew from its entries; ``write`` its tiles.

    Returns:
        The root, and which report says an earlier time than one before it, if any does.
    """
    growing: dict[tuple[int, int], bytes] = {}
    latest, turned_back = datetime.min.replace(tzinfo=UTC), None
    size = 0

    def tile(level: int, number: int) -> bytes:
        return growing[level, number]

    for entries in _entries(folder):
        for entry in (each for each in entries if b'"kind":"REPORTED"' in each):
            with suppress(*_MADE):
                event = json.loads(entry)
                at = datetime.fromisoformat(event["at"])
                if at + CLOCKS_DIFFER < latest:
                    turned_back = Message(
                        "Event {} says an earlier time than a report before it: a clock was turned back.",
                        event["id"],
                    )
                latest = max(latest, at)
        growing |= append(tile, size, map(leaf_hash, entries))
        size += len(entries)
        for place in [each for each, hashes in growing.items() if len(hashes) == TILE * HASH_BYTES]:
            full = growing.pop(place)
            if write:
                _put(_place(folder, str(place[0]), place[1], TILE), full)
    for (level, number), hashes in growing.items() if write else ():
        _put(_place(folder, str(level), number, len(hashes) // HASH_BYTES), hashes)
    return root(tile, size), turned_back


def rewritten(before: Path, after: Path) -> Message | None:
    """Return what was done to the first entry of an exported log that is not as in an earlier one, if any is."""

    def has(folder: Path, entry: bytes, number: int) -> bool:
        return entry in islice(chain.from_iterable(_entries(folder)), number, None)

    both = zip(*(chain.from_iterable(_entries(folder)) for folder in (before, after)), strict=False)
    for number, (was, found) in enumerate(both, 1):
        if was != found:
            return {
                (False, False): Message("Entry {:,} says something else: it was edited.", number),
                (True, False): Message("Entry {:,} was not there: it was inserted.", number),
                (False, True): Message("What was entry {:,} is gone: it was deleted.", number),
                (True, True): Message("What was entry {:,} stands behind others: they were reordered.", number),
            }[has(after, was, number), has(before, found, number)]
    return None


def _entries(folder: Path) -> Iterator[list[bytes]]:
    """Yield the entries of an exported log, tile by tile: in its file each stands after its length."""
    number, entries = 0, [b""] * TILE
    while len(entries) == TILE and (path := _stored(folder, "entries", number)).exists():
        framed, entries, start = _read(path), [], 0
        while start < len(framed):
            end = start + 2 + int.from_bytes(framed[start : start + 2], "big")
            entries.append(framed[start + 2 : end])
            start = end
        yield entries
        number += 1


def _erased(row: Any) -> int:
    """Return 1 for an event whose hashes are gone; for an erasure, the number that it took, below zero."""
    if row.kind == CustodyEvent.ERASED:
        with suppress(*_MADE):
            return -int(json.loads(row.entry)["detail"].get("events", 0))
        return 0
    return int(row.detail is not None and ERASED in row.detail)


def _misfit(row: Any, keys: LogKeys) -> Message | None:
    """Return in which way an event is not what its entry says; that of another key cannot be compared."""
    if not row.event:  # the last seal of the chain before this log
        return None
    if row.id is None:
        return Message("Event {} is in the log, and no more in the database.", row.event)
    event = Event(row.id, row.kind, row.happened_at, row.detail, row.secret)
    with suppress(*_MADE):
        if row.entry == entry_of(event, keys):
            return None
        sealed, now = json.loads(row.entry), event.as_json()
        gone = now["detail"].pop(ERASED, False)
        for name in HIDDEN.get(event.kind, ()):
            if gone or (name in event.detail and keys.agrees(event, name, sealed["detail"].get(name))):
                sealed["detail"].pop(name, None)
                now["detail"].pop(name, None)
        if sealed == now:
            return None
    if row.sale_key is not None and row.secret is None:
        return Message(
            "Event {} cannot be compared: the key of its sale is gone, and no erasure says so.", row.event
        )
    return Message("Event {} ({}) is another one in the database than in the log.", row.event, row.kind)


def _place(out: Path, what: str, number: int, width: int) -> Path:
    """Return the path of a tile: its number in groups of three digits, all but the last after an x."""
    groups = [f"{number % 1000:03}"]
    while number := number // 1000:
        groups.insert(0, f"x{number % 1000:03}")
    path = out.joinpath("tile", what, *groups)
    return path if width == TILE else path.with_name(f"{path.name}.p") / str(width)


def _stored(folder: Path, what: str, number: int) -> Path:
    """Return the path of a tile as it is there, whole or the part of one."""
    whole = _place(folder, what, number, TILE)
    return whole if whole.exists() else next(whole.with_name(f"{whole.name}.p").glob("*"), whole)


def _put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


_OLDEST_KEY: Final = "SELECT wrapped FROM audit.sale_keys WHERE wrapped IS NOT NULL ORDER BY id LIMIT 1"

_ENTRIES: Final = """
    SELECT entry, entry.event, sale_key, event.id, kind, happened_at, detail,
           CASE WHEN sale_key IS NULL THEN uuid_send(salt) ELSE wrapped END AS secret
    FROM audit.log_entries AS entry
    LEFT JOIN audit.custody_events AS event ON event.id = entry.event
    LEFT JOIN audit.sale_keys AS of_sale ON of_sale.id = sale_key
    WHERE index < :size
    ORDER BY index
"""
