"""Detect the type of each new object by its first bytes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from toolkit.domain.contents import ContentProblem
from toolkit.domain.evidence import KEY_PREFIX, kind_of_media_type
from toolkit.domain.signatures import SIGNATURE_BYTES, UNKNOWN, media_type_of_bytes
from toolkit.errors import BucketError, BucketUnavailable
from toolkit.operations import Clock
from toolkit.operations.observe.bucket_sync.scope import Scope
from toolkit.operations.progress import Progress
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database
from toolkit.storage.observation_clock import stamp

READERS: Final = 16
"""Objects whose first bytes are read at the same time."""

_BATCH: Final = 1000


@dataclass(frozen=True, slots=True)
class _Unexamined:
    observation_id: int
    key: str
    size: int


def examine(database: Database, bucket: Bucket, scope: Scope, clock: Clock, progress: Progress) -> int:
    """Look into the first bytes of every object that nobody looked into; how many could be read."""
    progress.begin("Examining objects", None, "objects")
    examined = 0
    with ThreadPoolExecutor(READERS) as readers:
        for batch in _unexamined(database, scope):
            kinds = readers.map(lambda item: _first_look(bucket, item), batch)
            checks = [check for check in kinds if check is not None]
            _keep_checks(database, checks, clock)
            examined += len(checks)
            progress.advance(len(batch))
    progress.end()
    return examined


def _unexamined(database: Database, scope: Scope) -> Iterator[list[_Unexamined]]:
    last = 0
    while True:
        with database.transaction() as connection:
            query = sa.text(_UNEXAMINED.format(scope=scope.of_known))
            bound = {"last": last, "prefix": KEY_PREFIX, "batch": _BATCH, **scope.parameters}
            rows = connection.execute(query, bound).all()
        if not rows:
            return
        last = rows[-1].id
        yield [_Unexamined(row.id, row.key, row.size) for row in rows]


def _first_look(bucket: Bucket, item: _Unexamined) -> dict[str, Any] | None:
    """What the first bytes say, or ``None`` where they cannot be read: it stays unexamined, for the next time."""
    if item.size == 0:
        return _check(item, UNKNOWN, ContentProblem.EMPTY)
    try:
        head = bucket.read(item.key, 0, SIGNATURE_BYTES)
    except BucketUnavailable:
        raise
    except BucketError:
        return None
    return _check(item, media_type_of_bytes(head))


def _check(item: _Unexamined, media_type: str, problem: ContentProblem | None = None) -> dict[str, Any]:
    return {
        "observation_id": item.observation_id,
        "kind": kind_of_media_type(media_type),
        "problem": problem,
        "media_type": media_type,
    }


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
      AND {scope}
      AND starts_with(key, :prefix)
      AND id > :last
      AND NOT EXISTS (SELECT FROM audit.content_checks WHERE observation_id = known.id)
    ORDER BY id
    LIMIT :batch
"""

_KEEP_CHECK: Final = """
    INSERT INTO audit.content_checks (observation_id, kind, problem, media_type, checked_at)
    SELECT :observation_id, :kind, :problem, :media_type, :now
    WHERE NOT EXISTS (SELECT FROM audit.content_checks WHERE observation_id = :observation_id)
"""
