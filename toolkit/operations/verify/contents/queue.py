"""Order the files that wait for verification, the decisive ones first, then the newest; keep to a budget."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa
from sqlalchemy import ColumnElement

from toolkit.domain.evidence import KEY_PREFIX, KIND_OF, EvidenceType, FileKind
from toolkit.storage.database import Database
from toolkit.storage.tables import (
    content_checks,
    evidences,
    object_observations,
    verification_failures,
    withdrawals,
)

_BATCH: Final = 200


@dataclass(frozen=True, slots=True)
class Budget:
    """The bounds of one verification; ``None`` sets none. What is left waits for the next one."""

    seconds: float | None = None
    bytes: int | None = None


class Meter:
    """Counts what was spent of a budget, for several threads."""

    def __init__(self, budget: Budget) -> None:
        self._ends = None if budget.seconds is None else time.monotonic() + budget.seconds
        self._whole = self._bytes = budget.bytes
        self._lock = threading.Lock()

    def spend(self, size: int) -> bool:
        """Take ``size`` bytes from the budget; ``False`` where it is used up."""
        if self._ends is not None and time.monotonic() >= self._ends:
            return False
        with self._lock:
            if self._bytes is None:
                return True
            # One that is larger than the whole budget would hold all others up for ever, were it never taken.
            taken = size <= self._bytes or 0 < self._bytes == self._whole
            self._bytes = max(self._bytes - size, 0)  # the order of the files holds: no smaller one overtakes
            return taken


@dataclass(frozen=True, slots=True)
class Unverified:
    """An object version that waits."""

    id: int
    key: str
    size: int
    etag: str
    evidence_type: str | None
    """Of the record that the object belongs to, if there is one."""

    def is_of_wrong_kind(self, found: FileKind) -> bool:
        """Tell whether the record demands another kind; an unknown evidence type demands none."""
        return self.evidence_type in set(EvidenceType) and KIND_OF[EvidenceType(self.evidence_type)] is not found


def waiting(database: Database) -> list[int]:
    """Return the observations of all object versions that nobody verified yet, in the order of their turn.

    A file decides a verdict when it counts as far as is known. Those that could not be read before come last.
    """
    seen = object_observations
    latest = (
        sa.select(content_checks.c.kind, content_checks.c.problem)
        .where(content_checks.c.observation_id == seen.c.id)
        .order_by(content_checks.c.id.desc())
        .limit(1)
        .lateral("latest")
    )
    failed = sa.exists().where(verification_failures.c.observation_id == seen.c.id)
    demanded = sa.case({each.value: kind.value for each, kind in KIND_OF.items()}, value=evidences.c.evidence_type)
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
            ~sa.exists().where(content_checks.c.observation_id == seen.c.id, content_checks.c.sha256.is_not(None)),
        )
        .order_by(failed, sa.func.coalesce(decisive, False).desc(), seen.c.last_modified.desc(), seen.c.id.desc())
    )
    with database.transaction() as connection:
        return list(dict.fromkeys(connection.scalars(query)))  # several records may have one object


def in_batches(database: Database, ids: list[int]) -> Iterator[list[Unverified]]:
    """Yield the versions with these ids, in this order; one that is gone meanwhile is left out."""
    seen = object_observations
    query = sa.select(seen.c.id, seen.c.key, seen.c.size, seen.c.etag, evidences.c.evidence_type).outerjoin(
        evidences, evidences.c.object_key == seen.c.key
    )
    for start in range(0, len(ids), _BATCH):
        some = ids[start : start + _BATCH]
        there = (seen.c.id == sa.any_(sa.cast(some, sa.ARRAY(sa.BigInteger))), seen.c.gone_at.is_(None))
        with database.transaction() as connection:
            found = {row.id: Unverified(**row._mapping) for row in connection.execute(query.where(*there))}
        yield [found[each] for each in some if each in found]
