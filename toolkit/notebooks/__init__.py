"""The functions that notebooks call, one for each notebook; and the strict runs of notebooks for a scheduler.

A function takes plain values, as a parameters cell holds them, and returns an object that shows itself; its
``result`` is what the work returned. Each is imported at its first use, so that a notebook loads only its own.
"""

from importlib import import_module
from typing import Any, Final

_MODULES: Final = {
    "client_quality": "intake",
    "compare_moments": "audits",
    "content_verification": "evidence",
    "load_clients": "intake",
    "load_sales": "intake",
    "missing_evidence_report": "audits",
    "one_sale": "audits",
    "partner_scores": "audits",
    "request_credentials": "evidence",
}

__all__ = [*_MODULES]  # names of the table above


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(name)
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
