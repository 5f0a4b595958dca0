"""Assemble the application: the contract's endpoints, probes, documents, and an answer to each kind of error."""

import asyncio
import json
from importlib.metadata import version
from typing import Annotated, Any, Final, NoReturn
from urllib.parse import unquote
from uuid import UUID

from fastapi import Depends, FastAPI, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from granian.utils.proxies import wrap_asgi_with_proxy_headers
from pydantic import BeforeValidator
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.routing import Match

from toolkit.audit.partners import keep_answer
from toolkit.contract.evidence import EvidenceRequest
from toolkit.contract.fields import REQUIRED, parse, reason_of
from toolkit.contract.people import TokenScope
from toolkit.contract.resources import Client, FindingAnswer, RegisteredClient, UploadCredentials
from toolkit.errors import (
    AlreadyThere,
    BucketUnavailable,
    DatabaseUnavailable,
    FindingNotFound,
    InvalidField,
    InvalidFields,
    NoAudit,
    NotInstalled,
    SaleNotFound,
    SchemaMismatch,
    ToolkitError,
    TooManyForms,
    UnreadableFile,
    WriteRefused,
    WrongBucket,
)
from toolkit.evidence.credentials import UploadLimits, request_upload
from toolkit.http import documents
from toolkit.http.access import AccessControl, Asking, RateLimits, SaleIdInPath, needs
from toolkit.http.answers import (
    AnswerKept,
    documented,
    failure,
    invalid,
    retry_later,
)
from toolkit.http.backend import Backend, Busy, Workers
from toolkit.http.logs import RequestLog
from toolkit.http.reading import add_reading
from toolkit.http.tokens import TokenChecks
from toolkit.intake.registration import register_client

THREADS: Final = 8  # operations at the same time, each with a connection of the database pool
WAITING: Final = 256  # requests that wait for a thread; one more is told to come back later
OPERATION_SECONDS: Final = 15  # the seconds for which a caller is kept waiting for an operation
BODY_MAX: Final = 64 * 1024  # bytes in a body
BODY_SECONDS: Final = 20  # time for a body to arrive whole

_BODY: Final = "body"
_CONTENT_TYPE: Final = "Content-Type"


class _EncodedSegment(Convertor[str]):
    """One segment, decoded, which may be empty; what is not UTF-8 becomes surrogates, which no stored text has."""

    regex = "[^/]*"

    def convert(self, value: str) -> str:
        return unquote(value, errors="surrogateescape")


register_url_convertor("encoded", _EncodedSegment())


def _finding_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise FindingNotFound from None


FindingIdInPath = Annotated[
    UUID,
    BeforeValidator(_finding_id),
    Path(alias="findingId", description="The id of a finding of `GET /findings`."),
]


def create_app(backend: Backend, checks: TokenChecks) -> FastAPI:
    """Return the contract's HTTP interface over ``backend``, for bearers of tokens that pass ``checks``."""
    app = FastAPI(
        title="Sales Partner Service",
        version=version("evidence-toolkit"),
        description=documents.ABOUT,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses=documented(400, 401, 403, 429, 500, 503),
        exception_handlers=dict.fromkeys(
            (ToolkitError, Busy, HTTPException, RequestValidationError), _answer_error
        ),
    )
    # Two, so that an object for which the bucket does not answer holds no registration.
    workers, readers = (Workers(threads=THREADS, waiting=WAITING, seconds=OPERATION_SECONDS) for _ in range(2))
    _add_endpoints(app, backend, workers)
    add_reading(app, backend, readers)
    _add_probes(app, backend)
    pages = documents.page_routes(documents.document(app))
    app.router.routes.extend(pages)
    # The last one added is the first that a request meets.
    open_paths = {"/health", "/ready", *(page.path for page in pages)}
    limits = RateLimits(backend.settings.quotas)
    app.add_middleware(
        AccessControl, checks=checks, revocations=backend.revocations, limits=limits, open_paths=open_paths
    )
    app.add_middleware(RequestLog)
    app.add_middleware(wrap_asgi_with_proxy_headers, trusted_hosts=[*backend.settings.quotas.trusted_proxies])
    return app


async def read_object(request: Request) -> dict[str, Any]:
    """Return the JSON object that the request carries, and nothing that two readers understand in two ways.

    Raises:
        InvalidFields: the content type is another, the body is packed or not one JSON object; the one entry
            is named after the header, or ``body``.
        HTTPException: 413, the body is too large, noticed without reading on; 408, it arrives too slowly.
    """
    for name in (_CONTENT_TYPE, "Content-Encoding", "Transfer-Encoding"):
        if len(request.headers.getlist(name)) > 1:
            _refuse("Must not be repeated", name)
    _check_content_type(request.headers.get("content-type"))
    for name, plain in (("Content-Encoding", "identity"), ("Transfer-Encoding", "chunked")):
        if request.headers.get(name, plain).strip().lower() != plain:
            _refuse(f"Must be {plain}", name)
    # The parser refuses what is no number or over 2**64, and lets any number of zeros stand before it.
    if int(request.headers.get("content-length", "").lstrip("0") or 0) > BODY_MAX:
        raise HTTPException(413)
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return _parse(await _read(request))
    except TimeoutError:
        raise HTTPException(408) from None


async def _read(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_MAX:
            raise HTTPException(413)
    return bytes(body)


def _check_content_type(header: str | None) -> None:
    if header is None:
        _refuse(REQUIRED, _CONTENT_TYPE)
    media_type, _, parameters = header.lower().partition(";")
    charset = parameters.partition("charset=")[2].partition(";")[0].strip(' "')
    if media_type.strip() != "application/json" or charset not in {"", "utf-8", "utf8"}:
        _refuse("Must be application/json, in UTF-8", _CONTENT_TYPE)


def _parse(body: bytes) -> dict[str, Any]:
    if not body.strip():
        _refuse(REQUIRED)
    try:
        # No field of the contract is a number: as floats, integers of any length cost nothing. NaN and Infinity
        # are not JSON: int takes neither.
        value = json.loads(
            body.decode("utf-8-sig"), object_pairs_hook=_object, parse_constant=int, parse_int=float
        )
    except UnicodeDecodeError:
        _refuse("Must be UTF-8")
    except RecursionError:
        _refuse("Must not be nested so deeply")
    except ValueError:
        _refuse("Must be valid JSON")
    if not isinstance(value, dict):
        _refuse("Must be an object")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        _refuse("Must not repeat a field")
    return fields


def _refuse(reason: str, field: str = _BODY) -> NoReturn:
    raise InvalidFields([InvalidField(field, reason)])


_Body = Annotated[dict[str, Any], Depends(read_object)]


def _add_endpoints(app: FastAPI, backend: Backend, workers: Workers) -> None:
    limits = UploadLimits(backend.settings.upload_ttl, backend.settings.upload_max_bytes)

    @app.post(
        "/clients",
        operation_id="registerClient",
        summary="Register a client",
        dependencies=[needs(TokenScope.REGISTER_CLIENTS)],
        responses=documented(408, 409, 413, 501),
        openapi_extra=documents.request_body(Client, client=documents.CLIENT_EXAMPLE),
    )
    async def register(body: _Body) -> RegisteredClient:
        return await workers.run(lambda: register_client(backend.database, body))

    @app.put(
        "/sales/{saleId:encoded}/evidences",
        operation_id="requestUploadCredentials",
        summary="Request credentials for the upload of one evidence file",
        description="Stores an evidence record each time, with its own object in the bucket.",
        responses=documented(404, 408, 409, 413, 501),
        openapi_extra=documents.request_body(
            EvidenceRequest, document=documents.DOCUMENT_EXAMPLE, recording=documents.RECORDING_EXAMPLE
        ),
    )
    async def request_credentials(sale_id: SaleIdInPath, access: Asking, body: _Body) -> UploadCredentials:
        return await workers.run(
            lambda: request_upload(backend.database, backend.bucket, sale_id, body, access, limits)
        )

    @app.post(
        "/findings/{findingId:encoded}/answers",
        operation_id="answerFinding",
        summary="Answer a finding about a sale of the partner",
        description="The answer is kept beside the finding and changes no verdict.",
        responses=documented(404, 408, 413),
        openapi_extra=documents.request_body(FindingAnswer, willCome=documents.ANSWER_EXAMPLE),
    )
    async def answer_finding(finding_id: FindingIdInPath, access: Asking, body: _Body) -> AnswerKept:
        said = parse(FindingAnswer, body)
        who = {"partner": access.partner, "answered_by": access.subject}
        kept = await workers.run(
            lambda: keep_answer(backend.database, backend.newest_audit(), finding_id, said, **who)
        )
        return AnswerKept(id=kept, finding_id=finding_id)


def _add_probes(app: FastAPI, backend: Backend) -> None:
    """Add the probes of a supervisor; they wait for nothing, so that load does not hide an outage."""

    @app.get("/health", include_in_schema=False)
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/ready", include_in_schema=False)
    async def ready(request: Request) -> Response:
        errors = {"database": backend.database_watch.error, "bucket": backend.bucket_watch.error}
        services: dict[str, Any] = {name: "unavailable" if error else "ok" for name, error in errors.items()}
        if not any(errors.values()):
            return JSONResponse({"status": "ready", **services})
        request.state.reason = ", ".join(type(error).__name__ for error in errors.values() if error)
        return failure(503, **services)


async def _answer_error(request: Request, error: Exception) -> Response:
    """Answer an expected error, and raise any other again: ``RequestLog`` answers it with 500."""
    match error:
        case RequestValidationError():
            return invalid(InvalidField(each["loc"][1], reason_of(each)) for each in error.errors())
        case InvalidFields():
            return invalid(error.invalid, error.summary)
        case SaleNotFound():
            return failure(404, "Sale not found")
        case FindingNotFound():
            return failure(404, "Finding not found")
        case NoAudit():
            return failure(503, f"{error} Try again later.")
        case AlreadyThere() | WriteRefused():
            request.state.reason = str(error)
            return failure(409, str(error)) if isinstance(error, AlreadyThere) else failure(501)
        case HTTPException(status_code=405):
            at_path = (each for each in request.app.routes if each.matches(request.scope)[0] is not Match.NONE)
            allowed = {method for route in at_path for method in route.methods}
            allowed |= {"HEAD"} if "GET" in allowed else set()
            return failure(405, headers={"Allow": ", ".join(sorted(allowed))})
        case HTTPException():
            return failure(error.status_code, headers=error.headers)
        case TooManyForms():
            request.state.reason = type(error).__name__
            return retry_later(error.wait.total_seconds())
        case SchemaMismatch():
            request.state.reason = str(error)
        case _ if isinstance(error, _AWAY):
            request.state.reason = type(error).__name__
        case _:
            raise error
    return failure(503)


_AWAY: Final = (DatabaseUnavailable, BucketUnavailable, WrongBucket, NotInstalled, Busy, UnreadableFile)
