"""The audit as one Ibis expression: from three tables to one judged row a sale.

Every column derives from the data in ``toolkit.domain.rules``; a rule that changes there changes here. The
same expression runs in PostgreSQL, in DuckDB over Parquet and on Spark. Property tests hold it equal to
``toolkit.domain.rules.evaluate`` for every sale.
"""

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
        "gone": "!boolean",
    }
)
"""One row an evidence record that is not withdrawn. A type that the contract does not know never counts.

``object_key`` and ``expires_at`` are null where the service does not say them. ``gone`` tells that an object lay
under the key that is gone, also where another one lies there now.
"""

OBJECTS: Final = ibis.schema(
    {
        "key": "!string",
        "size": "!int64",
        "kind": "string",
        "damaged": "!boolean",
        "coverage": "!string",
    }
)
"""One row a key under which an object lies in the bucket; ``size`` in bytes.

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
"""The states of an attempt, furthest first: the best one counts."""

_TYPES: Final = list(EvidenceType)


def _bit(state: EvidenceState, *types: EvidenceType) -> int:
    """Return the bits that stand for an attempt at one of these types that got as far as this state."""
    return sum(1 << len(_TYPES) * _ORDER.index(state) + _TYPES.index(each) for each in types)


def missing_evidence(sales: Table, evidences: Table, objects: Table, as_of: datetime) -> Table:
    """Judge every sale; the tables hold what was there at ``as_of``, in the schemas of this module.

    One row a sale: ``sale_id`` and the other columns of the sale; ``status`` (a ``Status``); ``missing`` in the
    order of the contract's evidenceType table, and ``reasons`` aligned with it; ``problems``, gravest first;
    ``counted``, the types that are there; ``unusable``, whether a file of the sale is; ``unexamined``, how many
    of the counted files nobody has looked into yet; the columns of ``COVERAGES``; ``oldest_request``;
    ``stands_until``, the moment at which time alone changes the judgement, null where it does not. Lists are
    joined by ``|``; an empty list is an empty string.
    """
    attempts = _attempts(evidences, objects, as_of)
    return _with_lists(_with_status(_with_attempts(sales, attempts)))


def _attempts(evidences: Table, objects: Table, as_of: datetime) -> Table:
    """Return one row an evidence record, with the bit of its type and its state."""
    known = evidences.filter(evidences.evidence_type.isin(_TYPES))
    found = known.left_join(objects, known.object_key == objects.key)
    *others, last = dict.fromkeys(KIND_OF.values())
    of_kind = {
        kind: found.evidence_type.isin([each for each in _TYPES if KIND_OF[each] is kind]) for kind in others
    }
    demanded = ibis.cases(*((each, kind) for kind, each in of_kind.items()), else_=last)
    usable = (found["size"] > 0) & ~found.damaged & (found.kind.isnull() | (found.kind == demanded))
    states = {
        EvidenceState.COUNTED: usable,
        EvidenceState.UNUSABLE: found.key.notnull(),
        EvidenceState.VANISHED: found.gone,
        EvidenceState.NOT_UPLOADED: found.expires_at > ibis.literal(as_of),
        EvidenceState.EXPIRED: found.expires_at.notnull(),
    }
    of_first = {state: _bit(state, _TYPES[0]) for state in _ORDER}
    of_state = ibis.cases(
        *((holds, of_first[state]) for state, holds in states.items()),
        else_=of_first[EvidenceState.EXPIRY_UNKNOWN],
    )
    of_type = found.evidence_type.cases(*((each, _bit(EvidenceState.COUNTED, each)) for each in _TYPES))
    return found.select(
        "sale_id",
        "requested_at",
        "expires_at",
        "coverage",
        bit=of_state.cast("int64") * of_type,
        counted=states[EvidenceState.COUNTED],
        examined=found.kind.notnull(),
        replacing=found.evidence_type == REPLACES_ALL,
        waiting=found.key.isnull() & ~found.gone & states[EvidenceState.NOT_UPLOADED],
    )


def _with_attempts(sales: Table, attempts: Table) -> Table:
    """Return the sales, each with the bits of all its attempts."""
    counted = attempts.counted
    by_sale = attempts.group_by("sale_id").aggregate(
        bits=attempts.bit.bit_or(),
        replacing=attempts.count(where=attempts.replacing & counted),
        unexamined=attempts.count(where=~attempts.examined & counted),
        **{COVERAGES[each]: attempts.count(where=(attempts.coverage == each) & counted) for each in Coverage},
        oldest_request=attempts.requested_at.min(),
        stands_until=attempts.expires_at.min(where=attempts.waiting),
    )
    found = sales.left_join(by_sale, sales.id == by_sale.sale_id)
    return found.select(
        *(sales[name] for name in SALES.names if name != "id"),
        by_sale.oldest_request,
        by_sale.stands_until,
        sale_id=sales.id,
        **{name: by_sale[name].fill_null(0) for name in ("bits", "replacing", "unexamined", *COVERAGES.values())},
    )


def _with_status(sales: Table) -> Table:
    """Add the status of each sale."""
    lacking = ~_reached(sales, REPLACES_ALL) & _any(_lacks(sales, named) for named in _named())
    status = ibis.cases(
        (_any(_conflicts(sales).values()), Status.CONFLICT), (lacking, Status.INCOMPLETE), else_=Status.COMPLIANT
    )
    return sales.mutate(status=status)


def _with_lists(sales: Table) -> Table:
    """Return the judged sales, with what was found about each as texts."""
    incomplete = sales.status == Status.INCOMPLETE
    problems = _conflicts(sales) | {
        Problem.COMPLETED_WITHOUT_EVIDENCE: sales.completed_at.notnull() & (sales.status != Status.COMPLIANT),
        Problem.DOCUMENT_REDUNDANT: _reached(sales, COMBINED) & _reached(sales, *REPLACED_BY_COMBINED),
    }
    return sales.select(
        "sale_id",
        *(name for name in SALES.names if name != "id"),
        "oldest_request",
        "unexamined",
        *COVERAGES.values(),
        "status",
        missing=incomplete.ifelse(_joined(_where(_lacks(sales, named), named) for named in _named()), ""),
        reasons=incomplete.ifelse(_joined(_reason_for_lack(sales, named) for named in _named()), ""),
        problems=_joined(_where(problems[each], each) for each in Problem),
        counted=_joined(_where(_reached(sales, each), each) for each in EvidenceType),
        unusable=_reached(sales, *EvidenceType, state=EvidenceState.UNUSABLE),
        stands_until=sales.stands_until,
    )


def _conflicts(sales: Table) -> dict[Problem, BooleanValue]:
    others = (each for each in EvidenceType if each is not REPLACES_ALL)
    return {
        Problem.GROUP_UNKNOWN: ~sales.utility_group.isin(list(UtilityGroup)),
        Problem.PAYER_UNKNOWN: sales.is_client_financial_responsible.isnull() & ~_reached(sales, REPLACES_ALL),
        Problem.KYC_NOT_ALONE: _reached(sales, REPLACES_ALL) & _reached(sales, *others),
        Problem.KYC_REPEATED: sales.replacing > 1,
    }


def _reached(sales: Table, *types: EvidenceType, state: EvidenceState = EvidenceState.COUNTED) -> BooleanValue:
    """Tell whether an attempt at one of these types got exactly so far."""
    return (sales.bits & _bit(state, *types)) != 0


def _lacks(sales: Table, named: EvidenceType) -> BooleanValue:
    """Tell whether a sale without conflict lacks this type."""
    return _any(lacks for lacks, _ in _requirements(sales, named))


def _reason_for_lack(sales: Table, named: EvidenceType) -> StringValue:
    """Return the reason why a sale without conflict lacks this type, null where it does not."""
    return ibis.cases(
        *(
            (
                lacks,
                ibis.cases(
                    *((_reached(sales, *accepts, state=state), REASON_OF[state]) for state in _ORDER[1:]),
                    else_=Reason.NEVER_REQUESTED,
                ),
            )
            for lacks, accepts in _requirements(sales, named)
        )
    )


def _requirements(sales: Table, named: EvidenceType) -> Iterator[tuple[BooleanValue, tuple[EvidenceType, ...]]]:
    """Return whether a sale without conflict fails each requirement that names this type, with what it accepts."""
    every = dict.fromkeys(requirement for rules in GROUP_RULES.values() for requirement in rules)
    for requirement in every:
        if requirement.named is not named:
            continue
        fails = ~_reached(sales, *requirement.accepts)
        groups = [group for group, rules in GROUP_RULES.items() if requirement in rules]
        if len(groups) < len(GROUP_RULES):
            fails &= sales.utility_group.isin(groups)
        if requirement.only_with_separate_payer:
            fails &= ~sales.is_client_financial_responsible
        yield fails, requirement.accepts


def _named() -> list[EvidenceType]:
    """Return the types that some rule can name as missing, in the order of the contract's table."""
    named = {requirement.named for rules in GROUP_RULES.values() for requirement in rules}
    return [each for each in EvidenceType if each in named]


def _any(conditions: Iterable[BooleanValue]) -> BooleanValue:
    return reduce(or_, conditions)


def _where(condition: BooleanValue, text: str) -> StringValue:
    """Return the text where the condition holds, null elsewhere."""
    return ibis.cases((condition, text))


def _joined(texts: Iterable[StringValue]) -> StringValue:
    """Return the texts that are not null, in their order, with the separator between them."""
    return ibis.literal(SEPARATOR).join(list(texts))
