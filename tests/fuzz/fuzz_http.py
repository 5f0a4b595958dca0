"""The HTTP surface: raw bytes on sockets, and requests that schemathesis makes of the OpenAPI document.

Whatever comes in, the server answers with a status of its document, logs no fault, stays alive, and does not grow.
"""

from __future__ import annotations

import json
import random
import re
import secrets
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import jsonschema_rs
import psutil
import requests
import sqlalchemy as sa
from hypothesis import HealthCheck, given, seed, settings
from schemathesis import Case, GenerationMode
from schemathesis.core.failures import AcceptedNegativeData, FailureGroup
from schemathesis.openapi.checks import RejectedPositiveData

from tests.contract.test_openapi import OPERATIONS, SALE_OF_THE_DOCUMENT  # with it come its formats
from tests.fuzz.mutations import mutated
from tests.support.own_database import own_home
from tests.support.request_bodies import CLIENT, UPLOAD
from tests.support.served_process import Server, serving
from toolkit.contract.evidence import FILE_NAME_MAX_BYTES
from toolkit.database.tables import sales
from toolkit.http import tokens
from toolkit.http.answers import PROBLEMS
from toolkit.kit.context import ApplicationContext
from toolkit.settings import Settings

DOCUMENTED = {200, 431, *PROBLEMS} - {500}  # 431 is the server's own
BEYOND_THE_SCHEMA = {f"Must have at most {FILE_NAME_MAX_BYTES} bytes in UTF-8"}
GROWTH_MAX = 150_000_000

WORDS = [
    *(b"\r\n", b"\r\n\r\n", b"\n", b"\0", b" ", b"\t", b":", b"%00", b"%2F", b"%", b"/../", b"//", b"?", b"#"),
    *(b"Content-Length: 5\r\n", b"Content-Length: -1\r\n", b"Content-Length: 99999999999999999999\r\n"),
    *(b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip, chunked\r\n", b"Host: a\r\n", b"Host:\r\n"),
    *(b"Expect: 100-continue\r\n", b"Upgrade: h2c\r\nConnection: Upgrade\r\n", b"Connection: close\r\n"),
    *(b"Authorization: Bearer a.b.c\r\n", b"X-Forwarded-For: 1.2.3.4\r\n", b"Trailer: Authorization\r\n"),
    *(
        b"0\r\n\r\n",
        b"0\r\nAuthorization: Bearer x\r\n\r\n",
        b"ffffffffffffffff\r\n",
        b"1;a=b\r\nx\r\n",
        b"5\r\nhello\r\n",
    ),
    *(b"HTTP/1.0", b"HTTP/2.0", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET ", b"OPTIONS * ", b"CONNECT a:1 "),
    *(b"{", b"[" * 500, b'{"a":' * 100, b'"\\ud800"', b"NaN", b"1e999", b"9" * 5000, b"\xff", b"\xe2\x80\xae"),
]


def run(chance: random.Random, until: float) -> Counter[str]:
    """Half of the time raw bytes, half of it documented requests, good and bad."""
    counts: Counter[str] = Counter()
    seconds = until - time.monotonic()
    with _server() as (server, token):
        process = psutil.Process(server.process.pid)
        _raw(chance, time.monotonic() + 3, server, token)  # what every server grows by at first
        before = process.memory_info().rss
        counts += _raw(chance, time.monotonic() + seconds / 2, server, token)
        counts += _documented(chance, time.monotonic() + seconds / 2, server, token)
        assert process.is_running()
        grown = process.memory_info().rss - before
        assert grown < GROWTH_MAX, f"the server grew by {grown} bytes"
        faults = server.log("fault")
        assert faults == [], faults[:3]
    return counts


def _raw(chance: random.Random, until: float, server: Server, token: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    while time.monotonic() < until:
        good = b"".join(_request(chance, token) for _ in range(chance.randint(1, 2)))
        sent = mutated(chance, good, WORDS) if chance.random() < 0.95 else good
        answered = _answers(server.port, sent)
        assert set(answered) <= DOCUMENTED, (answered, sent)
        counts.update(f"raw {status}" for status in answered)
        counts["raw unanswered"] += not answered
        if sum(counts.values()) % 200 == 0:
            began = time.monotonic()
            assert httpx.get(f"{server.url}/health", trust_env=False).status_code == 200
            assert time.monotonic() - began < 5
    return counts


def _request(chance: random.Random, token: str) -> bytes:
    line, body = chance.choice(
        [
            ("POST /clients", json.dumps(CLIENT).encode()),
            (f"PUT /sales/{SALE_OF_THE_DOCUMENT}/evidences", json.dumps(UPLOAD).encode()),
            ("GET /health", b""),
            ("GET /openapi.json", b""),
        ]
    )
    head = f"{line} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    if chance.random() < 0.8:
        head += f"Authorization: Bearer {token}\r\n"
    if chance.random() < 0.3:
        half = len(body) // 2
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:half], body[half:]) if part)
        return head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def _answers(port: int, sent: bytes) -> list[int]:
    """The statuses of all answers until the other side closes, or says nothing for a moment."""
    received = b""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as wire:
        wire.sendall(sent)
        wire.settimeout(0.1)
        while data := wire.recv(65536):
            received += data
    return [int(status) for status in re.findall(rb"HTTP/1\.1 ([0-9]{3})", received)]


def _documented(chance: random.Random, until: float, server: Server, token: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    with requests.Session() as session:
        session.trust_env = False
        session.headers["Authorization"] = f"Bearer {token}"
        while time.monotonic() < until:
            operation = chance.choice(OPERATIONS)
            mode = GenerationMode.NEGATIVE if operation.body and chance.random() < 0.5 else GenerationMode.POSITIVE

            @seed(chance.getrandbits(32))
            @given(operation.as_strategy(generation_mode=mode))
            @settings(max_examples=30, deadline=None, database=None, suppress_health_check=list(HealthCheck))
            def holds(case: Case[Any]) -> None:
                if "saleId" in case.path_parameters and chance.random() < 0.5:
                    case.path_parameters["saleId"] = SALE_OF_THE_DOCUMENT
                answer = case.call(base_url=server.url, session=session)
                try:
                    case.validate_response(answer)
                except FailureGroup as found:
                    if not all(_is_no_fault(each, case, answer.json()) for each in found.exceptions):
                        raise
                    counts["documented beyond the schema"] += 1
                counts[f"documented {answer.status_code}"] += 1

            holds()
    return counts


def _is_no_fault(failure: Exception, case: Case[Any], answer: Any) -> bool:
    """Tell whether only the schema is at fault: it cannot say the rule, or the value called bad is good by it."""
    match failure:
        case RejectedPositiveData():
            return {error["message"] for error in answer["invalidFieldsErrors"]} <= BEYOND_THE_SCHEMA
        case AcceptedNegativeData():
            schema = next(iter(case.operation.body)).definition["schema"]
            return jsonschema_rs.is_valid(schema, case.body)
    return False


@contextmanager
def _server() -> Iterator[tuple[Server, str]]:
    plenty = {f"TOOLKIT_QUOTA_{name}": "100000000" for name in ("REQUESTS", "WRONG_TOKENS", "OPEN_FORMS")}
    with own_home() as home:
        environ = {"TOOLKIT_HOME": str(home), "TOOLKIT_JWT_SECRET": secrets.token_urlsafe(32), **plenty}
        configured = Settings.from_environment(environ)
        application = ApplicationContext(configured)
        sale = {"id": SALE_OF_THE_DOCUMENT, "utility_group": "A", "is_client_financial_responsible": True}
        with application.database.transaction() as connection:
            connection.execute(sa.insert(sales), {**sale, "created_at": datetime.now(UTC)})
        application.close()
        with serving(environ) as server:
            yield server, tokens.issue(configured, "fuzz", timedelta(hours=12), datetime.now(UTC)).text
