"""Find the sales that lack the evidence that the contract demands, and say why.

The names here are what a notebook or another program needs to judge one client or one sale. Audits are
in ``toolkit.audit``, what a command does in ``toolkit.kit``, the HTTP client for partners in ``toolkit.partner``.

>>> from toolkit import Evidence, EvidenceState, EvidenceType, Sale, evaluate
>>> verdict = evaluate(
...     Sale("A", is_client_financial_responsible=True),
...     [Evidence(EvidenceType.POV, EvidenceState.COUNTED)],
... )
>>> print(verdict.status, [str(piece.evidence_type) for piece in verdict.missing])
incomplete ['DOC_CONTRATANTE']
"""

from toolkit.contract.clients import Address, Client
from toolkit.contract.codes import Severity
from toolkit.contract.evidence import EvidenceRequest, EvidenceType, FileKind, UtilityGroup
from toolkit.contract.fields import parse
from toolkit.contract.findings import MissingPiece, Problem, Reason, Status, Verdict
from toolkit.contract.rules import Evidence, EvidenceState, Sale, evaluate
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
