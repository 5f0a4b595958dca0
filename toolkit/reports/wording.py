"""The words of a report: what codes mean, in the language of the people who read it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC
from typing import Final
from zoneinfo import ZoneInfo

from toolkit.domain.codes import CODES
from toolkit.domain.contents import Coverage
from toolkit.domain.evidence import EvidenceType
from toolkit.domain.findings import Problem, Reason, Status
from toolkit.domain.integrity import IntegrityProblem
from toolkit.operations.judge.audit import AuditResult
from toolkit.reports.times import readable

TITLE: Final = "Missing evidence"

TYPE_NAMES: Final = {
    EvidenceType.POV: "Audio of the contracting party",
    EvidenceType.AUT: "Audio of the financially responsible person",
    EvidenceType.DOC_CONTRATANTE: "Document of the contracting party",
    EvidenceType.DOC_RESPONSAVEL_FINANCEIRO: "Document of the financially responsible person",
    EvidenceType.DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO: "Single document covering both",
    EvidenceType.KYC: "Know Your Customer, facial biometrics",
}
"""The contract's meaning of each evidence type."""

STATUS_TEXTS: Final = {
    Status.COMPLIANT: "Everything that the contract demands is there.",
    Status.INCOMPLETE: "Some evidence that the contract demands is missing.",
    Status.CONFLICT: "What was sent contradicts the contract; more files do not mend it.",
}

GLOSSARY: Final = {
    "Evidence": "A recording or document that a sale needs before it can be completed.",
    "Counted": (
        "A file counts when it lies in the bucket under the key of an evidence record that is not withdrawn, "
        "and nothing was found wrong with it. A record without a file counts for nothing."
    ),
    "Open": "A sale that is incomplete or in conflict: somebody has to act.",
    "File finding": (
        "Something is odd about a file itself. It goes on counting until somebody withdraws its record, with a "
        "reason and a second person."
    ),
    "Age": "Whole days between the creation of the sale and the moment of this report.",
    "Not examined": "A file that nobody has looked into yet. It counts until somebody has.",
    "Utility group": "A, B, C or D; all four demand a document and an audio of the contracting party.",
}

MEANINGS: Final = {
    "isClientFinancialResponsible": (
        "Whether the contracting party pays. If not, an audio and a document of the financially responsible "
        "person are demanded too."
    ),
    **{evidence_type.value: f"{name}." for evidence_type, name in TYPE_NAMES.items()},
    **{code: CODES[code].meaning for code in (*Reason, *Problem, *IntegrityProblem)},
}
"""What each code of the tables means."""


def counted(number: int, noun: str) -> str:
    """``1 sale``, ``2,000 sales``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def headline(result: AuditResult) -> str:
    """The answer in one sentence."""
    if not result.sales:
        return "No sale was known at this moment"
    if not result.open:
        whose = "The one sale has the evidence it needs"
        return whose if result.sales == 1 else f"All {result.sales:,} sales have the evidence they need"
    of_all = f"of {counted(result.sales, 'sale')}"
    lacking = f"{result.incomplete:,} {of_all} {'lacks' if result.incomplete == 1 else 'lack'} evidence"
    clashing = "is in conflict" if result.conflict == 1 else "are in conflict"
    if not result.conflict:
        return lacking
    if not result.incomplete:
        return f"{result.conflict:,} {of_all} {clashing}"
    return f"{lacking}, {result.conflict:,} more {clashing}"


def notices(result: AuditResult) -> list[str]:
    """The facts that a reader must know before trusting the numbers."""
    found = []
    if result.source.embedded:
        services = " and ".join(result.source.embedded)
        found.append(f"Made on an embedded {services}, for trying out: the numbers say nothing about real sales.")
    if result.source.last_sync is None and result.sales:
        found.append("The bucket had never been read at this moment, so no file could count.")
    assumed_at = result.source.records_assumed_at
    if assumed_at is not None and result.as_of < assumed_at:
        found.append(
            f"Evidence records were first observed at {assumed_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC: each is "
            "taken as it was then, from the time when it was requested."
        )
    if result.unexamined:
        verb, them = ("counts", "it") if result.unexamined == 1 else ("count", "them")
        files = counted(result.unexamined, "file")
        found.append(f"{files} {verb} although nobody has examined {them}.")
    found += _coverage_notices(result)
    if result.file_findings:
        kinds = Counter(finding.problem for finding in result.file_findings)
        told = ", ".join(
            f"{CODES[problem].name} ({kinds[problem]:,})" for problem in IntegrityProblem if kinds[problem]
        )
        found.append(f"There are findings about files: {told}.")
    if result.without_client:
        found.append(
            f"{counted(result.without_client, 'sale')} without a client: nobody can be asked for evidence."
        )
    if result.cpf_shown:
        found.append("This report holds whole CPFs: keep it as closely as the contracts themselves.")
    return found


def _coverage_notices(result: AuditResult) -> list[str]:
    found = []
    if result.verification is None and result.as_of == result.made_at:
        found.append("The contents of new files were not verified before this report.")
    coverage = result.coverage
    if coverage[Coverage.VERIFIED] < (files := sum(coverage.values())):
        found.append(
            f"Of {counted(files, 'counted file')}, {coverage[Coverage.VERIFIED]:,} are fully verified, "
            f"{coverage[Coverage.FIRST_BYTES]:,} by their first bytes only, {coverage[Coverage.NEVER]:,} were "
            f"never looked at, {coverage[Coverage.UNREADABLE]:,} could not be read."
        )
    if unproven := result.compliant - result.compliant_verified:
        verb = "rests" if unproven == 1 else "rest"
        found.append(f"{counted(unproven, 'compliant sale')} {verb} on files that are not fully verified.")
    return found


def provenance(result: AuditResult, timezone: ZoneInfo) -> dict[str, str]:
    """The source of the numbers, for those who have to vouch for them."""
    source, sync = result.source, result.source.last_sync
    return {
        "As of": readable(result.as_of, timezone),
        "Made at": readable(result.made_at, timezone),
        "Database": source.database,
        "Bucket": sync.bucket if sync else "never read",
        "Bucket read": readable(sync.finished_at, timezone) if sync else "never",
        "Files counted unexamined": f"{result.unexamined:,}",
        "Sales without a client": f"{result.without_client:,}",
        "Times": f"in {timezone.key}",
        "Rules": source.rules,
        "Toolkit": source.toolkit,
        "Custody seal": source.seal or "none yet",
    }
