"""Pack the cases of sales into a page, in blocks that its script unpacks when one of their sales is opened.

::

    {"records":  [{"id": "0199c2d4-...", "type": "POV", "state": "COUNTED", "requested": "...",
                   "file": {"size": 1, "seconds": 2.5, "pages": null, "sha256": "...", "coverage": "verified",
                            "fault": null, "seen": "..."} or null,
                   "withdrawal": {"at": "...", "reason": "...", "withdrawnBy": "...",
                                  "approvedBy": "..."} or null}, ...],
     "events":   [["2026-11-20T18:00:00-03:00", "UPLOADED", the place of its record], ...],
                 or null where the custody log could not be asked
     "findings": [{"code": "MISSING_POV", "status": "open", "first": "...", "due": "...", "overdue": false,
                   "waiver": {"end": "2026-12-31", "owner": "...", "approvedBy": "...", "reason": "..."}
                             or null}, ...]}
"""

from __future__ import annotations

import base64
import json
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache, partial
from itertools import islice
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.domain.documents import named
from toolkit.domain.waivers import WaiverRequest
from toolkit.operations.judge.audit.records import EvidenceRecord
from toolkit.operations.judge.audit.sale_evidence import SaleEvidence
from toolkit.reports.report import Report, tuples
from toolkit.reports.times import iso

SALES: Final = 20_000
"""The sales that have a case, the gravest and oldest ones: each takes some 225 bytes of the page."""

AT_ONCE: Final = 250
"""The sales of a block."""

_OF_FINDING: Final = ["code", "status", "firstSeen", "dueAt", "overdue", "waiverId"]

Written = Callable[[datetime], str]
"""Writes a moment in the zone of the report."""

_DIGITS: Final = 16
"""The digits of a SHA-256 that the page has; ``toolkit sale show`` has all 64."""


def blocks(report: Report, tell: Callable[[float], None]) -> Iterator[str]:
    """Yield the cases of the first sales of ``AuditResult.told``, in its order: base64 of deflated JSON."""
    sale_ids = report.result.told["saleId"].head(SALES).tolist()
    written = lru_cache(AT_ONCE)(partial(iso, timezone=report.timezone))  # records and events share many moments
    cases = map(
        partial(_case, written), report.result.lists.evidence(sale_ids), _findings(written, sale_ids, report)
    )
    for start in range(0, len(sale_ids), AT_ONCE):
        tell(start / len(sale_ids))
        some = list(islice(cases, AT_ONCE))
        text = json.dumps(some, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        yield base64.b64encode(deflate.compress(text) + deflate.flush()).decode()


def _case(written: Written, evidence: SaleEvidence, findings: list[dict[str, Any]]) -> dict[str, Any]:
    events = evidence.timeline
    place_of = {record.id: place for place, record in enumerate(evidence.records)}
    return {
        "records": [_record(written, each) for each in evidence.records],
        "events": None
        if events is None
        else [[written(each.happened_at), each.kind, place_of[record]] for each, record in events],
        "findings": findings,
    }


def _record(written: Written, record: EvidenceRecord) -> dict[str, Any]:
    file, taken = record.file, record.withdrawal
    return {
        "id": str(record.id),
        "type": record.evidence_type,
        "state": record.told_state,
        "requested": written(record.requested_at),
        "file": file
        and {
            "size": file.size,
            "seconds": file.seconds,
            "pages": file.pages,
            "sha256": file.sha256 and file.sha256[:_DIGITS],
            "coverage": file.coverage,
            "fault": file.fault,
            "seen": written(file.seen_at),
        },
        "withdrawal": taken
        and named(taken, "reason", "withdrawn_by", "approved_by") | {"at": written(taken.withdrawn_at)},
    }


def _findings(written: Written, sale_ids: Sequence[str], report: Report) -> Iterator[list[dict[str, Any]]]:
    """Yield the findings of each of these sales, with their lives."""
    findings = report.result.life.findings
    waivers = {str(each.id): each.request for each in report.result.life.waivers}
    at = pc.index_in(pa.array(findings["saleId"], pa.large_string()), pa.array(sale_ids, pa.large_string()))
    own = np.flatnonzero(at.is_valid().to_numpy(zero_copy_only=False))
    sale = at.drop_null().to_numpy()
    order = np.argsort(sale, kind="stable")
    sale, told = sale[order], findings[_OF_FINDING].iloc[own[order]]
    for start in range(0, len(sale_ids), AT_ONCE):
        first, last = np.searchsorted(sale, [start, start + AT_ONCE])
        found = defaultdict(list)
        for place, row in zip(sale[first:last].tolist(), tuples(told.iloc[first:last]), strict=True):
            found[place].append(_finding(written, row, waivers.get(row.waiverId)))
        yield from (found[place] for place in range(start, min(start + AT_ONCE, len(sale_ids))))


def _finding(written: Written, row: Any, waiver: WaiverRequest | None) -> dict[str, Any]:
    return {
        "code": row.code,
        "status": row.status,
        "first": written(row.firstSeen),
        "due": written(row.dueAt),
        "overdue": bool(row.overdue),
        "waiver": waiver and named(waiver, "owner", "approved_by", "reason") | {"end": waiver.end.isoformat()},
    }
