"""Verify the contents of every object version that nobody verified yet, once.

The decisive files come first, then the newest, within a time. Each file is fetched and looked at by a process of
its own (``toolkit.evidence.inspection``), which a hostile file may break.
"""

import hashlib
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from queue import LifoQueue
from typing import IO, Any, Final

import sqlalchemy as sa
from sqlalchemy import ColumnElement
from sqlalchemy.dialects.postgresql import insert

from toolkit.bucket.client import Bucket
from toolkit.contract.contents import LOOK, ContentProblem
from toolkit.contract.evidence import KEY_PREFIX, KIND_OF, EvidenceType, FileKind
from toolkit.database.belonging import check_bucket
from toolkit.database.connection import Database, among
from toolkit.database.observation_clock import stamp
from toolkit.database.observations import latest_look
from toolkit.database.service import evidences
from toolkit.database.tables import content_checks, object_observations, verification_failures, withdrawals
from toolkit.errors import BucketError, BucketUnavailable, NotInspected, ObjectArchived, ObjectDenied
from toolkit.evidence.inspection import Inspector
from toolkit.evidence.kinds import Inspected, readers_of
from toolkit.message import LabelledEnum
from toolkit.progress import Progress

_BATCH: Final = 200


def waiting(database: Database) -> list[int]:
    """Return the observations of all object versions that wait for verification, in the order of their turn.

    A file decides a verdict when it counts as far as is known. Those that could not be read before come late, and
    last those that were verified in an older way (``LOOK``), or without one of the readers that there are now.
    """
    seen = object_observations
    latest = latest_look(seen)
    verified = sa.and_(content_checks.c.observation_id == seen.c.id, content_checks.c.sha256.is_not(None))
    again = sa.exists().where(verified)
    present = sa.case(
        {kind: sa.cast(list(readers_of(kind)), sa.ARRAY(sa.Text)) for kind in FileKind},
        value=content_checks.c.kind,
    )
    by_now = sa.func.coalesce(content_checks.c.readers.op("@>")(present), True)
    failed = sa.exists().where(verification_failures.c.observation_id == seen.c.id)
    demanded = sa.case({str(each): str(kind) for each, kind in KIND_OF.items()}, value=evidences.c.evidence_type)
    decisive: ColumnElement[bool] = sa.and_(
        evidences.c.evidence_type.in_(list(EvidenceType)),
        ~sa.exists().where(withdrawals.c.evidence_id == evidences.c.id),
        sa.or_(latest.c.kind.is_(None), latest.c.kind == demanded),
        latest.c.problem.is_(None),
    )
    query = (
        sa.select(seen.c.id)
        .outerjoin(evidences, evidences.c.object_key == seen.c.key)
        .outerjoin(latest, sa.true())
        .where(
            seen.c.gone_at.is_(None),
            seen.c.size > 0,
            sa.or_(seen.c.key.startswith(KEY_PREFIX, autoescape=True), evidences.c.id.is_not(None)),
            ~sa.exists().where(verified, content_checks.c.look >= LOOK, by_now),
        )
        .order_by(again, failed, sa.func.coalesce(decisive, False).desc())
        .order_by(seen.c.last_modified.desc(), seen.c.id.desc())
    )
    with database.transaction() as connection:
        return list(dict.fromkeys(connection.scalars(query)))  # several records may have one object


def in_batches(database: Database, ids: list[int]) -> Iterator[list[sa.Row[Any]]]:
    """Yield the versions with these ids, in this order; one that is gone meanwhile is left out.

    Each has the evidence type of the record that the object belongs to, if there is one.
    """
    seen = object_observations
    query: sa.Select[Any] = sa.select(seen.c.id, seen.c.key, seen.c.size, seen.c.etag, evidences.c.evidence_type)
    query = query.outerjoin(evidences, evidences.c.object_key == seen.c.key)
    for start in range(0, len(ids), _BATCH):
        some = ids[start : start + _BATCH]
        there = query.where(among(seen.c.id, some), seen.c.gone_at.is_(None))
        with database.transaction() as connection:
            found = {row.id: row for row in connection.execute(there)}
        yield [found[each] for each in some if each in found]


def fetch_and_inspect(bucket: Bucket, item: Any, inspect: Callable[[IO[bytes]], Inspected]) -> Inspected:
    """Return what the object of this ``key``, ``etag`` and ``size`` is; a file without a name holds it meanwhile.

    Raises:
        BucketError: it cannot be read as a whole, or was overwritten since.
        VerificationFailed: files cannot be looked at on this machine.
    """
    digest = hashlib.sha256()
    with tempfile.TemporaryFile() as file:  # so that a kill leaves nothing
        with bucket.download(item.key, etag=item.etag) as (chunks, stored_type):
            for chunk in chunks:
                file.write(chunk)
                digest.update(chunk)
        if file.tell() != item.size:  # an answer that was cut would make a damaged file of a good one
            raise BucketError("The bucket sent another number of bytes than the file has; try again later.")
        file.flush()
        return replace(inspect(file), sha256=digest.hexdigest(), stored_type=stored_type)


INSPECTORS: Final = min(4, os.cpu_count() or 1)  # files that are looked at, at the same time: a processor each
FETCHERS: Final = 2 * INSPECTORS + 2  # files fetched or looked at, at the same time: some wait for the bucket
MAX_BYTES: Final = 5 * 1024**3  # the largest object that is fetched: what a single upload form can allow


class Failure(LabelledEnum):
    """The reason why a file could not be verified."""

    TOO_LARGE = "TOO_LARGE", "The file is larger than what is fetched."
    ARCHIVED = "ARCHIVED", "The file is archived, and must be restored before it can be read."
    DENIED = "DENIED", "The credentials lack the right to read the file (s3:GetObject)."
    UNREADABLE = "UNREADABLE", "The file could not be read, or was overwritten meanwhile."
    NOT_INSPECTED = "NOT_INSPECTED", "The toolkit failed while it looked at the file, or was ended. Report it."


_FAILURES: Final = {
    ObjectArchived: Failure.ARCHIVED,
    ObjectDenied: Failure.DENIED,
    NotInspected: Failure.NOT_INSPECTED,
}

_Outcome = dict[str, Any] | Failure | None


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of a verification, in objects.

    ``left`` wait for the next one: the time was over, or they are ``unreadable`` (could not be read, were
    overwritten meanwhile, or are larger than what is fetched). ``wrong_kind`` have none of the ``problems``, but
    are not of the kind that the evidenceType of their record demands.
    """

    verified: int
    problems: Mapping[ContentProblem, int]
    left: int
    wrong_kind: int = 0
    unreadable: int = 0
    failures: Mapping[Failure, int] = field(default_factory=dict)  # why the unreadable ones were not read

    @property
    def unusable(self) -> int:
        """The number of objects that do not count, for any reason."""
        return sum(self.problems.values()) + self.wrong_kind


def verify_contents(
    database: Database,
    bucket: Bucket,
    *,
    seconds: float | None = None,
    inspectors: Collection[Inspector] = (),
    progress: Progress | None = None,
) -> Verified:
    """Read all bytes of each observed object that was not verified in this version, and keep what was found.

    An object goes through a temporary file that has no name; ``toolkit bucket sync`` must have seen
    it before. The decisive files come first. Killed or after so many ``seconds``, and called again, it goes on
    with what is not verified. ``inspectors`` look at the files, and stay open; without them some of its own do.

    Raises:
        WrongBucket: the database belongs to another bucket; nothing was read.
        BucketUnavailable: it stopped half-way; run it again.
        VerificationFailed: files cannot be looked at on this machine.
    """
    progress = progress or Progress()
    database.run(check_bucket, bucket)
    problems, reasons = Counter[ContentProblem](), Counter[Failure]()
    verified = wrong_kind = 0
    ids = waiting(database)
    with _lent(inspectors) as inspect, ThreadPoolExecutor(FETCHERS, thread_name_prefix="verify") as threads:
        look = partial(_look, bucket, None if seconds is None else time.monotonic() + seconds, inspect)
        progress.begin("Verifying contents", len(ids), "objects")
        for batch in in_batches(database, ids):
            looked = list(zip(batch, threads.map(look, batch), strict=True))
            checks = [(item, found) for item, found in looked if isinstance(found, dict)]
            failures = {item.id: found for item, found in looked if isinstance(found, Failure)}
            _keep(database, [check for _, check in checks], failures)
            problems.update(check["problem"] for _, check in checks if check["problem"] is not None)
            wrong_kind += sum(
                not check["problem"] and KIND_OF.get(item.evidence_type) not in (None, check["kind"])
                for item, check in checks
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
    bucket: Bucket, ends: float | None, inspect: Callable[[IO[bytes]], Inspected], item: sa.Row[Any]
) -> _Outcome:
    """Return a row of ``content_checks`` or a failure, ``None`` where the time is over."""
    if item.size > MAX_BYTES:
        return Failure.TOO_LARGE
    if ends is not None and time.monotonic() >= ends:
        return None
    try:
        found = fetch_and_inspect(bucket, item, inspect)
    except BucketUnavailable:
        raise
    except (BucketError, NotInspected) as error:
        return _FAILURES.get(type(error), Failure.UNREADABLE)
    lists = {"active_parts": [str(part) for part in found.active_parts], "readers": list(found.readers)}
    return asdict(found) | lists | {"observation_id": item.id, "kind": found.kind, "look": LOOK}


def _keep(database: Database, checks: list[dict[str, Any]], failures: Mapping[int, Failure]) -> None:
    if not checks and not failures:
        return
    with database.transaction() as connection:
        now = stamp(connection)
        if checks:
            connection.execute(sa.text(_KEEP), [check | {"now": now} for check in checks])
        if failures:
            failed = [{"observation_id": each, "reason": why, "failed_at": now} for each, why in failures.items()]
            connection.execute(insert(verification_failures).on_conflict_do_nothing(), failed)


_KEEP: Final = """
    INSERT INTO audit.content_checks
        (observation_id, kind, problem, media_type, sha256, pages, seconds, speech_seconds, normal_form,
         active_parts, stored_type, depth, readers, look, checked_at)
    SELECT :observation_id, :kind, :problem, :media_type, :sha256, :pages, :seconds, :speech_seconds,
           :normal_form, CAST(:active_parts AS text[]), :stored_type, :depth, CAST(:readers AS text[]), :look, :now
    WHERE NOT EXISTS (
        SELECT FROM audit.content_checks
        WHERE observation_id = :observation_id AND sha256 IS NOT NULL AND look >= :look
          AND readers @> CAST(:readers AS text[])
    )
"""
