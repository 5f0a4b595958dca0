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
    from toolkit.contract.codes import Severity as Severity
    from toolkit.contract.evidence import EvidenceRequest as EvidenceRequest
    from toolkit.contract.evidence import EvidenceType as EvidenceType
    from toolkit.contract.evidence import FileKind as FileKind
    from toolkit.contract.evidence import UtilityGroup as UtilityGroup
    from toolkit.contract.fields import parse as parse
    from toolkit.contract.findings import MissingPiece as MissingPiece
    from toolkit.contract.findings import Problem as Problem
    from toolkit.contract.findings import Reason as Reason
    from toolkit.contract.findings import Status as Status
    from toolkit.contract.findings import Verdict as Verdict
    from toolkit.contract.resources import Address as Address
    from toolkit.contract.resources import Client as Client
    from toolkit.contract.rules import Evidence as Evidence
    from toolkit.contract.rules import EvidenceState as EvidenceState
    from toolkit.contract.rules import Sale as Sale
    from toolkit.contract.rules import evaluate as evaluate
    from toolkit.errors import InvalidField as InvalidField
    from toolkit.errors import InvalidFields as InvalidFields
    from toolkit.errors import ToolkitError as ToolkitError
    from toolkit.kit.audits import AuditResult as AuditResult
    from toolkit.kit.audits import open_audit as open_audit
    from toolkit.kit.connection import Kit as Kit
    from toolkit.kit.connection import connect as connect
    from toolkit.kit.shown import Shown as Shown

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

__all__ = sorted(name for names in _HOMES.values() for name in names.split())


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
