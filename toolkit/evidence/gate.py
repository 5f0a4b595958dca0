"""Tell a partner what evidence one of its sales has and lacks, and whether it may be completed.

Contract, "Minimum evidence rules per utility group". The rules are read for the one sale, over its records in the
database and the objects that lie under their keys in the bucket at this moment.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Row

from toolkit.bucket.client import Bucket, ObjectSeen
from toolkit.contract.contents import Coverage
from toolkit.contract.deadlines import Clock
from toolkit.contract.evidence import EvidenceType
from toolkit.contract.findings import Problem, Reason, Status, Verdict
from toolkit.contract.people import PartnerAccess
from toolkit.contract.rules import (
    REPLACES_ALL,
    Evidence,
    EvidenceState,
    Sale,
    evaluate,
    evidence_state,
    ran_out,
    requirements,
)
from toolkit.contract.sales import is_possible_sale_id
from toolkit.database.belonging import check_bucket
from toolkit.database.connection import Database
from toolkit.database.service import Service
from toolkit.errors import SaleNotFound
from toolkit.evidence.access import only_sale, own_sale, own_sale_parameters
from toolkit.evidence.records import EvidenceRecord, records_seen

_ASKED_AT_ONCE: Final = 8
"""Objects of a sale that the bucket is asked for at the same time."""


@dataclass(frozen=True, slots=True)
class TypeStanding:
    """One evidence type of a sale.

    ``required`` tells that a file of this type is still needed, or counts for something that is; it is ``None``
    where the sale does not say its utility group or who pays, so that nobody knows. ``reason`` says why no file
    of a required type counts. ``files`` are those that count, ``not_examined`` those of them whose
    contents nobody has verified yet.
    """

    evidence_type: EvidenceType
    required: bool | None
    files: int
    not_examined: int
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class SaleGate:
    """The verdict of the rules on one sale now, and each evidence type."""

    sale_id: str
    completed_at: datetime | None
    verdict: Verdict
    types: tuple[TypeStanding, ...]

    @property
    def may_be_completed(self) -> bool:
        """True where the evidence allows it and it was not done before."""
        return self.completed_at is None and self.verdict.status is Status.COMPLIANT


def sale_gate(
    database: Database, bucket: Bucket, sale_id: str, access: PartnerAccess | None, clock: Clock
) -> SaleGate:
    """Judge one sale of a partner by what lies in the bucket now; a file that is new counts unexamined.

    ``access`` is what a partner is bound by; without it an operator asks.

    Raises:
        SaleNotFound: no sale has this id, or it is not the partner's.
        DatabaseError: several sales have it.
        WrongBucket: the database belongs to another bucket.
        BucketError: the bucket could not be asked.
    """
    if not is_possible_sale_id(sale_id):
        raise SaleNotFound(sale_id)
    now = clock()
    with database.transaction() as connection:
        found = connection.execute(_own(database.service), own_sale_parameters(access, sale_id)).fetchmany(2)
        row = only_sale(found, sale_id)
        check_bucket(connection, bucket)
        records = records_seen(connection, sale_id, now)
    # A service may keep a record without a key; no file can lie there.
    asked_for = [each.object_key for each in records if each.withdrawal is None and each.object_key]
    with ThreadPoolExecutor(_ASKED_AT_ONCE) as threads:
        objects = dict(zip(asked_for, threads.map(bucket.head, asked_for), strict=True))
    return _judged(row, records, objects, now)


def _judged(
    row: Row[Any], records: Sequence[EvidenceRecord], objects: Mapping[str, ObjectSeen | None], now: datetime
) -> SaleGate:
    sale = Sale(row.utility_group, row.is_client_financial_responsible, row.completed_at is not None)
    judged: list[Evidence] = []
    counted: dict[str, list[bool]] = {}
    for record in records:
        seen = objects.get(record.object_key)
        judged.append(Evidence(record.evidence_type, _state(record, seen, now)))
        if judged[-1].state is EvidenceState.COUNTED:
            verified = record.file is not None and record.file.coverage is Coverage.VERIFIED
            examined = verified and record.is_version(seen)
            counted.setdefault(record.evidence_type, []).append(examined)
    verdict = evaluate(sale, judged)
    return SaleGate(row.id, row.completed_at, verdict, tuple(_standings(sale, verdict, counted)))


@cache
def _own(service: Service) -> sa.TextClause:
    return sa.text(f"WITH {own_sale(service)} SELECT * FROM own_sale")


def _state(record: EvidenceRecord, seen: ObjectSeen | None, now: datetime) -> EvidenceState:
    """Return the stage of a record by the object that lies there now, ``seen``."""
    if record.withdrawal is not None or record.is_version(seen):
        return record.state
    return evidence_state(
        record.evidence_type,
        size=None if seen is None else seen.size,
        kind=None,
        damaged=False,
        expired=ran_out(record.expires_at, now),
        vanished=record.ever_seen,
    )


def _standings(sale: Sale, verdict: Verdict, counted: Mapping[str, Sequence[bool]]) -> Iterator[TypeStanding]:
    """Yield each type of the contract; ``counted`` tells of each counted file by type whether it was examined."""
    required = {REPLACES_ALL} if REPLACES_ALL in counted else set(_required(sale, counted))
    unknown = set(_unknown(sale, verdict)) - set(counted)
    reasons = {piece.evidence_type: piece.reason for piece in verdict.missing}
    for each in EvidenceType:
        files = counted.get(each, ())
        needed = None if each in unknown else each in required
        yield TypeStanding(each, needed, len(files), files.count(False), reasons.get(each))


def _required(sale: Sale, counted: Collection[str]) -> Iterator[EvidenceType]:
    for requirement in requirements(sale):
        yield from [each for each in requirement.accepts if each in counted] or [requirement.named]


def _unknown(sale: Sale, verdict: Verdict) -> Iterable[EvidenceType]:
    """Return the types of which nobody knows whether the sale needs them."""
    if Problem.GROUP_UNKNOWN in verdict.problems:
        return EvidenceType
    if Problem.PAYER_UNKNOWN in verdict.problems:
        return [each.named for each in requirements(sale) if each.only_with_separate_payer]
    return ()
