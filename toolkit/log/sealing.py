"""Append the events recorded since the last checkpoint to the tree, sign the new state, and prove what is in it.

Events are appended in the order of their epochs and transactions, and only when no older transaction can still
record any: so the place of an event in the log never changes, and no writer is made to wait.
"""

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql import insert

from toolkit.contract.events import Event, LogKeys, canonical
from toolkit.database.connection import Database, Lock, raw, take
from toolkit.database.tables import custody_events, log_checkpoints, log_entries, log_tiles
from toolkit.errors import InvalidInput, LogDiffers, LogKeyMissing
from toolkit.log.merkle import ReadTile, append, inclusion_proof, leaf_hash, root
from toolkit.log.notes import Checkpoint, EntryProof, LogSigner, SignedState

NO_KEYS: Final = LogKeys()

BATCH: Final = 10_000  # events that are appended at once
CLOCKS_DIFFER: Final = timedelta(minutes=5)  # the clocks of two machines show times that differ by so much at most
LONGEST_ENTRY: Final = 65_535  # bytes of an entry at most, as the files of a log have room for


def seal_events(
    database: Database, signer: LogSigner | None, keys: LogKeys = NO_KEYS, successor: LogSigner | None = None
) -> SignedState | None:
    """Append every event that can be appended; return the newest checkpoint, ``None`` while there is none at all.

    A ``successor`` signs the new checkpoint together with ``signer``, and alone from then on.

    Raises:
        LogKeyMissing: the key that signs this log is not here.
        LogDiffers: the tree is not the one that the last checkpoint signed.
    """
    with database.transaction() as connection:
        take(connection, Lock.CUSTODY_SEAL)
        # The horizon is read after the lock, and after it no transaction below the horizon is under way.
        elsewhere = connection.scalars(sa.text(_ELSEWHERE)).all()
        horizon: int = connection.execute(sa.text(_HORIZON), {"elsewhere": elsewhere}).scalar_one()
        signed = newest_checkpoint(connection)
        if signed is not None and (signer is None or signed.vkey != str(signer.verifier)):
            raise LogKeyMissing(
                "The custody log is not sealed: TOOLKIT_LOG_SIGNING_KEY must name the file of the key {}, and "
                "TOOLKIT_LOG_ORIGIN its name before the +.",
                signed.vkey,
            )
        if signer is None:
            raise LogKeyMissing(
                "The custody log is not sealed: TOOLKIT_HOME cannot be written, and it has no key."
            )
        size: int = connection.scalar(sa.select(sa.func.coalesce(sa.func.max(log_entries.c.index) + 1, 0)))
        if signed is not None and not signed.is_of(signer.verifier, root(tiles_of(connection), signed.size)):
            raise LogDiffers(
                "The custody log is not sealed: its tree is not the one that was signed at {:,} entries.",
                signed.size,
            )
        unsealed = raw(connection).cursor(binary=True)
        while rows := unsealed.execute(_UNSEALED, {"horizon": horizon, "batch": BATCH}).fetchall():
            _append(connection, size, rows, keys)
            size += len(rows)
        if size > (signed.size if signed is not None else 0):
            signers = [signer] if successor is None else [signer, successor]
            grown = Checkpoint(signers[-1].name, size, root(tiles_of(connection), size))
            vkey = str(signers[-1].verifier)
            signed = SignedState(size, grown.signed_by(signers), vkey, database.clock().astimezone(UTC))
            connection.execute(sa.insert(log_checkpoints), asdict(signed))
        return signed


def newest_checkpoint(connection: Connection, moment: datetime | None = None) -> SignedState | None:
    """Return the newest checkpoint, or the newest one at a moment; ``None`` while there is none."""
    columns = log_checkpoints.c
    query = sa.select(*(columns[name] for name in SignedState.__slots__))
    if moment is not None:
        query = query.where(columns.issued_at <= moment)
    row = connection.execute(query.order_by(columns.size.desc()).limit(1)).one_or_none()
    return None if row is None else SignedState(*row)


def keys_of(connection: Connection) -> list[str]:
    """Return the keys that ever signed the log."""
    return list(connection.scalars(sa.select(log_checkpoints.c.vkey).distinct()))


def goes_on(connection: Connection, kept: Checkpoint) -> bool:
    """Tell whether the log begins with the entries that a checkpoint kept elsewhere was signed for."""
    newest = newest_checkpoint(connection)
    return newest is not None and newest.size >= kept.size and root(tiles_of(connection), kept.size) == kept.root


def signed_state(connection: Connection) -> SignedState:
    """Return the newest checkpoint.

    Raises:
        InvalidInput: there is none.
    """
    signed = newest_checkpoint(connection)
    if signed is None:
        raise InvalidInput("Nothing is in the custody log yet.")
    return signed


def prove(connection: Connection, event: int) -> tuple[bytes, EntryProof, SignedState] | None:
    """Return the entry of an event, and its proof under the newest checkpoint; ``None`` while it has none."""
    signed = newest_checkpoint(connection)
    columns = log_entries.c
    query = sa.select(columns.index.label("place"), columns.entry).where(columns.event == event, columns.event > 0)
    row = connection.execute(query).one_or_none()
    if signed is None or row is None:
        return None
    path = inclusion_proof(tiles_of(connection), row.place, signed.size)
    return row.entry, EntryProof(row.place, path, signed.note), signed


def with_key(connection: Connection, event: Event) -> Event:
    """Return the event with the wrapped key of its sale, where its entry was sealed under that."""
    wrapped = connection.scalar(sa.text(_KEY_OF_ENTRY), {"event": event.id})
    return event if wrapped is None else event._replace(secret=wrapped)


def tiles_of(connection: Connection) -> ReadTile:
    """Return what reads the tiles of the log as they are now, each once."""
    columns = log_tiles.c

    @cache
    def tile(level: int, number: int) -> bytes:
        query = sa.select(columns.hashes).where(columns.level == level, columns.number == number)
        return connection.execute(query).scalar_one_or_none() or b""

    return tile


def entry_of(event: Event, keys: LogKeys) -> bytes:
    """Return the entry of an event: canonical JSON, with the hash of its detail where that is too long."""
    document = keys.sealed(event)
    entry = canonical(document)
    if len(entry) <= LONGEST_ENTRY:
        return entry
    detail = canonical(document["detail"])
    return canonical(document | {"detail": {"bytes": len(detail), "sha256": sha256(detail).hexdigest()}})


def _append(connection: Connection, size: int, rows: Sequence[Any], keys: LogKeys) -> None:
    of_sales = _keys_of_sales(connection, {sale for *_, sale in rows if sale is not None}, keys)
    details = json.loads(f"[{','.join(row[0] for row in rows)}]")
    entries = []
    for index, (row, detail) in enumerate(zip(rows, details, strict=True), start=size):
        _, number, kind, moment, transaction, epoch, salt, sale = row
        sale_key, secret = of_sales.get(sale, (None, salt))
        entry = entry_of(Event(number, kind, moment, detail, secret), keys)
        entries.append((index, number, transaction, epoch, sale_key, entry))
    with raw(connection).cursor().copy(_COPY_ENTRIES) as copy:
        copy.set_types(["int8", "int8", "int8", "int4", "int8", "bytea"])
        for each in entries:
            copy.write_row(each)
    changed = append(tiles_of(connection), size, (leaf_hash(entry) for *_, entry in entries))
    grown = insert(log_tiles)
    grown = grown.on_conflict_do_update(index_elements=["level", "number"], set_={"hashes": grown.excluded.hashes})
    connection.execute(
        grown,
        [{"level": level, "number": number, "hashes": hashes} for (level, number), hashes in changed.items()],
    )


def _keys_of_sales(connection: Connection, sales: Set[str], keys: LogKeys) -> Mapping[str, tuple[int, bytes]]:
    """Return the wrapped keys of sales with their numbers; a sale that never had one gets it."""
    found = [*connection.execute(sa.text(_KEYS_OF_SALES), {"sales": [*sales]})]
    if keys.keys and (new := sorted(sales - {sale for sale, *_ in found})):
        made = {"sales": new, "wrapped": [keys.new_sale_key() for _ in new]}
        found += connection.execute(sa.text(_NEW_KEYS), made)
    return {sale: (number, wrapped) for sale, number, wrapped in found if keys.can_unwrap(wrapped)}


def may_record(connection: Connection) -> bool:
    """Tell whether this role and session may record events and seal them."""
    return bool(connection.execute(sa.text(_MAY_WRITE)).scalar_one())


_KEY_OF_ENTRY: Final = """
    SELECT wrapped FROM audit.log_entries JOIN audit.sale_keys AS of_sale ON of_sale.id = sale_key
    WHERE event = :event
"""

_KEYS_OF_SALES: Final = (
    "SELECT sale_id, id, wrapped FROM audit.sale_keys WHERE sale_id = ANY(CAST(:sales AS text[]))"
)

_NEW_KEYS: Final = """
    INSERT INTO audit.sale_keys (sale_id, wrapped)
    SELECT * FROM unnest(CAST(:sales AS text[]), CAST(:wrapped AS bytea[]))
    RETURNING sale_id, id, wrapped
"""

_COPY_ENTRIES: Final = (
    "COPY audit.log_entries (index, event, transaction, epoch, sale_key, entry) FROM STDIN (FORMAT BINARY)"
)

_MAY_WRITE: Final = f"""
    SELECT NOT current_setting('transaction_read_only')::boolean
       AND has_table_privilege('{custody_events.fullname}', 'INSERT')
       AND has_table_privilege('{log_entries.fullname}', 'INSERT')
"""

# Transactions of other databases of the cluster, and the analysis of tables by autovacuum, record no event here.
# They are read before the horizon: once one has ended, nobody can tell where it was.
_ELSEWHERE: Final = """
    SELECT backend_xid::text FROM pg_stat_activity
    WHERE backend_xid IS NOT NULL AND (datname <> current_database() OR backend_type = 'autovacuum worker')
"""

_HORIZON: Final = """
    SELECT coalesce(min(running::text::bigint), pg_snapshot_xmax(pg_current_snapshot())::text::bigint)
    FROM pg_snapshot_xip(pg_current_snapshot()) AS running
    WHERE xid(running)::text <> ALL(CAST(:elsewhere AS text[]))
"""

# An event of an object is about the sale whose record has the object now, any other about that of its record.
_UNSEALED: Final = """
    SELECT CAST(detail AS text), id, kind, happened_at, transaction, epoch, uuid_send(salt),
           CASE WHEN kind IN ('UPLOADED', 'RESTORED', 'GONE', 'VERIFIED') THEN (
               SELECT (array_agg(sale_id ORDER BY record.id DESC))[1]
               FROM audit.object_observations AS seen
               JOIN audit.evidence_observations AS record ON object_key = key AND record.gone_at IS NULL
               WHERE seen.id = (detail ->> 'observation')::bigint
           ) ELSE (
               SELECT (array_agg(sale_id ORDER BY id DESC))[1]
               FROM audit.evidence_observations
               WHERE evidence_id = coalesce(detail ->> 'evidence', detail #>> '{files,0,evidence}')::uuid
           ) END
    FROM audit.custody_events
    WHERE (epoch, transaction, id) > (
        SELECT coalesce(max(epoch), 0), coalesce(max(transaction), 0), coalesce(max(event), 0)
        FROM (SELECT * FROM audit.log_entries ORDER BY index DESC LIMIT 1) AS last
    )
      AND (transaction < %(horizon)s OR epoch < (SELECT max(number) FROM audit.custody_epochs))
    ORDER BY epoch, transaction, id
    LIMIT %(batch)s
"""
