"""Detect the type of each new object by its first bytes."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import sqlalchemy as sa

from toolkit.audit.bucket_scope import Scope
from toolkit.bucket.client import Bucket
from toolkit.contract.contents import ContentProblem
from toolkit.contract.deadlines import Clock
from toolkit.contract.evidence import KEY_PREFIX, kind_of_media_type
from toolkit.database.connection import Database
from toolkit.database.observation_clock import stamp
from toolkit.errors import BucketError, BucketUnavailable
from toolkit.evidence.kinds import SIGNATURE_BYTES, UNKNOWN, media_type_of_bytes
from toolkit.progress import Progress

READERS: Final = 16
"""Objects whose first bytes are read at the same time."""

_BATCH: Final = 1000

_Object = sa.Row[Any]
"""The id, the key and the size of an observation."""


def examine(
    database: Database, bucket: Bucket, scope: Scope, clock: Clock, progress: Progress
) -> tuple[int, dict[str, BucketError]]:
    """Read the first bytes of every new object that a record names, or that lies where upload forms lead.

    Returns how many were examined, and why others could not be read, by their keys.
    """
    progress.begin("Examining objects", None, "objects")
    examined = 0
    refusals: dict[str, BucketError] = {}
    with ThreadPoolExecutor(READERS) as readers:
        for batch in _unexamined(database, scope):
            looks = list(readers.map(lambda item: _first_look(bucket, item), batch))
            checks = [look for look in looks if isinstance(look, dict)]
            refusals |= {
                item.key: look for item, look in zip(batch, looks, strict=True) if isinstance(look, BucketError)
            }
            _keep_checks(database, checks, clock)
            examined += len(checks)
            progress.advance(len(batch))
    progress.end()
    return examined, refusals


def _unexamined(database: Database, scope: Scope) -> Iterator[Sequence[_Object]]:
    last = 0
    condition = "TRUE" if scope.full else _NEW
    while True:
        with database.transaction() as connection:
            bound = {"last": last, "prefix": KEY_PREFIX, "batch": _BATCH, "since": scope.since}
            rows = connection.execute(sa.text(_UNEXAMINED.format(condition=condition)), bound).all()
        if not rows:
            return
        last = rows[-1].id
        yield rows


def _first_look(bucket: Bucket, item: _Object) -> dict[str, Any] | BucketError:
    """Return the type by the first bytes, or the reason why they cannot be read; the next sync tries again."""
    try:
        head = bucket.read(item.key, 0, SIGNATURE_BYTES) if item.size else b""
    except BucketUnavailable:
        raise
    except BucketError as error:
        return error
    found = media_type_of_bytes(head) if item.size else UNKNOWN
    problem = None if item.size else ContentProblem.EMPTY
    kind = kind_of_media_type(found)
    return {"observation_id": item.id, "kind": kind, "problem": problem, "media_type": found}


def _keep_checks(database: Database, checks: list[dict[str, Any]], clock: Clock) -> None:
    if not checks:
        return
    with database.transaction() as connection:
        now = stamp(connection, clock)
        connection.execute(sa.text(_KEEP_CHECK), [check | {"now": now} for check in checks])


_UNEXAMINED: Final = """
    SELECT id, key, size
    FROM audit.object_observations AS known
    WHERE gone_at IS NULL
      AND id > :last
      AND NOT EXISTS (SELECT FROM audit.content_checks WHERE observation_id = known.id)
      AND {condition}
      AND (starts_with(key, :prefix) OR EXISTS (
          SELECT FROM audit.evidence_observations AS record
          WHERE record.object_key = known.key AND record.gone_at IS NULL
      ))
    ORDER BY id
    LIMIT :batch
"""

_NEW: Final = """
    (seen_at >= :since OR EXISTS (
        SELECT FROM audit.evidence_observations AS record
        WHERE record.object_key = known.key AND record.gone_at IS NULL AND record.seen_at >= :since
    ))
"""

_KEEP_CHECK: Final = """
    INSERT INTO audit.content_checks (observation_id, kind, problem, media_type, checked_at)
    SELECT :observation_id, :kind, :problem, :media_type, :now
    WHERE NOT EXISTS (SELECT FROM audit.content_checks WHERE observation_id = :observation_id)
"""
