"""Find the sales that lack the evidence that the contract demands, and say why.

The names here are what a notebook or another program needs to judge one client or one sale. The jobs on a
database and a bucket are in ``toolkit.operations``, the HTTP client for partners in ``toolkit.partner``.

>>> from toolkit import Evidence, EvidenceState, EvidenceType, Sale, evaluate
>>> verdict = evaluate(
...     Sale("A", is_client_financial_responsible=True),
...     [Evidence(EvidenceType.POV, EvidenceState.COUNTED)],
... )
>>> print(verdict.status, [str(piece.evidence_type) for piece in verdict.missing])
incomplete ['DOC_CONTRATANTE']
"""

from toolkit.domain.clients import Address, Client
from toolkit.domain.codes import Severity
from toolkit.domain.evidence import EvidenceRequest, EvidenceType, FileKind, UtilityGroup
from toolkit.domain.findings import MissingPiece, Problem, Reason, Status, Verdict
from toolkit.domain.requests import parse
from toolkit.domain.rules import Evidence, EvidenceState, Sale, evaluate
from toolkit.errors import InvalidField, InvalidFields, ToolkitError

__all__ = [
    "Address",
    "Client",
    "Evidence",
    "EvidenceRequest",
    "EvidenceState",
    "EvidenceType",
    "FileKind",
    "InvalidField",
    "InvalidFields",
    "MissingPiece",
    "Problem",
    "Reason",
    "Sale",
    "Severity",
    "Status",
    "ToolkitError",
    "UtilityGroup",
    "Verdict",
    "evaluate",
    "parse",
]
