"""Assemble the application: routes, middleware, and the answer to each kind of error."""

from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from toolkit.entrypoints.http_api.access_log import AccessLog
from toolkit.entrypoints.http_api.addresses import Addresses
from toolkit.entrypoints.http_api.answers import failure, invalid, retry_later
from toolkit.entrypoints.http_api.authentication import Authentication
from toolkit.entrypoints.http_api.backend import Backend
from toolkit.entrypoints.http_api.endpoints import Endpoints
from toolkit.entrypoints.http_api.pages import page_routes
from toolkit.entrypoints.http_api.probes import Probes
from toolkit.entrypoints.http_api.quotas import SharedQuotas
from toolkit.entrypoints.http_api.revocations import Revocations
from toolkit.entrypoints.http_api.workers import Busy, Workers
from toolkit.entrypoints.tokens import TokenChecks
from toolkit.errors import (
    AlreadyThere,
    BucketUnavailable,
    DatabaseUnavailable,
    InvalidFields,
    SaleNotFound,
    TooManyForms,
    WrongBucket,
)

THREADS: Final = 8
"""Operations at the same time, each with a connection of the database pool."""

WAITING: Final = 256
"""Requests that wait for a thread; one more is told to come back later."""

OPERATION_SECONDS: Final = 15
"""The seconds for which a caller is kept waiting for an operation."""

PROBE_SECONDS: Final = 5


def create_app(backend: Backend, checks: TokenChecks) -> Starlette:
    """Return the contract's HTTP interface over ``backend``, for bearers of tokens that pass ``checks``."""
    endpoints = Endpoints(
        backend, Workers("operation", threads=THREADS, waiting=WAITING, seconds=OPERATION_SECONDS)
    )
    probes = Probes(backend, Workers("probe", threads=2, waiting=WAITING, seconds=PROBE_SECONDS))
    open_routes = [*probes.routes(), *page_routes()]
    app = Starlette(
        routes=[*endpoints.routes(), *open_routes],
        middleware=[
            Middleware(AccessLog),
            Middleware(Addresses),
            Middleware(
                Authentication,
                checks,
                Revocations(backend),
                SharedQuotas.open(backend.settings),
                frozenset(route.path for route in open_routes),
            ),
        ],
        exception_handlers=dict.fromkeys(_EXPECTED, _answer),
    )
    app.router.redirect_slashes = False
    return app


async def _answer(request: Request, error: Exception) -> Response:
    """Answer an expected error; ``AccessLog`` answers any other with 500."""
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
