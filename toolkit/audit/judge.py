"""The audit as Ibis expressions: from the sales, records and objects of an audit folder to its outputs.

Every column derives from the data in ``toolkit.contract.rules``; a rule that changes there changes here. The same
expressions run on DuckDB and on Spark. Property tests hold them equal to ``toolkit.contract.rules.evaluate`` for
every sale.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

import ibis
from ibis import Table
from ibis.expr import datatypes as dt
from ibis.expr.types import BooleanValue, StringValue

from toolkit.contract.codes import WRONG_KIND
from toolkit.contract.contents import COVERAGES, Coverage
from toolkit.contract.evidence import KIND_OF, EvidenceType, UtilityGroup
from toolkit.contract.findings import SEPARATOR, Problem, Reason, Status
from toolkit.contract.rules import (
    COMBINED,
    GROUP_RULES,
    REPLACED_BY_COMBINED,
    REPLACES_ALL,
    EvidenceState,
    rules_fingerprint,
)

_TIME: Final = "timestamp('UTC')"

SALES: Final = ibis.schema(
    {
        "sale_id": "!string",
        "client_id": "string",
        "utility_group": "!string",
        "is_client_financial_responsible": "boolean",
        "partner": "string",
        "created_at": f"!{_TIME}",
        "completed_at": _TIME,
    }
)
"""One row a sale. The flag is null where the service does not say who pays."""

RECORDS: Final = ibis.schema(
    {
        "record": "!int64",
        "evidence_id": "!string",
        "sale_id": "!string",
        "evidence_type": "!string",
        "declared_type": "string",
        "requested_at": f"!{_TIME}",
        "expires_at": _TIME,
        "withdrawn_at": _TIME,
        "object": "int64",
        "vanished": "!boolean",
    }
)
"""One row an evidence record, by the number of its observation, withdrawn ones included.

``object`` is the object that lies under the key of the record, null where none does; ``vanished`` tells that one
was seen there which is gone. ``expires_at`` is null where the service does not say it.
"""

_LOOK: Final = {"speech_seconds": "float64", "depth": "string", "readers": "string", "look": "int64"}
"""Seconds of speech (null: not looked for), the ``Depth``, the packages and versions that read the file, joined by
``|``, and which ``LOOK`` it was; all null where nobody looked."""

OBJECTS: Final = ibis.schema(
    {
        "object": "!int64",
        "size": "!int64",
        "seen_at": f"!{_TIME}",
        "written_at": _TIME,
        "kind": "string",
        "media_type": "string",
        "fault": "string",
        "fault_since": _TIME,
        "coverage": "!string",
        "checked_at": _TIME,
        "sha256": "string",
        "seconds": "float64",
        "pages": "int64",
        **_LOOK,
    }
)
"""One row an object in the bucket, by the number of its observation; ``size`` in bytes.

``kind`` is a ``FileKind``, null where nobody has looked at the bytes yet; ``fault`` is the fault that the latest
look found, ``fault_since`` since when; ``coverage`` is a ``Coverage``; ``checked_at`` is the latest look.
"""

GIVEN: Final = {"sales": SALES, "records": RECORDS, "objects": OBJECTS}
"""The inputs of an audit, without names, CPFs and names of files; kept for the newest audits only."""


def _nullable(schema: ibis.Schema, *names: str) -> dict[str, dt.DataType]:
    return {name: schema[name].copy(nullable=True) for name in names}


FILES: Final = ibis.schema(
    {
        "evidence_id": "!string",
        "sale_id": "!string",
        "partner": "string",
        "evidence_type": "!string",
        "state": "!string",
        "requested_at": f"!{_TIME}",
        **_nullable(RECORDS, "expires_at", "withdrawn_at"),
        **_nullable(OBJECTS, "size", "seen_at", "kind", "coverage", "media_type", "sha256", "seconds", "pages"),
        **_nullable(OBJECTS, "fault", "fault_since", *_LOOK),
    }
)
"""One row a record with its file. ``state`` is an ``EvidenceState``, or ``TYPE_UNKNOWN``, which never counts."""

VERDICTS: Final = ibis.schema(
    {
        "sale_id": "!string",
        "utility_group": "!string",
        "status": "!string",
        "missing": "!string",
        "reasons": "!string",
        "problems": "!string",
        "counted": "!string",
        "is_client_financial_responsible": "boolean",
        "partner": "string",
        "client_id": "string",
        "created_at": f"!{_TIME}",
        "completed_at": _TIME,
        "oldest_request": _TIME,
        "unexamined": "!int64",
        **dict.fromkeys(COVERAGES.values(), "!int64"),
    }
)
"""One row a sale: ``status`` (a ``Status``); ``missing`` in the order of the contract's evidenceType table, and
``reasons`` aligned with it; ``problems``, gravest first; ``counted``, the types that are there; ``unexamined``,
the counted files that nobody has looked into yet. Lists are joined by ``|``; an empty list is an empty string."""

MISSING: Final = f"""
    SELECT sale_id, partner, utility_group, evidence_type, reason
    FROM (
        SELECT *, unnest(string_split(missing, '{SEPARATOR}')) AS evidence_type,
               unnest(string_split(reasons, '{SEPARATOR}')) AS reason,
               generate_subscripts(string_split(missing, '{SEPARATOR}'), 1) AS place
        FROM listed WHERE missing <> ''
    )
    ORDER BY NOT starts_with(problems, '{Problem.COMPLETED_WITHOUT_EVIDENCE}'), created_at, sale_id, place
"""
"""The query of DuckDB for one row a missing piece, in the order of the verdicts, of those ``listed``."""

OUTPUTS: Final = {"files": FILES, "verdicts": VERDICTS}

SCHEMAS: Final = GIVEN | OUTPUTS

AS_OF: Final = ibis.param(_TIME)  # the moment of an audit, which engines put in
TYPE_UNKNOWN: Final = "TYPE_UNKNOWN"  # the state of a record whose type the contract does not know

_ORDER: Final = tuple(EvidenceState)
"""The states of an attempt, furthest first: the best one counts."""

_TYPES: Final = list(EvidenceType)


def judgement() -> Mapping[str, Table]:
    """Return the queries of ``OUTPUTS``, with their rows in order; each may read what those before it wrote.

    Those of the same rules are made but once in a process, as that takes a while.
    """
    return _judgement(rules_fingerprint())


@lru_cache(maxsize=2)
def _judgement(_: str) -> Mapping[str, Table]:
    sales, records, objects, files = (ibis.table(SCHEMAS[name], name=name) for name in (*GIVEN, "files"))
    judged = _with_lists(_with_status(_with_attempts(sales, files)))
    # Open ones first, those completed without evidence first, then by age.
    mild = ~judged.problems.startswith(Problem.COMPLETED_WITHOUT_EVIDENCE)
    ordered = {
        "files": _files_of(sales, records, objects).order_by("record"),
        "verdicts": judged.order_by([judged.status == Status.COMPLIANT, mild, "created_at", "sale_id"]),
    }
    return {name: query.select(*OUTPUTS[name].names) for name, query in ordered.items()}


def _files_of(sales: Table, records: Table, objects: Table) -> Table:
    """Return each record with its file and its state at ``AS_OF``, in ``record`` and the columns of ``FILES``."""
    found = records.left_join(objects, records.object == objects.object)
    demanded = found.evidence_type.cases(*((str(each), str(kind)) for each, kind in KIND_OF.items()))
    known = demanded.notnull()
    # Null where nobody has looked, and for types that the contract does not know.
    other_kind = found.kind != demanded
    usable = (found["size"] > 0) & found.fault.isnull() & (found.kind.isnull() | (found.kind == demanded))
    state = ibis.cases(
        (found.withdrawn_at.notnull(), str(EvidenceState.WITHDRAWN)),
        (~known, TYPE_UNKNOWN),
        (usable, str(EvidenceState.COUNTED)),
        (found["size"].notnull(), str(EvidenceState.UNUSABLE)),
        (found.vanished, str(EvidenceState.VANISHED)),
        (found.expires_at > AS_OF, str(EvidenceState.NOT_UPLOADED)),
        (found.expires_at.notnull(), str(EvidenceState.EXPIRED)),
        else_=str(EvidenceState.EXPIRY_UNKNOWN),
    )
    stated = found.select(
        "record",
        *(name for name in FILES.names if name not in {"partner", "state", "fault", "fault_since"}),
        state=state,
        fault=ibis.coalesce(found.fault, ibis.cases((other_kind, WRONG_KIND))),
        fault_since=ibis.coalesce(found.fault_since, ibis.cases((other_kind, found.checked_at))),
    )
    of_sale = sales.select("sale_id", "partner")
    return stated.left_join(of_sale, "sale_id").select(
        "record", *(of_sale.partner if name == "partner" else stated[name] for name in FILES.names)
    )


def _with_attempts(sales: Table, files: Table) -> Table:
    """Return the sales, each with the bits of all its attempts."""
    known = files.state != TYPE_UNKNOWN
    unknown = ~known
    counted = files.state == EvidenceState.COUNTED
    stands = known & (files.state != EvidenceState.WITHDRAWN)
    of_first = {state: _bit(state, _TYPES[0]) for state in _ORDER}
    of_state = files.state.cases(*((str(state), bit) for state, bit in of_first.items()), else_=0)
    of_type = files.evidence_type.cases(
        *((str(each), _bit(EvidenceState.COUNTED, each)) for each in _TYPES), else_=0
    )
    by_sale = files.group_by("sale_id").aggregate(
        bits=(of_state.cast("int64") * of_type.cast("int64")).bit_or(),
        replacing=files.count(where=counted & (files.evidence_type == REPLACES_ALL)),
        unknown=files.count(where=unknown),
        unknown_files=files.count(where=unknown & files["size"].notnull()),
        unexamined=files.count(where=counted & files.kind.isnull()),
        **{COVERAGES[each]: files.count(where=counted & (files.coverage == each)) for each in Coverage},
        oldest_request=files.requested_at.min(where=stands),
    )
    counts = ("bits", "replacing", "unknown", "unknown_files", "unexamined", *COVERAGES.values())
    found = sales.left_join(by_sale, sales.sale_id == by_sale.sale_id)
    return found.select(
        *(sales[name] for name in SALES.names),
        by_sale.oldest_request,
        **{name: by_sale[name].fill_null(0) for name in counts},
    )


def _with_status(sales: Table) -> Table:
    lacking = ~_reached(sales, REPLACES_ALL) & ibis.or_(*(_lacks(sales, named) for named in _named()))
    status = ibis.cases(
        (ibis.or_(*_conflicts(sales).values()), str(Status.CONFLICT)),
        (lacking, str(Status.INCOMPLETE)),
        else_=str(Status.COMPLIANT),
    )
    return sales.mutate(status=status)


def _with_lists(sales: Table) -> Table:
    """Add what was found about each sale as texts."""
    incomplete = sales.status == Status.INCOMPLETE
    problems = _conflicts(sales) | {
        Problem.COMPLETED_WITHOUT_EVIDENCE: sales.completed_at.notnull() & (sales.status != Status.COMPLIANT),
        Problem.TYPE_UNKNOWN: sales.unknown > 0,
        Problem.DOCUMENT_REDUNDANT: _reached(sales, COMBINED) & _reached(sales, *REPLACED_BY_COMBINED),
    }
    return sales.mutate(
        missing=incomplete.ifelse(_joined(_where(_lacks(sales, named), named) for named in _named()), ""),
        reasons=incomplete.ifelse(_joined(_reason_for_lack(sales, named) for named in _named()), ""),
        problems=_joined(_where(problems[each], each) for each in Problem),
        counted=_joined(_where(_reached(sales, each), each) for each in EvidenceType),
    )


def _conflicts(sales: Table) -> dict[Problem, BooleanValue]:
    others = (each for each in EvidenceType if each is not REPLACES_ALL)
    return {
        Problem.GROUP_UNKNOWN: ~sales.utility_group.isin(list(UtilityGroup)),
        Problem.PAYER_UNKNOWN: sales.is_client_financial_responsible.isnull() & ~_reached(sales, REPLACES_ALL),
        Problem.KYC_NOT_ALONE: _reached(sales, REPLACES_ALL) & _reached(sales, *others),
        Problem.KYC_REPEATED: sales.replacing > 1,
        Problem.TYPE_UNKNOWN: _reached(sales, REPLACES_ALL) & (sales.unknown_files > 0),
    }


def _bit(state: EvidenceState, *types: EvidenceType) -> int:
    """Return the bits that stand for an attempt at one of these types that got as far as this state."""
    return sum(1 << len(_TYPES) * _ORDER.index(state) + _TYPES.index(each) for each in types)


def _reached(sales: Table, *types: EvidenceType, state: EvidenceState = EvidenceState.COUNTED) -> BooleanValue:
    """Tell whether an attempt at one of these types got exactly so far."""
    return (sales.bits & _bit(state, *types)) != 0


def _lacks(sales: Table, named: EvidenceType) -> BooleanValue:
    return ibis.or_(*(lacks for lacks, _ in _requirements(sales, named)))


def _reason_for_lack(sales: Table, named: EvidenceType) -> StringValue:
    """Return the reason why a sale without conflict lacks this type, null where it does not."""
    otherwise = (sales.unknown > 0).ifelse(str(Reason.TYPE_UNKNOWN), str(Reason.NEVER_REQUESTED))
    return ibis.cases(
        *(
            (
                lacks,
                ibis.cases(
                    *((_reached(sales, *accepts, state=state), str(state)) for state in _ORDER[1:]),
                    else_=otherwise,
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


def _where(condition: BooleanValue, text: str) -> StringValue:
    return ibis.cases((condition, str(text)))


def _joined(texts: Iterable[StringValue]) -> StringValue:
    """Return the texts that are not null, in their order, with the separator between them."""
    return ibis.literal(SEPARATOR).join(list(texts))
