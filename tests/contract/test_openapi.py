"""The OpenAPI document: whole, true, and what schemathesis finds when it takes the server at its word."""

import re

import jsonschema_rs
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from tests.contract.conftest import issue
from tests.support.request_bodies import CLIENT
from tests.support.served_process import SECRET
from toolkit.http.app import create_app
from toolkit.http.backend import Backend
from toolkit.http.tokens import TokenChecks
from toolkit.kit.services import Services

SALE_OF_THE_DOCUMENT = "VND-2026-0001"

SERVICES = Services({"TOOLKIT_JWT_SECRET": SECRET})
DOCUMENT = create_app(Backend(SERVICES), TokenChecks(SERVICES.settings)).openapi()
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
OPERATIONS = [found.ok() for found in SCHEMA.get_all_operations()]

CASES = [
    (operation, mode)
    for operation in OPERATIONS
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    if mode is GenerationMode.POSITIVE or operation.body
]
"""Each operation with good requests and, where there is a body to be broken, with bad ones."""


@pytest.fixture(scope="session")
def document(stranger):
    return stranger.get("/openapi.json").json()


@pytest.fixture(scope="session")
def session(audited):
    with requests.Session() as session:
        session.trust_env = False
        session.headers["Authorization"] = f"Bearer {issue(audited.environ)}"
        audited.sale(SALE_OF_THE_DOCUMENT)
        yield session


def fits(operation, body):
    """Tell whether a body is good, as far as the schema says: some that schemathesis calls broken are."""
    asked = DOCUMENT["paths"][operation.path][operation.method].get("requestBody")
    if asked is None or isinstance(body, bytes):
        return asked is None
    schema = asked["content"]["application/json"]["schema"] | {"components": DOCUMENT["components"]}
    return jsonschema_rs.is_valid(schema, body)


@pytest.mark.parametrize(("operation", "mode"), CASES, ids=lambda value: getattr(value, "label", value))
def test_schemathesis_finds_no_500_and_no_answer_outside_of_the_document(service, session, operation, mode):
    @given(operation.as_strategy(generation_mode=mode), st.booleans())
    @settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    def holds(case, for_a_known_sale):
        if "saleId" in case.path_parameters and for_a_known_sale:
            case.path_parameters["saleId"] = SALE_OF_THE_DOCUMENT
        # What a field holds is told in words: the schema names types, and the models refuse what breaks a rule.
        unsure = [positive_data_acceptance]
        unsure += [negative_data_rejection] if fits(operation, case.body) else []
        case.call_and_validate(base_url=service.server.url, session=session, excluded_checks=unsure)

    holds()


def test_the_fields_are_those_of_the_contract(document):
    assert {path: {*methods} for path, methods in document["paths"].items()} == {
        "/clients": {"post"},
        "/sales/{saleId}/evidences": {"get", "put"},
        "/sales/{saleId}/completion": {"get"},
        "/findings": {"get"},
        "/findings/{findingId}/answers": {"post"},
    }
    answered = document["paths"]["/findings/{findingId}/answers"]["post"]["responses"]
    assert [answered[status]["description"] for status in ("400", "404")] == [
        "The body, an id or a parameter is wrong or missing.",
        "There is no such sale or finding, or it is not the partner's.",
    ]
    schemas = document["components"]["schemas"]
    client, address = schemas["Client"], schemas["Address"]

    assert set(client["properties"]) == set(CLIENT)
    assert set(client["required"]) == set(CLIENT) - {"externalId", "rg", "email", "phoneNumber"}
    assert set(address["properties"]) == set(address["required"]) == set(CLIENT["address"])
    assert set(schemas["EvidenceRequest"]["required"]) == {"fileName", "fileFormat", "type", "evidenceType"}
    assert set(schemas["InvalidBody"]["required"]) == {"message", "code", "invalidFieldsErrors"}
    assert set(schemas["Unauthorized"]["required"]) == {"message"}
    for name in ("Client", "Address", "EvidenceRequest"):
        for field in schemas[name]["properties"].values():
            assert "$ref" in field or "description" in field
    assert client["properties"]["numberOnDealership"]["title"] == "Client code at the utility"


def test_the_pages_load_nothing_from_elsewhere(stranger):
    page = stranger.get("/docs")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'; " in policy
    assert "unsafe" not in policy.replace("style-src 'self' 'unsafe-inline'", "")
    named = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(named) == 4
    assert all(stranger.get(path).status_code == 200 for path in named if path != "data:,")
    assert "http" not in page.text
