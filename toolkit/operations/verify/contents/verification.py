"""Verify every object version that nobody verified yet, once."""

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from queue import LifoQueue
from typing import IO, Any, Final

import sqlalchemy as sa

from toolkit.domain.contents import ContentProblem
from toolkit.domain.worded import Worded
from toolkit.errors import BucketError, BucketUnavailable, ObjectArchived, ObjectDenied
from toolkit.operations import Clock
from toolkit.operations.observe.belonging import check_bucket
from toolkit.operations.progress import Progress, Quiet
from toolkit.operations.verify.contents.inspection import Inspected
from toolkit.operations.verify.contents.inspector import Inspector, fetch_and_inspect
from toolkit.operations.verify.contents.queue import Budget, Meter, Unverified, in_batches, waiting
from toolkit.storage.bucket import Bucket
from toolkit.storage.database import Database
from toolkit.storage.observation_clock import stamp

INSPECTORS: Final = min(4, os.cpu_count() or 1)
"""Files that are looked at, at the same time: a processor each."""

FETCHERS: Final = 2 * INSPECTORS + 2
"""Files that are fetched or looked at, at the same time: some wait for the bucket."""

MAX_BYTES: Final = 5 * 1024**3
"""The largest object that is fetched: what a single upload form can allow."""

UNBOUNDED: Final = Budget()


class Failure(Worded):
    """The reason why a file could not be verified."""

    TOO_LARGE = "TOO_LARGE", "The file is larger than what is fetched."
    ARCHIVED = "ARCHIVED", "The file is archived, and must be restored before it can be read."
    DENIED = "DENIED", "The credentials lack the right to read the file (s3:GetObject)."
    UNREADABLE = "UNREADABLE", "The file could not be read, or was overwritten meanwhile."


_Outcome = dict[str, Any] | Failure | None


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of a verification, in objects.

    ``left`` wait for the next one: the budget ended, or they are ``unreadable`` (could not be read, were
    overwritten meanwhile, or are larger than what is fetched). ``wrong_kind`` have none of the ``problems``, but
    are not of the kind that the evidenceType of their record demands.
    """

    verified: int
    problems: Mapping[ContentProblem, int]
    left: int
    wrong_kind: int = 0
    unreadable: int = 0
    failures: Mapping[Failure, int] = field(default_factory=dict)
    """The reasons for which the unreadable ones were not read."""

    @property
    def unusable(self) -> int:
        """The number of objects that do not count, for any reason."""
        return sum(self.problems.values()) + self.wrong_kind


def verify_contents(
    database: Database,
    bucket: Bucket,
    *,
    clock: Clock,
    budget: Budget = UNBOUNDED,
    max_bytes: int = MAX_BYTES,
    inspectors: Collection[Inspector] = (),
    progress: Progress | None = None,
) -> Verified:
    """Read all bytes of each observed object that was not verified in this version, and keep what was found.

    An object goes through a temporary file that has no name; ``toolkit bucket sync`` must have seen
    it before. The decisive files come first. Killed or at the end of its budget, and called again, it goes on with
    what is not verified. ``inspectors`` look at the files, and stay open; without them some of its own do.

    Raises:
        WrongBucket: the database belongs to another bucket; nothing was read.
        BucketUnavailable: it stopped half-way; run it again.
        VerificationFailed: files cannot be looked at on this machine.
    """
    progress = progress or Quiet()
    with database.transaction() as connection:
        check_bucket(connection, bucket)
    problems, reasons = Counter[ContentProblem](), Counter[Failure]()
    verified = wrong_kind = 0
    ids = waiting(database)
    with _lent(inspectors) as inspect, ThreadPoolExecutor(FETCHERS, thread_name_prefix="verify") as threads:
        look = partial(_look, bucket, max_bytes, Meter(budget), inspect)
        progress.begin("Verifying contents", len(ids), "objects")
        for batch in in_batches(database, ids):
            looked = list(zip(batch, threads.map(look, batch), strict=True))
            checks = [(item, found) for item, found in looked if isinstance(found, dict)]
            failures = {item.id: found for item, found in looked if isinstance(found, Failure)}
            _keep(database, [check for _, check in checks], failures, clock)
            problems.update(check["problem"] for _, check in checks if check["problem"] is not None)
            wrong_kind += sum(
                not check["problem"] and item.is_of_wrong_kind(check["kind"]) for item, check in checks
            )
            verified += len(checks)
            reasons.update(failures.values())
            progress.advance(len(batch))
            if any(found is None for _, found in looked):
                break
        progress.end()
    return Verified(verified, dict(problems), len(ids) - verified, wrong_kind, reasons.total(), dict(reasons))


@contextmanager
def _lent(inspectors: Collection[Inspector]) -> Iterator[Callable[[IO[bytes]], Inspected]]:
    """Lend an inspector to each thread that has a file to look at; without any there are some of its own."""
    with ExitStack() as own:
        free: LifoQueue[Inspector] = LifoQueue()
        for each in inspectors or [own.enter_context(Inspector()) for _ in range(INSPECTORS)]:
            free.put(each)

        def inspect(file: IO[bytes]) -> Inspected:
            inspector = free.get()
            try:
                return inspector.inspect(file)
            finally:
                free.put(inspector)

        yield inspect


def _look(
    bucket: Bucket, max_bytes: int, meter: Meter, inspect: Callable[[IO[bytes]], Inspected], item: Unverified
) -> _Outcome:
    """Return a row of ``content_checks`` or a failure, ``None`` where the budget ended."""
    if item.size > max_bytes:
        return Failure.TOO_LARGE
    if not meter.spend(item.size):
        return None
    try:
        fetched = fetch_and_inspect(bucket, item.key, item.etag, inspect)
    except BucketUnavailable:
        raise
    except ObjectArchived:
        return Failure.ARCHIVED
    except ObjectDenied:
        return Failure.DENIED
    except BucketError:
        return Failure.UNREADABLE
    found, outside = fetched.found, {"sha256": fetched.sha256, "stored_type": fetched.stored_type}
    parts = [str(part) for part in found.active_parts]
    return asdict(found) | outside | {"observation_id": item.id, "kind": found.kind, "active_parts": parts}


def _keep(database: Database, checks: list[dict[str, Any]], failures: Mapping[int, Failure], clock: Clock) -> None:
    if not checks and not failures:
        return
    failed = [{"observation_id": each, "reason": reason} for each, reason in failures.items()]
    with database.transaction() as connection:
        now = stamp(connection, clock)
        for statement, rows in ((_KEEP, checks), (_KEEP_FAILURE, failed)):
            if rows:
                connection.execute(sa.text(statement), [row | {"now": now} for row in rows])


_KEEP: Final = """
    INSERT INTO audit.content_checks
        (observation_id, kind, problem, media_type, sha256, pages, seconds, normal_form, active_parts, stored_type,
         checked_at)
    SELECT :observation_id, :kind, :problem, :media_type, :sha256, :pages, :seconds, :normal_form,
           CAST(:active_parts AS text[]), :stored_type, :now
    WHERE NOT EXISTS (
        SELECT FROM audit.content_checks WHERE observation_id = :observation_id AND sha256 IS NOT NULL
    )
"""

_KEEP_FAILURE: Final = """
    INSERT INTO audit.verification_failures (observation_id, reason, failed_at)
    SELECT :observation_id, :reason, :now
    WHERE NOT EXISTS (SELECT FROM audit.verification_failures WHERE observation_id = :observation_id)
"""
