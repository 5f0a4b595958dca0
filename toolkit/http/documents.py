"""The OpenAPI document, made from the models, and the page of Swagger UI that shows it without another host."""

import json
from importlib.resources import files
from itertools import chain
from typing import Any, Final

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.responses import Response
from starlette.routing import Route

from toolkit.contract.evidence import EvidenceRequest
from toolkit.contract.resources import Client, FindingAnswer

ABOUT: Final = """\
Registration of clients and upload of evidence for sales.

1. `POST /clients` registers a client with the installation address.
2. `PUT /sales/{saleId}/evidences` answers with an address and form fields.
3. The file is posted to that address as `multipart/form-data`: the fields, `acl` with the value `private`, and
   last the content as `file`. This is not an endpoint of the service.

What a sale lacks is told by `GET /sales/{saleId}/evidences` and, before it is completed,
`GET /sales/{saleId}/completion`; `GET /findings` lists what is wrong with the partner's sales, and until when it
has to be mended. These three change nothing. `POST /findings/{findingId}/answers` says what becomes of a finding.

Requests carry a JWT bearer token with `exp` and `sub`. Where it has a `scope` claim, that names
`clients:register` or `evidence:request`. A partner acts on its own sales only: any other is answered as one that
does not exist. A path that does not exist is answered with 404, another method on a path that does with 405 and
`Allow`, both in the shape of `ErrorBody`. Repeating a registration registers again, unless the service's own
tables take it only once (409). Each answer has an `X-Request-ID`, which names the request in the service's log:
the caller's own where that is a short plain name.
"""

CLIENT_EXAMPLE: Final[dict[str, Any]] = {
    "externalId": "crm-4711",
    "cpf": "529.982.247-25",
    "rg": "12.345.678-9",
    "numberOnDealership": "3004567",
    "enrollment": "100200",
    "firstName": "Ana",
    "lastName": "Exemplo",
    "email": "ana@exemplo.com.br",
    "birthdate": "1980-02-01",
    "phoneNumber": "11987654321",
    "address": {
        "neighborhood": "Centro",
        "installationNumber": "00123456",
        "address": "Rua das Flores",
        "addressNumber": "100",
        "city": "São Paulo",
        "zipCode": "01310-100",
    },
}

DOCUMENT_EXAMPLE: Final = {
    "fileName": "contratante.pdf",
    "fileFormat": "application/pdf",
    "type": "application/pdf",
    "evidenceType": "DOC_CONTRATANTE",
}

RECORDING_EXAMPLE: Final = {
    "fileName": "gravacao.mp3",
    "fileFormat": "audio/mpeg",
    "type": "audio/mpeg",
    "evidenceType": "POV",
}

ANSWER_EXAMPLE: Final = {"answer": "willCome", "until": "2099-12-31", "text": "The client signs again on Monday"}

_REF: Final = "#/components/schemas/{model}"

_HEADERS: Final = {
    "Cache-Control": "no-cache",
    # Swagger UI writes style attributes and embeds its icons.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
}


def request_body(model: type[BaseModel], **examples: dict[str, Any]) -> dict[str, Any]:
    """Return how FastAPI documents a body that it does not parse itself (``read_object`` is stricter)."""
    named = {name: {"value": value} for name, value in examples.items()}
    schema = {"$ref": _REF.format(model=model.__name__)}
    return {
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema, "examples": named}}}
    }


def document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document of the application's routes."""
    made = app.openapi()
    _, bodies = models_json_schema(
        [(each, "validation") for each in (Client, EvidenceRequest, FindingAnswer)], ref_template=_REF
    )
    made["components"]["schemas"] |= bodies["$defs"]
    # FastAPI's own answer to a wrong parameter, in the place of which a 400 stands.
    for operation in chain.from_iterable(each.values() for each in made["paths"].values()):
        operation["responses"].pop("422", None)
    for name in ("HTTPValidationError", "ValidationError"):
        del made["components"]["schemas"][name]
    bearer = {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
    made["components"]["securitySchemes"] = {"bearerToken": bearer}
    made["security"] = [{"bearerToken": []}]
    return made


def page_routes(shown: dict[str, Any]) -> list[Route]:
    """Return the routes of the documents, which do not change while the server runs; none needs a token."""
    assets, own = files("fastapi_offline") / "static", files("toolkit.http") / "templates"
    texts = {
        "/openapi.json": (json.dumps(shown), "application/json"),
        "/docs": ((own / "docs.html").read_text("utf-8"), "text/html"),
        "/docs/start.js": ((own / "start.js").read_text("utf-8"), "text/javascript"),
        "/docs/swagger-ui-bundle.js": ((assets / "swagger-ui-bundle.js").read_text("utf-8"), "text/javascript"),
        "/docs/swagger-ui.css": ((assets / "swagger-ui.css").read_text("utf-8"), "text/css"),
    }
    return [
        Route(path, Response(text, headers=_HEADERS, media_type=media_type), methods=["GET"])
        for path, (text, media_type) in texts.items()
    ]
