"""HTTP itself: memory, times and connections over a bare socket; the log; the OpenAPI document, whole and true."""

import json
import re
import resource
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from datetime import datetime

import httpx
import jsonschema_rs
import psutil
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from tests.contract.conftest import SUBJECT, issue
from tests.support.raw_http import Wire, chunks, in_process, request
from tests.support.request_bodies import CLIENT, UPLOAD
from tests.support.served_process import SECRET
from tests.support.waiting import PATIENCE
from toolkit.http import app, logs, server
from toolkit.http.answers import PROBLEMS
from toolkit.http.app import create_app
from toolkit.http.backend import Backend
from toolkit.http.tokens import TokenChecks
from toolkit.kit.services import Services


@pytest.fixture(scope="session")
def token(service):
    return issue(service.environ)


@pytest.fixture
def wire(service):
    with Wire(service.server.port) as wire:
        yield wire


def test_a_trailer_that_comes_by_itself_is_no_header(wire, token):
    wire.send(request("POST /clients", Transfer_Encoding="chunked"))
    for sent in (
        *chunks([json.dumps(CLIENT).encode()]),
        b"0\r\nAuthorization: Bearer %s\r\n\r\n" % token.encode(),
    ):
        wire.send(sent)
    assert wire.answer().status_code == 401


ENDLESS = {
    "trailers": b"X-Sum: 1\r\n" * 6000,
    "one trailer": b"a" * 65536,
    "extensions of chunks": b"1;a=" + b"b" * 65000 + b"\r\n \r\n",
}


@pytest.mark.parametrize("with_token", [True, False])
@pytest.mark.parametrize("endless", ENDLESS.values(), ids=ENDLESS)
def test_what_surrounds_a_body_costs_no_memory(service, wire, token, endless, with_token):
    process = psutil.Process(service.server.process.pid)
    before = process.memory_info().rss
    named = {"token": token} if with_token else {}
    wire.send(request("POST /clients", Transfer_Encoding="chunked", **named))
    wire.send(b"" if endless.startswith(b"1;") else b"0\r\nX: ")
    with pytest.raises(ConnectionError):
        for _ in range(1000):
            wire.send(endless)
    assert process.memory_info().rss - before < 20_000_000


def test_a_caller_that_leaves_harms_nobody(service, token):
    with Wire(service.server.port) as wire:
        wire.send(request("POST /clients", token=token, Content_Length="1000", X_Request_ID="left-early"), b"{")

    assert service.server.logged("request", requestId="left-early")["status"] == 499
    assert service.server.log("fault") == []


@pytest.fixture
def hurried(environ, monkeypatch):
    """A server that waits for one second only."""
    monkeypatch.setattr(server, "HEAD_SECONDS", 1)
    monkeypatch.setattr(server, "SEND_SECONDS", 1)
    monkeypatch.setattr(logs, "REST_SECONDS", 1)
    monkeypatch.setattr(app, "BODY_SECONDS", 1)
    with in_process(environ) as running:
        yield running


def test_a_body_that_arrives_slowly_is_a_408_and_the_end(hurried, token):
    with Wire(hurried.port) as wire:
        wire.send(request("POST /clients", token=token, Content_Length="10"), b"{")
        answer = wire.answer()
        assert (answer.status_code, answer.json()["code"]) == (408, 408)
        assert wire.is_closed()


@pytest.mark.parametrize("sent", [b"", b"GET /health HTTP/1.1\r\nHost: x\r\n"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_head_that_does_not_arrive_ends_the_connection(hurried, sent, is_first):
    with Wire(hurried.port) as wire:
        if not is_first:
            wire.send(request("GET /health"))
            assert wire.answer().status_code == 200
        wire.send(sent)
        assert wire.is_closed()


def test_an_early_answer_waits_for_the_rest_of_a_body_for_a_moment_only(hurried):
    with Wire(hurried.port) as wire:
        wire.send(request("POST /clients", Content_Length="100"), b"{")
        assert wire.answer().status_code == 401
        assert wire.is_closed()


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the system has no such limit")
def test_a_caller_that_asks_without_end_and_reads_nothing_is_let_go(hurried):
    with Wire(hurried.port, window=4096) as wire, pytest.raises(ConnectionError):
        for _ in range(1_000_000):
            wire.send(request("GET /openapi.json") * 2)


@pytest.mark.parametrize("head", [b"", b"POST /clients HTTP/1.1\r\nHost: "], ids=["idle", "slow"])
def test_a_thousand_connections_stop_nobody_who_is_connected_and_end_soon(hurried, head):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # both ends of each are in this process
    with ExitStack() as opened:
        connected = opened.enter_context(Wire(hurried.port))
        for number in range(server.CONNECTIONS_MAX):
            if number % 10 == 0:
                connected.send(request("GET /health"))
                assert connected.answer().status_code == 200
            opened.enter_context(Wire(hurried.port)).send(head)
        assert httpx.get(f"{hurried.url}/health", trust_env=False, timeout=PATIENCE).status_code == 200


MARK = "pessoa-marcada"
PERSONAL = CLIENT | {"cpf": "11144477735", "firstName": MARK, "email": f"{MARK}@exemplo.com.br"}
PERSONAL["phoneNumber"] = "11912345678"


def test_each_request_is_one_line_with_its_id(partner, stranger, service):
    answer = partner.post("/clients", json=CLIENT, headers={"X-Request-ID": "order-66"})

    assert answer.headers["x-request-id"] == "order-66"
    line = service.server.logged("request", requestId="order-66")
    assert (line["method"], line["route"], line["status"]) == ("POST", "/clients", 200)
    assert line["subject"] == SUBJECT
    assert line["milliseconds"] > 0
    assert datetime.fromisoformat(line["time"]).tzinfo is not None
    refused = stranger.get("/wp-admin").headers["x-request-id"]
    line = service.server.logged("request", requestId=refused)
    assert (line["status"], line["route"], line["subject"]) == (401, None, None)


def test_nothing_personal_and_no_secret_is_logged(partner, stranger, service):
    sale_id = service.sale(f"VND-{MARK}")
    token = partner.headers["authorization"].split()[1]
    partner.post("/clients", json=PERSONAL)
    partner.post(f"/clients?cpf={PERSONAL['cpf']}&token={token}", json={**PERSONAL, "cpf": MARK})
    partner.post("/clients", content=f'{{"cpf": "{MARK}"', headers={"Content-Type": "application/json"})
    credentials = partner.put(f"/sales/{sale_id}/evidences", json={**UPLOAD, "fileName": f"{MARK}.pdf"}).json()
    partner.put(f"/sales/{MARK}/evidences", json=UPLOAD)
    partner.get(f"/{MARK}/{PERSONAL['cpf']}")
    stranger.get(f"/{MARK}", headers={"User-Agent": MARK, "Referer": MARK, "X-Forwarded-For": MARK})
    stranger.get("/", headers={"Authorization": f"Bearer {MARK}"})
    last = partner.get("/nothing", headers={"X-Request-ID": PERSONAL["cpf"]}).headers["x-request-id"]
    service.server.logged("request", requestId=last)

    log = service.server.log_file.read_text()
    never = (MARK, PERSONAL["cpf"], PERSONAL["phoneNumber"], token, token.rpartition(".")[2], SECRET, '127.0.0.1"')
    assert [text for text in never if str(text) in log] == []
    assert [name for name, value in credentials["fields"].items() if len(value) > 20 and value in log] == []


def test_lines_that_nobody_reads_are_dropped_and_counted_and_never_halt_a_request():
    program = """
import sys
from toolkit.http import logs
logs.start()
for number in range(30_000):
    logs.write("request", number=number)
print("answered", flush=True)
sys.stdin.readline()
"""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as writing:
        assert writing.stdout.readline() == b"answered\n"
        log = []
        while not log or log[-1]["event"] != "lost":
            log.append(json.loads(writing.stderr.readline()))
        writing.stdin.close()
    assert len(log) - 1 + log[-1]["lines"] == 30_000
    assert log[-1]["lines"] > 0


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

WORDS = [
    *(b"\r\n", b"\r\n\r\n", b"\n", b"\0", b" ", b"\t", b":", b"%00", b"%2F", b"%", b"/../", b"//", b"?", b"#"),
    *(b"Content-Length: 5\r\n", b"Content-Length: -1\r\n", b"Content-Length: 99999999999999999999\r\n"),
    *(b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip, chunked\r\n", b"Host: a\r\n", b"Host:\r\n"),
    *(b"Expect: 100-continue\r\n", b"Upgrade: h2c\r\nConnection: Upgrade\r\n", b"Connection: close\r\n"),
    *(b"Authorization: Bearer a.b.c\r\n", b"X-Forwarded-For: 1.2.3.4\r\n", b"Trailer: Authorization\r\n"),
    *(b"0\r\n\r\n", b"0\r\nAuthorization: Bearer x\r\n\r\n", b"ffffffffffffffff\r\n", b"5\r\nhello\r\n"),
    *(b"HTTP/1.0", b"HTTP/2.0", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET ", b"OPTIONS * ", b"CONNECT a:1 "),
    *(b"{", b"[" * 500, b'{"a":' * 100, b'"\\ud800"', b"NaN", b"1e999", b"9" * 5000, b"\xff", b"\xe2\x80\xae"),
]
CHANGE = st.tuples(st.integers(0, 900), st.integers(0, 200), st.sampled_from(WORDS) | st.binary(max_size=20))
"""Where a request is broken, how many bytes go, and what comes in their place."""


@settings(max_examples=5 * settings().max_examples, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.lists(CHANGE, min_size=1, max_size=3))
def test_a_request_that_is_broken_by_chance_gets_answers_of_the_document_or_none(service, token, data, changes):
    body, upload = (json.dumps(each).encode() for each in (CLIENT, UPLOAD))
    in_chunks = request("POST /clients", token=token, Transfer_Encoding="chunked")
    good = [
        request("POST /clients", body, token=token),
        b"".join([in_chunks, *chunks([body[:50], body[50:]]), b"0\r\n\r\n"]),
        request(f"PUT /sales/{SALE_OF_THE_DOCUMENT}/evidences", upload, token=token),
        request("GET /openapi.json"),
    ]
    sent = b"".join(data.draw(st.lists(st.sampled_from(good), min_size=1, max_size=2)))
    for place, gone, come in changes:
        sent = sent[:place] + come + sent[place + gone :]
    with Wire(service.server.port) as wire:
        with suppress(OSError):  # the other side may have closed
            wire.send(sent)
            wire.end()
        statuses = {answer.status_code for answer in wire.answers()}
    assert statuses <= {200, 431, *PROBLEMS} - {500}, sent  # 431 is the server's own
    assert service.server.log("fault") == []


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


def test_the_fields_are_those_of_the_contract(stranger):
    document = stranger.get("/openapi.json").json()
    assert {path: {*methods} for path, methods in document["paths"].items()} == {
        "/clients": {"post"},
        "/sales/{saleId}/evidences": {"get", "put"},
        "/sales/{saleId}/completion": {"get"},
        "/findings": {"get"},
        "/findings/{findingId}/answers": {"post"},
    }
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


def test_the_pages_load_nothing_from_elsewhere(stranger):
    page = stranger.get("/docs")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'; " in policy
    assert "unsafe" not in policy.replace("style-src 'self' 'unsafe-inline'", "")
    named = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(named) == 4
    assert all(stranger.get(f"/{path}").status_code == 200 for path in named if path != "data:,")  # of any prefix
    assert "http" not in page.text
