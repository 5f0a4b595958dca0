"""Assemble the application: the contract's endpoints, probes, documents, and an answer to each kind of error."""

from importlib.metadata import version
from typing import Annotated, Any, Final
from urllib.parse import quote, unquote

from fastapi import Depends, FastAPI, Request, Response
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException

from toolkit.contract.clients import Client
from toolkit.contract.evidence import EvidenceRequest
from toolkit.contract.fields import REQUIRED
from toolkit.contract.people import PartnerAccess, TokenScope
from toolkit.errors import (
    AlreadyThere,
    BucketUnavailable,
    DatabaseUnavailable,
    InvalidField,
    InvalidFields,
    SaleNotFound,
    TooManyForms,
    WrongBucket,
)
from toolkit.evidence.credentials import UploadLimits, request_upload
from toolkit.http.access import AccessControl, RateLimits
from toolkit.http.answers import (
    PROBLEMS,
    Live,
    NotReady,
    Ready,
    RegisteredClient,
    UploadCredentials,
    answer,
    documented,
    failure,
    invalid,
    retry_later,
)
from toolkit.http.backend import Backend, Busy, Workers
from toolkit.http.bodies import read_object
from toolkit.http.documents import (
    ABOUT,
    CLIENT_EXAMPLE,
    DOCUMENT_EXAMPLE,
    RECORDING_EXAMPLE,
    SALE_ID,
    document,
    page_routes,
    request_body,
)
from toolkit.http.logs import RequestLog
from toolkit.http.tokens import Bearer, TokenChecks
from toolkit.intake.registration import register_client

THREADS: Final = 8
"""Operations at the same time, each with a connection of the database pool."""

WAITING: Final = 256
"""Requests that wait for a thread; one more is told to come back later."""

OPERATION_SECONDS: Final = 15
"""The seconds for which a caller is kept waiting for an operation."""

_EVERY_ENDPOINT: Final = (400, 401, 403, 408, 413, 429, 500, 503)
"""Problems that every endpoint of the contract can have."""


class _EncodedSegment(Convertor[str]):
    """One segment, decoded, which may be empty; what is not UTF-8 becomes surrogates, which no stored text has."""

    regex = "[^/]*"

    def convert(self, value: str) -> str:
        return unquote(value, errors="surrogateescape")

    def to_string(self, value: str) -> str:
        return quote(value, safe="", errors="surrogateescape")


register_url_convertor("encoded", _EncodedSegment())


def create_app(backend: Backend, checks: TokenChecks) -> FastAPI:
    """Return the contract's HTTP interface over ``backend``, for bearers of tokens that pass ``checks``."""
    app = FastAPI(
        title="Sales Partner Service",
        version=version("evidence-toolkit"),
        description=ABOUT,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers=dict.fromkeys(_EXPECTED, _answer_error),
    )
    _add_endpoints(app, backend)
    _add_probes(app, backend)
    pages = page_routes(document(app))
    app.router.routes.extend(pages)
    # The last one added is the first that a request meets.
    open_paths = {"/health", "/ready", *(page.path for page in pages)}
    limits = RateLimits(backend.settings.quotas)
    app.add_middleware(
        AccessControl, checks=checks, revocations=backend.revocations, limits=limits, open_paths=open_paths
    )
    app.add_middleware(RequestLog)
    return app


def _needs(purpose: TokenScope) -> Any:
    """Return the dependency that gives the bearer of a token that may be used for ``purpose``, else 403."""

    async def bearer(request: Request) -> Bearer:
        found: Bearer = request.state.bearer
        if purpose not in found.scopes:
            raise HTTPException(403)
        return found

    return Depends(bearer)


async def _sale_id(request: Request) -> str:
    sale_id: str = request.path_params["saleId"]
    if not sale_id:
        raise InvalidFields([InvalidField("saleId", REQUIRED)])
    return sale_id


_Body = Annotated[dict[str, Any], Depends(read_object)]


def _add_endpoints(app: FastAPI, backend: Backend) -> None:
    workers = Workers(threads=THREADS, waiting=WAITING, seconds=OPERATION_SECONDS)
    settings = backend.settings
    limits = UploadLimits(settings.upload_ttl, settings.upload_max_bytes)

    @app.post(
        "/clients",
        operation_id="registerClient",
        summary="Register a client",
        response_model=RegisteredClient,
        responses=documented(*_EVERY_ENDPOINT, 409),
        openapi_extra=request_body(Client, client=CLIENT_EXAMPLE),
    )
    async def register(
        bearer: Annotated[Bearer, _needs(TokenScope.REGISTER_CLIENTS)],  # noqa: ARG001  # it is only demanded
        body: _Body,
    ) -> Response:
        done = await workers.run(lambda: register_client(backend.database, body, backend.clock))
        return answer(200, RegisteredClient.model_validate(done))

    @app.put(
        "/sales/{saleId:encoded}/evidences",
        operation_id="requestUploadCredentials",
        summary="Request credentials for the upload of one evidence file",
        description="Stores an evidence record each time, with its own object in the bucket.",
        response_model=UploadCredentials,
        responses=documented(*_EVERY_ENDPOINT, 404),
        openapi_extra={
            "parameters": [SALE_ID],
            **request_body(EvidenceRequest, document=DOCUMENT_EXAMPLE, recording=RECORDING_EXAMPLE),
        },
    )
    async def request_credentials(
        bearer: Annotated[Bearer, _needs(TokenScope.REQUEST_EVIDENCE)],
        sale_id: Annotated[str, Depends(_sale_id)],
        body: _Body,
    ) -> Response:
        access = PartnerAccess(
            bearer.partner or bearer.subject, settings.unassigned_sales, settings.quotas.open_forms
        )
        issued = await workers.run(
            lambda: request_upload(
                backend.database,
                backend.bucket,
                sale_id,
                body,
                requested_by=bearer.subject,
                access=access,
                limits=limits,
                clock=backend.clock,
            )
        )
        return answer(200, UploadCredentials.model_validate(issued))


def _add_probes(app: FastAPI, backend: Backend) -> None:
    """Add the probes of a supervisor; they wait for nothing, so that load does not hide an outage."""
    needs_no_token: dict[str, Any] = {"security": []}

    @app.get(
        "/health",
        operation_id="health",
        summary="Is the process alive?",
        response_model=Live,
        responses=documented(500),
        openapi_extra=needs_no_token,
    )
    async def health() -> Response:
        return answer(200, Live())

    @app.get(
        "/ready",
        operation_id="ready",
        summary="Do database and bucket answer?",
        response_model=Ready,
        responses=documented(500, 503) | {503: {"model": NotReady, "description": PROBLEMS[503].when}},
        openapi_extra=needs_no_token,
    )
    async def ready(request: Request) -> Response:
        errors = [backend.database_watch.error, backend.bucket_watch.error]
        database, bucket = ("ok" if error is None else "unavailable" for error in errors)
        if errors == [None, None]:
            return answer(200, Ready())
        request.state.reason = ", ".join(type(error).__name__ for error in errors if error)
        body = NotReady(message=PROBLEMS[503].message, code=503, database=database, bucket=bucket)
        return answer(503, body, PROBLEMS[503].headers)


async def _answer_error(request: Request, error: Exception) -> Response:
    """Answer an expected error; ``RequestLog`` answers any other with 500."""
    match error:
        case InvalidFields():
            return invalid(error.invalid, error.summary)
        case AlreadyThere():
            return failure(409, str(error))
        case SaleNotFound():
            return failure(404, "Sale not found")
        case HTTPException():
            return failure(error.status_code, headers=error.headers)
    request.state.reason = type(error).__name__
    return retry_later(error.wait.total_seconds()) if isinstance(error, TooManyForms) else failure(503)


_AWAY: Final = (DatabaseUnavailable, BucketUnavailable, WrongBucket, Busy)
_EXPECTED: Final = (InvalidFields, AlreadyThere, SaleNotFound, TooManyForms, HTTPException, *_AWAY)
