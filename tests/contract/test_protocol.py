"""HTTP itself: sizes, times and ids, over a bare socket where a client would not do; the log."""

import json
import resource
import socket
import subprocess
import sys
from contextlib import ExitStack
from datetime import datetime
from itertools import repeat

import httpx
import psutil
import pytest

from tests.contract.conftest import SUBJECT, errors, issue
from tests.support.raw_http import Wire, chunks, in_process, request
from tests.support.request_bodies import CLIENT, UPLOAD
from tests.support.served_process import SECRET
from tests.support.waiting import PATIENCE
from toolkit.http import app, logs, server

BODY_MAX = 64 * 1024
CLIENT_BYTES = json.dumps(CLIENT).encode()


@pytest.fixture(scope="session")
def token(service):
    return issue(service.environ)


@pytest.fixture
def wire(service):
    with Wire(service.server.port) as wire:
        yield wire


def is_problem(answer, status):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"]
    assert answer.json().keys() == {"message", "code"}
    assert answer.json()["code"] == status
    return True


def padded(size):
    """A valid registration of exactly ``size`` bytes."""
    return CLIENT_BYTES + b" " * (size - len(CLIENT_BYTES))


@pytest.mark.parametrize("line", ["POST /clients", "PUT /sales/x/evidences"])
def test_a_byte_beyond_64_kib_is_a_413_and_the_connection_goes_on(wire, token, line):
    wire.send(request(line, padded(BODY_MAX + 1), token=token))
    assert is_problem(wire.answer(), 413)

    wire.send(request("POST /clients", padded(BODY_MAX), token=token))
    assert wire.answer().status_code == 200


@pytest.mark.parametrize("zeros", [0, 5000])
def test_a_declared_size_is_refused_before_any_of_it_was_sent(wire, token, zeros):
    size = "0" * zeros + str(10**12)
    wire.send(request("POST /clients", token=token, Content_Length=size, Expect="100-continue"))

    assert is_problem(wire.answer(), 413)
    assert wire.is_closed()


def test_a_body_of_unknown_size_is_refused_when_it_grew_too_large(wire, token):
    wire.send(request("POST /clients", token=token, Transfer_Encoding="chunked"))
    wire.send(*chunks(repeat(b" " * 65536, 17)))

    assert is_problem(wire.answer(), 413)
    assert wire.is_closed()


AUTHORIZATION_AS_TRAILER = b"0\r\nAuthorization: Bearer %s\r\n\r\n"


def test_a_packed_body_is_a_400(wire, token):
    head = request("POST /clients", token=token, Transfer_Encoding="gzip, chunked")
    wire.send(head, *chunks([CLIENT_BYTES]), b"0\r\n\r\n")

    assert list(errors(wire.answer())) == ["Transfer-Encoding"]


@pytest.mark.parametrize("at_once", [False, True])
def test_a_trailer_is_no_header(wire, token, at_once):
    head = request("POST /clients", Transfer_Encoding="chunked")
    parts = [head, *chunks([CLIENT_BYTES]), AUTHORIZATION_AS_TRAILER % token.encode()]
    for sent in [b"".join(parts)] if at_once else parts:
        wire.send(sent)
    assert wire.answer().status_code == 401


def test_a_body_of_unknown_size_is_taken_and_its_trailers_are_ignored(wire, token):
    wire.send(request("POST /clients", token=token, Transfer_Encoding="chunked"))
    wire.send(*chunks([CLIENT_BYTES[:100], CLIENT_BYTES[100:]]))
    wire.send(b"0\r\nX-Sum: 1\r\nContent-Type: text/plain\r\nAuthorization: Basic x\r\n\r\n")
    assert wire.answer().status_code == 200


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
    with pytest.raises(OSError):  # noqa: PT011  # the other side closes
        for _ in range(1000):
            wire.send(endless)
    assert process.memory_info().rss - before < 20_000_000


@pytest.mark.parametrize(
    ("hosts", "reason"),
    [
        (["localhost", "evil.example"], "Must not be repeated"),
        *(
            (hosts, "Must be a host name or address, with or without a port")
            for hosts in ([], [""], ["a/b"], ["user@localhost"], ["localhost:80:90"])
        ),
    ],
    ids=repr,
)
@pytest.mark.parametrize("line", ["GET /health", "POST /clients"])
def test_a_request_names_one_host(wire, line, hosts, reason):
    named = "".join(f"Host: {host}\r\n" for host in hosts)
    wire.send(f"{line} HTTP/1.1\r\n{named}\r\n".encode())

    assert errors(wire.answer()) == {"Host": reason}
    assert wire.is_closed()


GET = b"GET /health HTTP/1.1\r\nHost: x\r\n"
POST = b"POST /clients HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"GET /health HTTP/3.0\r\n\r\n", 400),
        (POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (POST + b"Content-Length: -1\r\n\r\n", 400),
        (POST + b"Content-Length: +1\r\n\r\n", 400),
        (POST + b"Content-Length : 1\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: chunked, gzip\r\n\r\n", 400),
        (POST.replace(b"/1.1", b"/1.0") + b"Transfer-Encoding: chunked\r\n\r\n", 400),
        (GET + b"A: b\r\n c\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nA\0B: x\r\n\r\n", 400),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", 414),
        (GET + b"X-Long: " + b"a" * 400_000 + b"\r\n\r\n", 431),
        (GET + b"".join(b"A%d: b\r\n" % number for number in range(300)) + b"\r\n\r\n", 431),
    ],
    ids=lambda value: repr(value)[-40:],
)
def test_what_is_not_http_or_has_too_large_a_head_is_the_end(wire, sent, status):
    wire.send(sent)

    assert wire.answer().status_code == status
    assert wire.is_closed()


@pytest.mark.parametrize("chunk", [b"-2\r\nab\r\n0\r\n\r\n", b"fffffffffffffffff\r\nab\r\n", b"2\nab\n0\n\n"])
def test_a_body_whose_chunks_are_none_is_a_400_and_the_end(wire, token, chunk):
    wire.send(request("POST /clients", token=token, Transfer_Encoding="chunked"), chunk)

    assert errors(wire.answer()) == {"request": "Must be HTTP/1.1"}
    assert wire.is_closed()


@pytest.mark.parametrize("length_first", [True, False])
def test_what_a_second_length_of_a_body_would_smuggle_is_never_answered(wire, token, length_first):
    """By the length the next request begins inside the body, by the chunks after it."""
    framing = ["Content-Length: 6", "Transfer-Encoding: chunked"]
    head = "\r\n".join(["POST /clients HTTP/1.1", "Host: x", f"Authorization: Bearer {token}"])
    lines = framing if length_first else framing[::-1]
    smuggled = b"0\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    wire.send("\r\n".join([head, *lines, "", ""]).encode(), smuggled)

    assert wire.answer().status_code == 400
    assert wire.is_closed()


def test_http_1_0_is_answered(wire):
    wire.send(b"GET /health HTTP/1.0\r\n\r\n")

    assert wire.answer().json() == {"status": "ok"}
    assert wire.is_closed()


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
        assert is_problem(wire.answer(), 408)
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
    with Wire(hurried.port, window=4096) as wire, pytest.raises(OSError):  # noqa: PT011  # the other side closes
        for _ in range(1_000_000):
            wire.send(request("GET /openapi.json") * 2)


@pytest.mark.parametrize("head", [b"", b"POST /clients HTTP/1.1\r\nHost: "], ids=["idle", "slow"])
def test_a_thousand_connections_stop_nobody_who_is_connected_and_end_soon(hurried, head):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # both ends of each are in this process
    with ExitStack() as opened:
        connected = opened.enter_context(Wire(hurried.port))
        for number in range(server.CONNECTIONS_MAX):
            if number % 100 == 0:
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
    for line in log.splitlines():
        assert isinstance(json.loads(line), dict)
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
