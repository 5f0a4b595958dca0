"""Verify every object version that nobody verified yet, once."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import LifoQueue
from typing import IO, Any, Final

import sqlalchemy as sa

from toolkit.domain.contents import ContentProblem
from toolkit.domain.evidence import KEY_PREFIX, KIND_OF, EvidenceType, FileKind
from toolkit.errors import BucketError, BucketUnavailable
from toolkit.operations import Clock
from toolkit.operations.progress import Progress, Quiet
from toolkit.operations.verify.contents.inspection import Inspected
from toolkit.operations.verify.contents.inspector import Inspector
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database
from toolkit.storage.observation_clock import stamp

INSPECTORS: Final = min(4, os.cpu_count() or 1)
"""Files that are looked at, at the same time: a processor each."""

FETCHERS: Final = 2 * INSPECTORS + 2
"""Files that are fetched or looked at, at the same time: some wait for the bucket."""

MAX_BYTES: Final = 5 * 1024**3
"""The largest object that is fetched: what a single upload form can allow."""

_BATCH: Final = 200


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of a verification, in objects.

    ``left`` could not be read, were overwritten meanwhile, or are larger than what is fetched. ``wrong_kind`` have
    none of the ``problems``, but are not of the kind that the evidenceType of their record demands.
    """

    verified: int
    problems: Mapping[ContentProblem, int]
    left: int
    wrong_kind: int = 0

    @property
    def unusable(self) -> int:
        """Objects that do not count, for whatever reason."""
        return sum(self.problems.values()) + self.wrong_kind


@dataclass(frozen=True, slots=True)
class _Unverified:
    id: int
    key: str
    size: int
    etag: str
    evidence_type: str | None
    """Of the record that the object belongs to, if there is one."""

    def is_of_wrong_kind(self, found: FileKind) -> bool:
        """Tell whether the record demands another kind; an unknown evidence type demands none."""
        return self.evidence_type in set(EvidenceType) and KIND_OF[EvidenceType(self.evidence_type)] is not found


def verify_contents(
    database: Database,
    bucket: Bucket,
    *,
    clock: Clock,
    max_bytes: int = MAX_BYTES,
    progress: Progress | None = None,
) -> Verified:
    """Read all bytes of each observed object that was not verified in this version, and keep what was found.

    An object goes through a temporary file that only its owner can read; ``toolkit bucket sync`` must have seen
    it before. Killed and called again, it goes on with what is not verified.

    Raises:
        BucketUnavailable: it stopped half-way; run it again.
        VerificationFailed: files cannot be looked at on this machine.
    """
    progress = progress or Quiet()
    tried, problems = 0, Counter[ContentProblem]()
    verified = wrong_kind = 0
    with _Verifier(bucket, max_bytes) as verifier:
        progress.begin("Verifying contents", _count(database), "objects")
        for batch in _batches(database):
            looked = zip(batch, verifier.verify(batch), strict=True)
            found = [(item, check) for item, check in looked if check is not None]
            checks = [check for _, check in found]
            _keep(database, checks, clock)
            problems.update(check["problem"] for check in checks if check["problem"] is not None)
            wrong_kind += sum(
                not check["problem"] and item.is_of_wrong_kind(check["kind"]) for item, check in found
            )
            verified += len(checks)
            tried += len(batch)
            progress.advance(len(batch))
        progress.end()
    return Verified(verified, dict(problems), tried - verified, wrong_kind)


class _Verifier:
    """A few threads that fetch files, and fewer inspectors that look at them."""

    def __init__(self, bucket: Bucket, max_bytes: int) -> None:
        self._bucket = bucket
        self._max_bytes = max_bytes
        self._open = ExitStack()
        self._threads = self._open.enter_context(ThreadPoolExecutor(FETCHERS, thread_name_prefix="verify"))
        self._inspectors: LifoQueue[Inspector] = LifoQueue()
        for _ in range(INSPECTORS):
            self._inspectors.put(self._open.enter_context(Inspector()))

    def __enter__(self) -> _Verifier:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(cancel_futures=True)
        self._open.close()

    def verify(self, batch: list[_Unverified]) -> Iterator[dict[str, Any] | None]:
        """For each object a row for ``content_checks``, or ``None`` where it could not be verified."""
        return self._threads.map(self._verify, batch)

    def _verify(self, item: _Unverified) -> dict[str, Any] | None:
        if item.size > self._max_bytes:
            return None
        try:
            with tempfile.NamedTemporaryFile(prefix="evidence-") as file:
                sha256 = self._fetch(item, file)
                found = self._inspect(Path(file.name))
        except BucketUnavailable:
            raise
        except BucketError:
            return None
        return {
            "observation_id": item.id,
            "kind": found.kind,
            "problem": found.problem,
            "media_type": found.media_type,
            "sha256": sha256,
            "pages": found.pages,
            "seconds": found.seconds,
        }

    def _inspect(self, path: Path) -> Inspected:
        inspector = self._inspectors.get()
        try:
            return inspector.inspect(path)
        finally:
            self._inspectors.put(inspector)

    def _fetch(self, item: _Unverified, file: IO[bytes]) -> str:
        digest = hashlib.sha256()
        for chunk in self._bucket.chunks(item.key, etag=item.etag):
            file.write(chunk)
            digest.update(chunk)
        file.flush()
        return digest.hexdigest()


def _count(database: Database) -> int:
    with database.transaction() as connection:
        query = sa.text(_UNVERIFIED.format(columns="count(*)"))
        count: int = connection.execute(query, _bound()).scalar_one()
    return count


def _batches(database: Database) -> Iterator[list[_Unverified]]:
    last = 0
    while True:
        with database.transaction() as connection:
            query = sa.text(_UNVERIFIED.format(columns=_COLUMNS) + f"ORDER BY id LIMIT {_BATCH}")
            rows = connection.execute(query, _bound(last)).all()
        if not rows:
            return
        last = rows[-1].id
        yield [_Unverified(row.id, row.key, row.size, row.etag, row.evidence_type) for row in rows]


def _bound(last: int = 0) -> dict[str, Any]:
    return {"last": last, "prefix": KEY_PREFIX}


def _keep(database: Database, checks: list[dict[str, Any]], clock: Clock) -> None:
    if not checks:
        return
    with database.transaction() as connection:
        now = stamp(connection, clock)
        connection.execute(sa.text(_KEEP), [check | {"now": now} for check in checks])


_COLUMNS: Final = """
    id, key, size, etag,
    (SELECT evidence_type FROM audit_service.evidences WHERE object_key = known.key) AS evidence_type
"""

_UNVERIFIED: Final = """
    SELECT {columns}
    FROM audit.object_observations AS known
    WHERE gone_at IS NULL
      AND size > 0
      AND starts_with(key, :prefix)
      AND id > :last
      AND NOT EXISTS (
          SELECT FROM audit.content_checks WHERE observation_id = known.id AND sha256 IS NOT NULL
      )
"""

_KEEP: Final = """
    INSERT INTO audit.content_checks
        (observation_id, kind, problem, media_type, sha256, pages, seconds, checked_at)
    SELECT :observation_id, :kind, :problem, :media_type, :sha256, :pages, :seconds, :now
    WHERE NOT EXISTS (
        SELECT FROM audit.content_checks WHERE observation_id = :observation_id AND sha256 IS NOT NULL
    )
"""
