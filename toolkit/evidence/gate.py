"""Tell a partner what evidence one of its sales has and lacks, and whether it may be completed.

Contract, "Minimum evidence rules per utility group". The rules are read for the one sale, over its records in the
database and the objects that lie under their keys in the bucket at this moment.
"""

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from typing import Any

from pydantic import Field

from toolkit.bucket.client import Bucket, ask_each
from toolkit.contract.codes import CODES
from toolkit.contract.contents import Coverage
from toolkit.contract.evidence import EvidenceType
from toolkit.contract.findings import Problem, Reason, Status, Verdict
from toolkit.contract.people import PartnerAccess
from toolkit.contract.resources import AnswerBody
from toolkit.contract.rules import REPLACES_ALL, Evidence, EvidenceState, Sale, evaluate, requirements
from toolkit.database.belonging import check_bucket
from toolkit.database.connection import Database
from toolkit.evidence.access import one_sale
from toolkit.evidence.records import records_seen


class TypeState(StrEnum):
    """The state of one evidence type of a sale."""

    PRESENT = "present"
    MISSING = "missing"
    NOT_REQUIRED = "notRequired"
    UNKNOWN = "unknown"


class EvidenceOfType(AnswerBody):
    """One evidence type of the sale."""

    evidence_type: EvidenceType
    required: bool | None = Field(
        description="A file of this type is needed, or counts in place of one that is; null where nobody knows, "
        "because the sale does not say its utility group or who pays."
    )
    state: TypeState
    files: int = Field(description="Files of this type that count.")
    not_examined: int = Field(description="Those of them whose contents nobody has verified.")
    reason: Reason | None = Field(description="Why no file of a required type counts.")
    what_to_do: str | None


def sale_gate(database: Database, bucket: Bucket, sale_id: str, access: PartnerAccess) -> dict[str, Any]:
    """Judge one sale of a partner by what lies in the bucket now; a file that is new counts unexamined.

    Returned is what is told of the sale, by the fields of the answers over HTTP, each of which takes its own.

    Raises:
        SaleNotFound: no sale has this id, or it is not the partner's.
        DatabaseError: several sales have it.
        WrongBucket: the database belongs to another bucket.
        BucketError: the bucket could not be asked.
    """
    now = database.clock()
    with database.transaction() as connection:
        row = one_sale(connection, access, sale_id)
        check_bucket(connection, bucket)
        records = records_seen(connection, sale_id, now)
    asked_for = [each.object_key for each in records if each.withdrawal is None]
    [found] = ask_each(bucket.head, [asked_for])
    objects = dict(zip(asked_for, found, strict=True))
    judged: list[Evidence] = []
    counted: dict[str, list[bool]] = {}
    for record in records:
        seen = objects.get(record.object_key)
        judged.append(Evidence(record.evidence_type, record.state_by(seen)))
        if judged[-1].state is EvidenceState.COUNTED:
            known = record.known_of(seen)
            verified = known is not None and known.coverage is Coverage.VERIFIED
            counted.setdefault(record.evidence_type, []).append(verified)
    sale = Sale(row.utility_group, row.is_client_financial_responsible, row.completed_at is not None)
    verdict = evaluate(sale, judged)
    evidences = [*_standings(sale, verdict, counted)]
    return {
        "sale_id": row.id,
        "may_be_completed": row.completed_at is None and verdict.status is Status.COMPLIANT,
        "completed_at": row.completed_at,
        "status": verdict.status,
        "missing": [
            {"evidence_type": each.evidence_type, "reason": each.reason, "what_to_do": CODES[each.reason].remedy}
            for each in verdict.missing
        ],
        "problems": [{"code": each, "what_to_do": CODES[each].remedy} for each in verdict.problems],
        "evidences": evidences,
        "not_examined": sum(each.not_examined for each in evidences),
    }


def _standings(sale: Sale, verdict: Verdict, counted: Mapping[str, list[bool]]) -> Iterator[EvidenceOfType]:
    """Yield each type of the contract; ``counted`` tells of each counted file by type whether it was examined."""
    needed: Collection[EvidenceType] = {
        each
        for requirement in requirements(sale)
        for each in [each for each in requirement.accepts if each in counted] or [requirement.named]
    }
    if REPLACES_ALL in counted:
        needed = {REPLACES_ALL}
    unknown: Collection[EvidenceType] = ()
    if Problem.GROUP_UNKNOWN in verdict.problems:
        unknown = list(EvidenceType)
    elif Problem.PAYER_UNKNOWN in verdict.problems:
        unknown = [each.named for each in requirements(sale) if each.only_with_separate_payer]
    reasons = {piece.evidence_type: piece.reason for piece in verdict.missing}
    for each in EvidenceType:
        files, reason = counted.get(each, []), reasons.get(each)
        required = None if each in unknown and not files else each in needed
        absent = TypeState.MISSING if required else TypeState.NOT_REQUIRED
        yield EvidenceOfType(
            evidence_type=each,
            required=required,
            state=TypeState.PRESENT if files else TypeState.UNKNOWN if required is None else absent,
            files=len(files),
            not_examined=files.count(False),
            reason=reason,
            what_to_do=None if reason is None else CODES[reason].remedy,
        )
