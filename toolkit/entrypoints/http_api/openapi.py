"""Make the OpenAPI document from the request models and the table of answers."""

from collections.abc import Iterable, Mapping
from importlib.metadata import version
from types import MappingProxyType
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from toolkit.domain.clients import Client
from toolkit.domain.evidence import EvidenceRequest
from toolkit.entrypoints.http_api import examples
from toolkit.entrypoints.http_api.answers import (
    PROBLEMS,
    Answer,
    ClientRegistered,
    Live,
    NotReady,
    Ready,
    UploadCredentials,
)

Json = dict[str, Any]

_REF: Final = "#/components/schemas/{model}"
_REQUESTS: Final = (Client, EvidenceRequest)
_ANSWERS: Final = (ClientRegistered, UploadCredentials, Live, Ready, NotReady)

_PARTNERS: Final = (400, 401, 403, 408, 413, 429, 431, 500, 503)
"""Problems that every endpoint of the contract can have."""

_PROBES: Final = (431, 500)

_SALE_ID: Final = {
    "name": "saleId",
    "in": "path",
    "required": True,
    "description": "The sale id returned when the sale was created, percent-encoded.",
    "schema": {"type": "string", "minLength": 1},
    "example": "VND-2026-0001",
}

_REQUEST_ID: Final = {
    "description": "Names this request in the service's log; the caller's own where that is a short plain name.",
    "schema": {"type": "string"},
}

_ABOUT: Final = """\
Registration of clients and upload of evidence for sales.

1. `POST /clients` registers a client with the installation address.
2. `PUT /sales/{saleId}/evidences` answers with an address and form fields.
3. The file is posted to that address as `multipart/form-data`: the fields, `acl`
   with the value `private`, and last the content as `file`. This is not an endpoint
   of the service.

Requests carry a JWT bearer token with `exp` and `sub`. Where it has a `scope` claim,
that names `clients:register` or `evidence:request`. A partner acts on its own sales
only: any other is answered as one that does not exist. A path that does not exist is
answered with 404, another method on a path that does with 405 and `Allow`, both in the
shape of `Failure`. Repeating a registration registers again, unless the service's own
tables take it only once (409).
"""


def document() -> Json:
    """Return the whole document, OpenAPI 3.1."""
    ready = _answered(Ready, examples.PROBES["ready"])
    this_document = {
        "description": "This document.",
        "headers": {"X-Request-ID": _REQUEST_ID},
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
    not_ready = _problem(503, {}) | {"content": _content(NotReady, {"away": examples.NOT_READY})}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Sales Partner Service", "version": version("evidence-toolkit"), "description": _ABOUT},
        "servers": [{"url": "/"}],
        "security": [{"bearerToken": []}],
        "paths": {
            "/clients": {"post": _register_client()},
            "/sales/{saleId}/evidences": {"parameters": [_SALE_ID], "put": _request_upload()},
            "/health": {
                "get": _open("health", "Is the process alive?", _answered(Live, examples.PROBES["health"]))
            },
            "/ready": {"get": _open("ready", "Do database and bucket answer?", ready | {"503": not_ready})},
            "/openapi.json": {"get": _open("openapi", "This document", {"200": this_document})},
        },
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {"bearerToken": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
    }


def _register_client() -> Json:
    answered = _answered(ClientRegistered, examples.CLIENT_REGISTERED)
    return {
        "operationId": "registerClient",
        "summary": "Register a client",
        "requestBody": _body(Client, examples.CLIENT_REQUESTS),
        "responses": answered | _problems((*_PARTNERS, 409), examples.CLIENT_INVALID),
    }


def _request_upload() -> Json:
    answered = _answered(UploadCredentials, examples.UPLOAD_CREDENTIALS)
    return {
        "operationId": "requestUploadCredentials",
        "summary": "Request credentials for the upload of one evidence file",
        "description": "Stores an evidence record each time, with its own object in the bucket.",
        "requestBody": _body(EvidenceRequest, examples.UPLOAD_REQUESTS),
        "responses": answered | _problems((*_PARTNERS, 404), examples.UPLOAD_INVALID),
    }


def _open(name: str, summary: str, responses: Json) -> Json:
    """Return an operation that needs no token."""
    return {"operationId": name, "summary": summary, "security": [], "responses": responses | _problems(_PROBES)}


def _body(model: type[BaseModel], named: Json) -> Json:
    return {"required": True, "content": _content(model, named)}


def _answered(model: type[Answer], example: Json) -> Json:
    described, content = (model.__doc__ or "").strip(), _content(model, {"answered": example})
    return {"200": {"description": described, "headers": {"X-Request-ID": _REQUEST_ID}, "content": content}}


def _problems(statuses: Iterable[int], invalid: Mapping[str, Any] = MappingProxyType({})) -> Json:
    return {str(status): _problem(status, invalid) for status in sorted(statuses)}


def _problem(status: int, invalid: Mapping[str, Any]) -> Json:
    problem = PROBLEMS[status]
    named = invalid if status == 400 else {"problem": examples.problem(problem)}
    headers: Json = {
        name: {"schema": {"type": "string"}, "example": value} for name, value in problem.headers.items()
    }
    return {
        "description": problem.when,
        "headers": {"X-Request-ID": _REQUEST_ID, **headers},
        "content": _content(problem.body, named),
    }


def _content(model: type[BaseModel], named: Mapping[str, Any]) -> Json:
    shown = {name: {"value": value} for name, value in named.items()}
    return {"application/json": {"schema": {"$ref": _REF.format(model=model.__name__)}, "examples": shown}}


def _schemas() -> Json:
    answers = {*_ANSWERS, *(problem.body for problem in PROBLEMS.values())}
    models = [(model, "validation") for model in _REQUESTS] + [(model, "serialization") for model in answers]
    _, schemas = models_json_schema(models, ref_template=_REF)  # type: ignore[arg-type]  # it wants literals
    definitions: Json = schemas["$defs"]
    return {name: _described(definitions[name]) for name in sorted(definitions)}


def _described(schema: Json) -> Json:
    """Return the schema with the contract's words on each field, instead of a title that only repeats its name."""
    schema["description"] = examples.MODELS.get(schema["title"], schema.get("description", ""))
    meanings = examples.FIELDS.get(schema["title"], {})
    for name, field in schema.get("properties", {}).items():
        field.pop("title", None)
        if name in meanings:
            rule = field.get("anyOf", [field])[0].pop("description", "")
            field["description"] = f"{meanings[name]} {rule}".rstrip()
    return schema
