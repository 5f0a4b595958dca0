"""Find the sales that lack the evidence that the contract demands, and say why.

``connect()`` gives the toolkit as one object, connected to a database and a bucket; ``open_audit()`` opens an
audit that was made before. The other names judge one client or one sale, without a database.

>>> from toolkit import Evidence, EvidenceState, EvidenceType, Sale, evaluate
>>> verdict = evaluate(
...     Sale("A", is_client_financial_responsible=True),
...     [Evidence(EvidenceType.POV, EvidenceState.COUNTED)],
... )
>>> print(verdict.status, [str(piece.evidence_type) for piece in verdict.missing])
incomplete ['DOC_CONTRATANTE']
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from toolkit.contract.codes import Severity
    from toolkit.contract.evidence import EvidenceRequest, EvidenceType, FileKind, UtilityGroup
    from toolkit.contract.fields import parse
    from toolkit.contract.findings import MissingPiece, Problem, Reason, Status, Verdict
    from toolkit.contract.resources import Address, Client
    from toolkit.contract.rules import Evidence, EvidenceState, Sale, evaluate
    from toolkit.errors import InvalidField, InvalidFields, ToolkitError
    from toolkit.kit.audits import AuditResult, open_audit
    from toolkit.kit.connection import Kit, connect
    from toolkit.kit.shown import Shown

__all__ = [
    "Address",
    "AuditResult",
    "Client",
    "Evidence",
    "EvidenceRequest",
    "EvidenceState",
    "EvidenceType",
    "FileKind",
    "InvalidField",
    "InvalidFields",
    "Kit",
    "MissingPiece",
    "Problem",
    "Reason",
    "Sale",
    "Severity",
    "Shown",
    "Status",
    "ToolkitError",
    "UtilityGroup",
    "Verdict",
    "connect",
    "evaluate",
    "open_audit",
    "parse",
]

_HOMES: Final = {
    "contract.resources": "Address Client",
    "contract.codes": "Severity",
    "contract.evidence": "EvidenceRequest EvidenceType FileKind UtilityGroup",
    "contract.fields": "parse",
    "contract.findings": "MissingPiece Problem Reason Status Verdict",
    "contract.rules": "Evidence EvidenceState Sale evaluate",
    "errors": "InvalidField InvalidFields ToolkitError",
    "kit.audits": "AuditResult open_audit",
    "kit.connection": "Kit connect",
    "kit.shown": "Shown",
}
"""The module of each name, imported at its first use: pandas and SQLAlchemy take a second to load."""


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
