"""Serve the two endpoints of the contract: read the request, run one operation, answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolkit.domain.fields import REQUIRED
from toolkit.domain.partners import PartnerAccess, Scope
from toolkit.entrypoints.http_api.addresses import SALE_EVIDENCES
from toolkit.entrypoints.http_api.answers import ClientRegistered, UploadCredentials, answer
from toolkit.entrypoints.http_api.backend import Backend
from toolkit.entrypoints.http_api.bodies import read_object
from toolkit.entrypoints.http_api.workers import Workers
from toolkit.entrypoints.tokens import Bearer
from toolkit.errors import InvalidField, InvalidFields
from toolkit.operations.register.registration import register_client
from toolkit.operations.request.single import UploadLimits, request_upload


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The contract's endpoints over one backend."""

    backend: Backend
    workers: Workers

    def routes(self) -> list[Route]:
        """Return the paths with the one method that each accepts; another is answered with 405."""
        return [
            Route("/clients", self.register_client, methods=["POST"]),
            Route(SALE_EVIDENCES, self.request_upload, methods=["PUT"]),
        ]

    async def register_client(self, request: Request) -> Response:
        """``POST /clients`` (contract, "1. Register client")."""
        _demand(request, Scope.REGISTER_CLIENTS)
        body = await read_object(request)
        return await self.workers.run(partial(self._register, body))

    async def request_upload(self, request: Request) -> Response:
        """``PUT /sales/{saleId}/evidences`` (contract, "2. Request evidence upload credentials")."""
        _demand(request, Scope.REQUEST_EVIDENCE)
        sale_id = request.path_params["sale_id"]
        if not sale_id:
            raise InvalidFields([InvalidField("saleId", REQUIRED)])
        body = await read_object(request)
        return await self.workers.run(partial(self._request_upload, sale_id, body, request.state.bearer))

    def _register(self, body: Mapping[str, Any]) -> Response:
        done = register_client(self.backend.database, body, self.backend.clock)
        return answer(200, ClientRegistered.model_validate(done))

    def _request_upload(self, sale_id: str, body: Mapping[str, Any], bearer: Bearer) -> Response:
        settings = self.backend.settings
        issued = request_upload(
            self.backend.database,
            self.backend.bucket,
            sale_id,
            body,
            requested_by=bearer.subject,
            access=PartnerAccess(bearer.partner, settings.unassigned_sales, settings.quotas.open_forms),
            limits=UploadLimits(settings.upload_ttl, settings.upload_max_bytes),
            clock=self.backend.clock,
        )
        return answer(200, UploadCredentials.model_validate(issued))


def _demand(request: Request, scope: Scope) -> None:
    if scope not in request.state.bearer.scopes:
        raise HTTPException(403)
