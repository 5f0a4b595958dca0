"""The audit as one Ibis expression: from three tables to one judged row a sale.

Every column derives from the data in ``toolkit.domain.rules``; a rule that changes there changes here. The
same expression runs in PostgreSQL, in DuckDB over Parquet and on Spark. Property tests hold it equal to
``toolkit.domain.rules.evaluate`` for every sale.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Final

import ibis
from ibis import Table
from ibis.expr.types import BooleanValue, StringValue

from toolkit.domain.contents import Coverage
from toolkit.domain.evidence import KIND_OF, EvidenceType, UtilityGroup
from toolkit.domain.findings import Problem, Reason, Status
from toolkit.domain.report_cells import SEPARATOR
from toolkit.domain.rules import (
    COMBINED,
    GROUP_RULES,
    REASON_OF,
    REPLACED_BY_COMBINED,
    REPLACES_ALL,
    EvidenceState,
    Requirement,
)

SALES: Final = ibis.schema(
    {
        "id": "!string",
        "client_id": "string",
        "utility_group": "!string",
        "is_client_financial_responsible": "boolean",
        "partner": "string",
        "created_at": "!timestamp('UTC')",
        "completed_at": "timestamp('UTC')",
    }
)
"""One row a sale. The flag is null where the service does not say who pays.

``client_id`` may be of another type (PostgreSQL's is ``uuid``): it is handed on as it is.
"""

EVIDENCES: Final = ibis.schema(
    {
        "sale_id": "!string",
        "evidence_type": "!string",
        "object_key": "string",
        "requested_at": "!timestamp('UTC')",
        "expires_at": "timestamp('UTC')",
    }
)
"""One row an evidence record that is not withdrawn. A type that the contract does not know never counts.

``object_key`` and ``expires_at`` are null where the service does not say them.
"""

OBJECTS: Final = ibis.schema(
    {
        "key": "!string",
        "size": "!int64",
        "kind": "string",
        "damaged": "!boolean",
        "coverage": "!string",
        "gone": "!boolean",
    }
)
"""One row a key under which an object lies in the bucket, or lay before (``gone``); ``size`` in bytes.

``kind`` is a ``FileKind``, null where nobody has looked at the bytes yet; ``damaged`` stands for every fault
that was found in them; ``coverage`` is a ``Coverage``.
"""

COVERAGES: Final = {
    Coverage.VERIFIED: "verified",
    Coverage.FIRST_BYTES: "first_bytes",
    Coverage.NEVER: "never",
    Coverage.UNREADABLE: "unreadable",
}
"""The columns that count the counted files of a sale by the depth to which they were looked at."""

_ORDER: Final = (EvidenceState.COUNTED, *REASON_OF)
"""The states of an attempt, furthest first; its position is its rank, and the lowest rank is the best."""

_COUNTED: Final = _ORDER.index(EvidenceState.COUNTED)
_NEVER_REQUESTED: Final = len(_ORDER)
_REASONS: Final = [(rank, REASON_OF[state]) for rank, state in enumerate(_ORDER) if state in REASON_OF]
_CONFLICTS: Final = (Problem.GROUP_UNKNOWN, Problem.PAYER_UNKNOWN, Problem.KYC_NOT_ALONE, Problem.KYC_REPEATED)


def missing_evidence(sales: Table, evidences: Table, objects: Table, as_of: datetime) -> Table:
    """Judge every sale; the tables hold what was there at ``as_of``, in the schemas of this module.

    One row a sale: ``sale_id`` and the other columns of the sale; ``status`` (a ``Status``); ``missing`` in the
    order of the contract's evidenceType table, and ``reasons`` aligned with it; ``problems``, gravest first;
    ``counted``, the types that are there; ``unexamined``, how many of the counted files nobody has looked into
    yet; the columns of ``COVERAGES``; ``oldest_request``. Lists are joined by ``|``; an empty list is an empty
    string.
    """
    attempts = _attempts(evidences, objects, as_of)
    return _with_lists(_with_status(_with_best_attempts(sales, attempts)))


def _attempts(evidences: Table, objects: Table, as_of: datetime) -> Table:
    """Return one row an evidence record, with the rank of how far it got."""
    known = evidences.filter(evidences.evidence_type.isin(list(EvidenceType)))
    found = known.left_join(objects, known.object_key == objects.key)
    absent = found.key.isnull()
    gone = found.gone.fill_null(False)
    expired = found.expires_at <= ibis.literal(as_of)
    demanded = found.evidence_type.cases(*KIND_OF.items())
    usable = (found["size"] > 0) & (found.kind.isnull() | (found.kind == demanded)) & ~found.damaged
    rank = ibis.cases(
        (gone, _ORDER.index(EvidenceState.VANISHED)),
        (absent & expired, _ORDER.index(EvidenceState.EXPIRED)),
        (absent & found.expires_at.isnull(), _ORDER.index(EvidenceState.EXPIRY_UNKNOWN)),
        (absent, _ORDER.index(EvidenceState.NOT_UPLOADED)),
        (usable, _COUNTED),
        else_=_ORDER.index(EvidenceState.UNUSABLE),
    )
    return found.select(
        "sale_id",
        "evidence_type",
        "requested_at",
        rank=rank,
        examined=found.kind.notnull(),
        coverage=found.coverage,
    )


def _with_best_attempts(sales: Table, attempts: Table) -> Table:
    """Return the sales, each with the rank of its best attempt at every evidence type."""
    counted = attempts["rank"] == _COUNTED
    by_sale = attempts.group_by("sale_id").aggregate(
        **{_best(each): attempts["rank"].min(where=attempts.evidence_type == each) for each in EvidenceType},
        replacing=counted.sum(where=attempts.evidence_type == REPLACES_ALL),
        unexamined=(counted & ~attempts.examined).sum(),
        **{COVERAGES[each]: (counted & (attempts.coverage == each)).sum() for each in Coverage},
        oldest_request=attempts.requested_at.min(),
    )
    found = sales.left_join(by_sale, sales.id == by_sale.sale_id)
    return found.select(
        *(sales[name] for name in SALES.names if name != "id"),
        by_sale.oldest_request,
        sale_id=sales.id,
        **{_best(each): by_sale[_best(each)].fill_null(_NEVER_REQUESTED) for each in EvidenceType},
        **{name: by_sale[name].fill_null(0) for name in ("replacing", "unexamined", *COVERAGES.values())},
    )


def _with_status(sales: Table) -> Table:
    """Add whether each conflict and each piece of evidence concerns the sale, and its status."""
    there = _there(sales)
    others = _any(found for each, found in there.items() if each is not REPLACES_ALL)
    conflicts = {
        Problem.GROUP_UNKNOWN: ~sales.utility_group.isin(list(UtilityGroup)),
        Problem.PAYER_UNKNOWN: sales.is_client_financial_responsible.isnull() & ~there[REPLACES_ALL],
        Problem.KYC_NOT_ALONE: there[REPLACES_ALL] & others,
        Problem.KYC_REPEATED: sales.replacing > 1,
    }
    reasons = {named: _reason_for_lack(sales, named) for named in _named()}
    lacking = ~there[REPLACES_ALL] & _any(reason.notnull() for reason in reasons.values())
    status = ibis.cases(
        (_any(conflicts.values()), Status.CONFLICT), (lacking, Status.INCOMPLETE), else_=Status.COMPLIANT
    )
    return sales.mutate(
        **conflicts, **{_reason(named): reason for named, reason in reasons.items()}, status=status
    )


def _reason_for_lack(sales: Table, named: EvidenceType) -> StringValue:
    """Return the reason why a sale lacks this type, null where it has it or no rule demands it."""
    lacks = []
    for requirement in _requirements(named):
        demanded = sales.utility_group.isin(
            [group for group, rules in GROUP_RULES.items() if requirement in rules]
        )
        if requirement.only_with_separate_payer:
            demanded &= ~sales.is_client_financial_responsible
        best = ibis.least(*(sales[_best(each)] for each in requirement.accepts))
        lacks.append((demanded & (best > _COUNTED), best.cases(*_REASONS, else_=Reason.NEVER_REQUESTED)))
    return ibis.cases(*lacks)


def _with_lists(sales: Table) -> Table:
    """Return the judged sales, with what was found about each as texts."""
    there = _there(sales)
    incomplete = sales.status == Status.INCOMPLETE
    reasons = {named: sales[_reason(named)] for named in _named()}
    problems = {each: sales[each] for each in _CONFLICTS} | {
        Problem.COMPLETED_WITHOUT_EVIDENCE: sales.completed_at.notnull() & (sales.status != Status.COMPLIANT),
        Problem.DOCUMENT_REDUNDANT: there[COMBINED] & _any(there[each] for each in REPLACED_BY_COMBINED),
    }
    return sales.select(
        "sale_id",
        *(name for name in SALES.names if name != "id"),
        "oldest_request",
        "unexamined",
        *COVERAGES.values(),
        "status",
        missing=incomplete.ifelse(
            _joined(_where(reason.notnull(), named) for named, reason in reasons.items()), ""
        ),
        reasons=incomplete.ifelse(_joined(reasons.values()), ""),
        problems=_joined(_where(problems[each], each) for each in Problem),
        counted=_joined(_where(there[each], each) for each in EvidenceType),
    )


def _requirements(named: EvidenceType) -> Iterator[Requirement]:
    """Return the different requirements, of all groups, that name this type when it is missing."""
    every = dict.fromkeys(requirement for rules in GROUP_RULES.values() for requirement in rules)
    return (requirement for requirement in every if requirement.named is named)


def _named() -> list[EvidenceType]:
    """Return the types that some rule can name as missing, in the order of the contract's table."""
    return [each for each in EvidenceType if any(_requirements(each))]


def _there(sales: Table) -> dict[EvidenceType, BooleanValue]:
    return {each: sales[_best(each)] == _COUNTED for each in EvidenceType}


def _best(evidence_type: EvidenceType) -> str:
    return f"best_{evidence_type}"


def _reason(evidence_type: EvidenceType) -> str:
    return f"reason_{evidence_type}"


def _any(conditions: Iterable[BooleanValue]) -> BooleanValue:
    return reduce(or_, conditions)


def _where(condition: BooleanValue, text: str) -> StringValue:
    """Return the text where the condition holds, null elsewhere."""
    return ibis.cases((condition, text))


def _joined(texts: Iterable[StringValue]) -> StringValue:
    """Return the texts that are not null, in their order, with the separator between them."""
    return ibis.literal(SEPARATOR).join(list(texts))
