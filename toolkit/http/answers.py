"""The answers of the interface: the contract's bodies, and one table of errors.

The same models and the same table make the OpenAPI document.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from pydantic import Field
from starlette.responses import JSONResponse

from toolkit.contract.resources import AnswerBody
from toolkit.errors import InvalidField

RETRY_AFTER: Final = 5  # seconds after which a caller may try again while the service is not available

EVERYWHERE: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
"""Headers of every answer: caches and proxies may not keep upload credentials and ids."""


class AnswerKept(AnswerBody):
    """The answer to a finding, as it is kept."""

    id: UUID = Field(description="Id of the answer.")
    finding_id: UUID


class InvalidFieldError(AnswerBody):
    """One field that breaks a rule."""

    field: str = Field(description="Name of the invalid field, nested names dotted; `body` for a body as a whole.")
    message: str = Field(description="Reason; `Required` for what is missing.")


class InvalidBody(AnswerBody):
    """The request does not pass validation; every invalid field is listed."""

    message: str = Field(description="General text.")
    code: int = Field(description="Repeats the HTTP status.")
    invalid_fields_errors: list[InvalidFieldError] = Field(min_length=1)


class Unauthorized(AnswerBody):
    """The request carries no valid bearer token."""

    message: str = Field(description="What is wrong with the token.")


class ErrorBody(AnswerBody):
    """The request cannot be answered as asked."""

    message: str = Field(description="What is wrong.")
    code: int = Field(description="Repeats the HTTP status.")


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """The answer of a status other than 200: when it is given, its body, its text and the headers of it."""

    message: str
    when: str
    body: type[AnswerBody] = ErrorBody
    headers: Mapping[str, str] = field(default_factory=dict)


PROBLEMS: Final = {
    400: ErrorAnswer(
        "The request is not valid", "The body, an id or a parameter is wrong or missing.", InvalidBody
    ),
    401: ErrorAnswer(
        "A bearer token is required",
        "The bearer token is missing, malformed, wrongly signed, revoked, expired, not yet or too long valid.",
        Unauthorized,
        {"WWW-Authenticate": "Bearer"},
    ),
    403: ErrorAnswer(
        "The bearer token does not allow this",
        "The bearer token has a `scope` claim that does not name this.",
        headers={"WWW-Authenticate": 'Bearer error="insufficient_scope"'},
    ),
    404: ErrorAnswer("Not found", "There is no such sale or finding, or it is not the partner's."),
    405: ErrorAnswer("Method not allowed", "The path exists, the method does not; `Allow` names those that do."),
    408: ErrorAnswer(
        "The request did not arrive in time", "The body arrives too slowly.", headers={"Connection": "close"}
    ),
    409: ErrorAnswer(
        "Repeats what may stand only once in the service",
        "Something of it may stand only once in the service's own tables, and stands there.",
    ),
    413: ErrorAnswer("The body is larger than 64 KiB", "The body is larger than 64 KiB."),
    429: ErrorAnswer(
        "Too many requests; try again later",
        "Too many requests of this subject, or without a valid token from this address; or the sale has as "
        "many valid upload credentials of this type as are allowed. `Retry-After` says in how many seconds "
        "there is room again.",
        headers={"Retry-After": "1"},
    ),
    500: ErrorAnswer("The service failed; its log tells more under this request id", "A fault of the service."),
    501: ErrorAnswer("This cannot be written here", "The service's own tables are only read here."),
    503: ErrorAnswer(
        "The service is not available at the moment; try again later",
        "Database or bucket are away, too many requests wait, or there is no audit. Nothing was acknowledged.",
        headers={"Retry-After": str(RETRY_AFTER)},
    ),
}


def failure(
    status: int, message: str | None = None, headers: Mapping[str, str] | None = None, **more: Any
) -> JSONResponse:
    """Return the table's answer with this status; ``message``, ``headers`` and ``more`` fields are of its own."""
    problem = PROBLEMS[status]
    body = {"message": message or problem.message} | ({} if problem.body is Unauthorized else {"code": status})
    return JSONResponse(body | more, status, {**problem.headers, **(headers or {})})


def retry_later(seconds: float) -> JSONResponse:
    """Return the table's 429, with the whole seconds after which the caller may send again."""
    return failure(429, headers={"Retry-After": str(max(math.ceil(seconds), 1))})


def invalid(fields: Iterable[InvalidField], message: str | None = None) -> JSONResponse:
    """Return the contract's 400; ``message`` where the contract has a case of its own for it."""
    errors = [{"field": each.field, "message": each.message} for each in fields]
    return failure(400, message, invalidFieldsErrors=errors)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the table's answers with these statuses, as FastAPI documents them."""
    problems = {status: PROBLEMS[status] for status in sorted(statuses)}
    return {status: {"model": each.body, "description": each.when} for status, each in problems.items()}
