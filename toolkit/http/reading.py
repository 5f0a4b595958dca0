"""Answer partners about the evidence of a sale, its completion, and the findings about their sales.

These are additions to the contract, under its tokens, limits and errors.
"""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from fastapi import Depends, FastAPI, Request, Response
from pydantic import AwareDatetime, ConfigDict, Field

from toolkit.audit.partners import findings_page
from toolkit.contract.codes import Severity
from toolkit.contract.evidence import EvidenceType
from toolkit.contract.fields import Birthdate, RequestModel, parse
from toolkit.contract.findings import STANDING, FindingStatus, Problem, Reason, Status
from toolkit.contract.people import TokenScope
from toolkit.contract.resources import AnswerBody
from toolkit.errors import InvalidField, InvalidFields
from toolkit.evidence.gate import EvidenceOfType, sale_gate
from toolkit.http.access import access_of, needs, sale_id_of
from toolkit.http.answers import EVERYWHERE, answer, documented
from toolkit.http.backend import Backend, Workers
from toolkit.http.documents import REF, SALE_ID
from toolkit.http.tokens import Bearer

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

    model_config = ConfigDict(extra="forbid")

    status: FindingStatus | None = Field(
        None, description="Only findings of this status; `open` also finds those that are back (`reopened`)."
    )
    due_before: Birthdate | None = Field(
        None, description="Only findings that are due before this day, written YYYY-MM-DD."
    )
    after: UUID | None = Field(None, description="The `nextAfter` of the page before.")
    limit: int = Field(100, ge=1, le=PAGE_MAX, description="Findings on the page.")


_PARAMETERS: Final = [
    {"name": name, "in": "query", "description": of.pop("description"), "schema": of.get("anyOf", [of])[0]}
    for name, of in FindingsQuery.model_json_schema(ref_template=REF)["properties"].items()
]


def add_reading(app: FastAPI, backend: Backend, workers: Workers) -> None:
    """Add the endpoints by which a partner reads what is known of its sales."""
    settings = backend.settings

    def about_sale(body: type[AnswerBody]) -> Callable[..., Awaitable[Response]]:
        async def tell(
            bearer: Annotated[Bearer, needs(TokenScope.REQUEST_EVIDENCE)],
            sale_id: Annotated[str, Depends(sale_id_of)],
        ) -> Response:
            access = access_of(bearer, settings)
            gate = await workers.run(lambda: sale_gate(backend.database, backend.bucket, sale_id, access))
            return answer(200, body.model_validate(gate))

        return tell

    shared: Final[dict[str, Any]] = {"responses": documented(404), "openapi_extra": {"parameters": [SALE_ID]}}
    app.get(
        "/sales/{saleId:encoded}/evidences",
        operation_id="listEvidences",
        summary="Ask which evidence a sale has and lacks",
        response_model=SaleEvidences,
        **shared,
    )(about_sale(SaleEvidences))
    app.get(
        "/sales/{saleId:encoded}/completion",
        operation_id="askForCompletion",
        summary="Ask whether a sale may be completed",
        description="Nothing is changed. The verdict is by what lies in the bucket at this moment.",
        response_model=SaleCompletion,
        **shared,
    )(about_sale(SaleCompletion))

    @app.get(
        "/findings",
        operation_id="listFindings",
        summary="List the findings about the partner's own sales",
        description="They are those of the newest audit, without suspicions about files.",
        response_model=PartnerFindings,
        responses={304: {"description": "Nothing changed since the answer that `If-None-Match` names."}},
        openapi_extra={"parameters": _PARAMETERS},
    )
    async def list_findings(
        bearer: Annotated[Bearer, needs(TokenScope.REQUEST_EVIDENCE)], request: Request
    ) -> Response:
        partner = access_of(bearer, settings).partner
        asked = _findings_asked(request.query_params.multi_items())
        audit = await workers.run(backend.newest_audit)
        tag = f'"{sha256(repr((audit.facts.run, partner, asked)).encode()).hexdigest()[:32]}"'
        # The partner alone may keep the answer, and asks each time whether it still holds.
        kept = {"ETag": tag, "Cache-Control": "private, no-cache"}
        if tag in re.findall(r'"[^"]*"', request.headers.get("if-none-match", "")):
            return Response(status_code=304, headers={**EVERYWHERE, **kept})
        found, after = await workers.run(lambda: findings_page(audit, partner, **asked))
        page = {"as_of": audit.facts.as_of, "findings": found, "next_after": after}
        return answer(200, PartnerFindings.model_validate(page), kept)


def _findings_asked(given: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Read the parameters of ``GET /findings`` as those of ``findings_page``.

    Raises:
        InvalidFields: each parameter that cannot be used.
    """
    counts = Counter(name for name, _ in given)
    if repeated := [name for name, count in counts.items() if count > 1]:
        raise InvalidFields([InvalidField(name, "Must not be repeated") for name in repeated])
    query = parse(FindingsQuery, dict(given))
    statuses = (
        STANDING if query.status is FindingStatus.OPEN else {query.status} if query.status else FindingStatus
    )
    return {**query.model_dump(exclude={"status"}), "statuses": sorted(statuses)}
