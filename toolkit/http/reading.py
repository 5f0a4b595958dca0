"""Answer partners about the evidence of a sale, its completion, and the findings about their sales.

These are additions to the contract, under its tokens, limits and errors.
"""

import re
from collections import Counter
from hashlib import sha256
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from fastapi import FastAPI, Query, Request, Response
from pydantic import AwareDatetime, ConfigDict, Field

from toolkit.audit.partners import findings_page
from toolkit.contract.codes import Severity
from toolkit.contract.evidence import EvidenceType
from toolkit.contract.fields import Birthdate, RequestModel
from toolkit.contract.findings import STANDING, FindingStatus, Problem, Reason, Status
from toolkit.contract.resources import AnswerBody
from toolkit.errors import InvalidField, InvalidFields
from toolkit.evidence.gate import EvidenceOfType, sale_gate
from toolkit.http.access import Asking, SaleIdInPath
from toolkit.http.answers import documented
from toolkit.http.backend import Backend, Workers

PAGE_MAX: Final = 500  # findings on a page


class MissingEvidence(AnswerBody):
    """A required evidence type of which no file counts."""

    evidence_type: EvidenceType
    reason: Reason = Field(description="How far the best attempt got.")
    what_to_do: str


class SaleProblem(AnswerBody):
    """Something about the sale that is not a missing file."""

    code: Problem
    what_to_do: str


class SaleCompletion(AnswerBody):
    """The answer to whether the sale may be completed now, with what keeps it from that."""

    sale_id: str
    may_be_completed: bool = Field(
        description="True where the evidence allows it and the sale was not completed before."
    )
    completed_at: AwareDatetime | None = Field(description="When the sale was completed.")
    status: Status
    missing: list[MissingEvidence]
    problems: list[SaleProblem]
    not_examined: int = Field(
        description="Files that count although nobody has verified their contents: the completion reads them, and "
        "refuses what it finds unusable."
    )


class SaleEvidences(AnswerBody):
    """Every evidence type of the contract with its state for this sale, by what lies in the bucket now."""

    sale_id: str
    status: Status
    evidences: list[EvidenceOfType]
    problems: list[SaleProblem]


class PartnerFinding(AnswerBody):
    """One finding of the newest audit about a sale of the partner."""

    id: UUID
    sale_id: str
    code: str
    evidence_type: EvidenceType | None
    reason: Reason | Literal["SALE_GONE"] | None = Field(
        description="Why the piece of evidence is missing; `SALE_GONE` where the finding ended with its sale."
    )
    severity: Severity
    status: FindingStatus
    first_seen: AwareDatetime
    due_at: AwareDatetime
    overdue: bool
    owner: str = Field(description="Who has to act: the partner by its name, `compliance` or `operations`.")
    what_to_do: str | None = Field(description="Null where the finding is resolved.")


class PartnerFindings(AnswerBody):
    """A page of the partner's findings, in the order of their ids."""

    as_of: AwareDatetime = Field(description="The moment of the audit that found them.")
    findings: list[PartnerFinding]
    next_after: UUID | None = Field(description="The value of `after` for the next page; null on the last one.")


class FindingsQuery(RequestModel):
    """The parameters of ``GET /findings``; one that is not known is refused, as it would find other rows."""

    model_config = ConfigDict(extra="forbid", populate_by_name=False)

    status: FindingStatus | None = Field(
        None, description="Only findings of this status; `open` also finds those that are back (`reopened`)."
    )
    due_before: Birthdate | None = Field(
        None, description="Only findings that are due before this day, written YYYY-MM-DD."
    )
    after: UUID | None = Field(None, description="The `nextAfter` of the page before.")
    limit: int = Field(100, ge=1, le=PAGE_MAX, description="Findings on the page.")


def add_reading(app: FastAPI, backend: Backend, workers: Workers) -> None:
    """Add the endpoints by which a partner reads what is known of its sales."""

    @app.get(
        "/sales/{saleId:encoded}/evidences",
        operation_id="listEvidences",
        summary="Ask which evidence a sale has and lacks",
        response_model=SaleEvidences,
        responses=documented(404),
    )
    @app.get(
        "/sales/{saleId:encoded}/completion",
        operation_id="askForCompletion",
        summary="Ask whether a sale may be completed",
        description="Nothing is changed. The verdict is by what lies in the bucket at this moment.",
        response_model=SaleCompletion,
        responses=documented(404),
    )
    async def about_sale(sale_id: SaleIdInPath, access: Asking) -> dict[str, Any]:
        return await workers.run(lambda: sale_gate(backend.database, backend.bucket, sale_id, access))

    @app.get(
        "/findings",
        operation_id="listFindings",
        summary="List the findings about the partner's own sales",
        description="They are those of the newest audit, without suspicions about files.",
        response_model=PartnerFindings,
        responses={304: {"description": "Nothing changed since the answer that `If-None-Match` names."}},
    )
    async def list_findings(
        access: Asking, asked: Annotated[FindingsQuery, Query()], request: Request, response: Response
    ) -> Any:
        counts = Counter(name for name, _ in request.query_params.multi_items())
        if repeated := [name for name, count in counts.items() if count > 1]:
            raise InvalidFields([InvalidField(name, "Must not be repeated") for name in repeated])
        audit, partner = await workers.run(backend.newest_audit), access.partner
        tag = f'"{sha256(repr((audit.facts.run, partner, asked)).encode()).hexdigest()[:32]}"'
        # The partner alone may keep the answer, and asks each time whether it still holds.
        response.headers.update({"ETag": tag, "Cache-Control": "private, no-cache"})
        if tag in re.findall(r'"[^"]*"', request.headers.get("if-none-match", "")):
            return Response(status_code=304, headers=response.headers)
        named = list(FindingStatus) if asked.status is None else [asked.status]
        statuses = STANDING if asked.status is FindingStatus.OPEN else named
        where = asked.model_dump(exclude={"status"})
        found, after = await workers.run(lambda: findings_page(audit, partner, statuses, **where))
        return {"as_of": audit.facts.as_of, "findings": found, "next_after": after}
