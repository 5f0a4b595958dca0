"""``missing-evidence.oscal.json``: the audit as OSCAL assessment results (NIST, version 1.2).

Each code of a finding is an objective, not satisfied where it was found; each finding is an observation, and so is
each withdrawn evidence record. The ids are UUIDs of version 5 over what they stand for, so the same audit gives
the same document.
"""

import json
from datetime import UTC
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid5
from zoneinfo import ZoneInfo

import pandas as pd

from toolkit.domain.codes import CODES, Code
from toolkit.domain.documents import named
from toolkit.domain.finding_life import NAMESPACE, FindingStatus
from toolkit.domain.report_cells import REPORT
from toolkit.operations.judge.audit import AuditResult
from toolkit.reports.report import Report, tuples
from toolkit.reports.times import iso_exact

OSCAL_VERSION: Final = "1.2.3"
_OURS: Final = "urn:evidence-toolkit:oscal"
"""The namespace of properties that OSCAL does not define."""

_ACTIVE: Final = [str(FindingStatus.OPEN), str(FindingStatus.REOPENED)]


def write(report: Report, path: Path) -> None:
    """Write the document."""
    document = assessment_results(report.result, report.timezone)
    path.write_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def assessment_results(result: AuditResult, timezone: ZoneInfo) -> dict[str, Any]:
    """Return the whole document."""
    moment = iso_exact(result.as_of, timezone)
    instant = result.as_of.astimezone(UTC).isoformat()  # whatever offset it was asked in
    audit = uuid5(NAMESPACE, f"audit {result.source.database} {instant} {result.partner or ''}")
    findings = result.life.findings
    active = findings[findings["status"] != FindingStatus.RESOLVED]
    outcome: dict[str, Any] = {
        "uuid": str(uuid5(audit, "result")),
        "title": "Minimum evidence of sales",
        "description": "Every sale was judged by the minimum-evidence rules of its utility group.",
        "start": moment,
        "end": moment,
        "props": [
            _property(name, value)
            for name, value in {
                **named(result, "sales", "compliant", "incomplete", "conflict"),
                "compliant-verified": result.compliant_verified,
                **{f"files-{name}": number for name, number in result.coverage.items()},
                "embedded": ", ".join(result.source.embedded) or "nothing",
                "rules": result.source.rules,
            }.items()
        ],
        "reviewed-controls": {
            "description": "The contract's minimum-evidence rules and the integrity of evidence files.",
            "control-selections": [{"include-all": {}}],
        },
        "findings": [_objective(code, active, audit) for code in CODES.values() if code.severity],
    }
    observations = [_observation(row, moment, timezone) for row in tuples(active)]
    observations += [_withdrawal(row, timezone) for row in tuples(result.withdrawals)]
    if observations:
        outcome["observations"] = observations
    return {
        "assessment-results": {
            "uuid": str(audit),
            "metadata": {
                "title": REPORT,
                "last-modified": moment,
                "version": moment,
                "oscal-version": OSCAL_VERSION,
                "props": [_property("toolkit", result.source.toolkit)],
            },
            "import-ap": {
                "href": "#",
                "remarks": "There is no assessment plan in OSCAL: the rules are those of the contract.",
            },
            "results": [outcome],
        }
    }


def _objective(code: Code, active: pd.DataFrame, audit: UUID) -> dict[str, Any]:
    found = active[active["code"] == code.code]
    standing = found["status"].isin(_ACTIVE)
    reason = "pass" if not len(found) else "fail" if standing.any() else "other"
    objective: dict[str, Any] = {
        "uuid": str(uuid5(audit, code.code)),
        "title": code.name,
        "description": code.meaning,
        "props": [_property("severity", code.severity), _property("findings", len(found))],
        "target": {
            "type": "objective-id",
            "target-id": code.code,
            "status": {
                "state": "not-satisfied" if standing.any() else "satisfied",
                "reason": reason,
                **({"remarks": "Every finding is waived for a time."} if reason == "other" else {}),
            },
        },
        "remarks": code.remedy,
    }
    if len(found):
        objective["related-observations"] = [{"observation-uuid": each} for each in found["id"]]
    return objective


def _observation(row: Any, moment: str, timezone: ZoneInfo) -> dict[str, Any]:
    told = {
        "code": row.code,
        "sale": row.saleId,
        "reason": row.reason,
        "status": row.status,
        "owner": row.owner,
        "first-seen": iso_exact(row.firstSeen, timezone),
        "due": iso_exact(row.dueAt, timezone),
    }
    return {
        "uuid": row.id,
        "title": row.code,
        "description": CODES[row.code].meaning,
        "props": _properties(told),
        "methods": ["TEST"],
        "types": ["finding"],
        "collected": moment,
        "remarks": row.remedy,
    }


def _withdrawal(row: Any, timezone: ZoneInfo) -> dict[str, Any]:
    told = {
        "sale": row.saleId,
        "evidence": str(row.evidenceId),
        "type": row.evidenceType,
        "withdrawn-by": row.withdrawnBy,
        "approved-by": row.approvedBy,
    }
    return {
        "uuid": str(uuid5(NAMESPACE, f"withdrawal {row.evidenceId}")),
        "title": "Withdrawn evidence record",
        "description": " ".join((row.reason or "The database that knows the reason could not be asked.").split()),
        "props": _properties(told),
        "methods": ["EXAMINE"],
        "types": ["withdrawal"],
        "collected": iso_exact(row.withdrawnAt, timezone),
    }


def _properties(told: dict[str, Any]) -> list[dict[str, str]]:
    return [_property(name, value) for name, value in told.items() if isinstance(value, str) and value.strip()]


def _property(name: str, value: object) -> dict[str, str]:
    return {"name": name, "ns": _OURS, "value": " ".join(str(value).split())}
