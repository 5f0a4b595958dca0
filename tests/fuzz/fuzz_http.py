"""The HTTP surface: raw bytes on sockets.

Whatever comes in, the server answers with a status of its document, logs no fault, stays alive, and does not grow.
"""

import json
import re
import secrets
import socket
import time
from collections import Counter
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

import httpx
import psutil

from tests.benchmarks.measuring import own_home
from tests.support.raw_http import chunks, request
from tests.support.request_bodies import CLIENT, UPLOAD
from tests.support.served_process import serving
from tests.support.uploaded_sales import add_sale
from toolkit.http import tokens
from toolkit.http.answers import PROBLEMS
from toolkit.kit.services import Services

DOCUMENTED = {200, 431, *PROBLEMS} - {500}  # 431 is the server's own
SALE = "VND-2026-0001"
GROWTH_MAX = 150_000_000

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


def run(chance, until):
    """Send requests that are broken by chance."""
    with _server() as (server, token):
        process = psutil.Process(server.process.pid)
        _raw(chance, time.monotonic() + 3, server, token)  # what every server grows by at first
        before = process.memory_info().rss
        counts = _raw(chance, until, server, token)
        assert process.is_running()
        grown = process.memory_info().rss - before
        assert grown < GROWTH_MAX, f"the server grew by {grown} bytes"
        faults = server.log("fault")
        assert faults == [], faults[:3]
    return counts


def _raw(chance, until, server, token):
    counts = Counter()
    while time.monotonic() < until:
        good = b"".join(_request(chance, token) for _ in range(chance.randint(1, 2)))
        sent = _mutated(chance, good) if chance.random() < 0.95 else good
        answered = _answers(server.port, sent)
        assert set(answered) <= DOCUMENTED, (answered, sent)
        counts.update(f"raw {status}" for status in answered)
        counts["raw unanswered"] += not answered
        if sum(counts.values()) % 200 == 0:
            began = time.monotonic()
            assert httpx.get(f"{server.url}/health", trust_env=False).status_code == 200
            assert time.monotonic() - began < 5
    return counts


def _mutated(chance, good):
    """``good`` after one to six changes."""
    data = bytearray(good)
    for _ in range(chance.randint(1, 6)):
        here, there = sorted(chance.randrange(len(data) + 1) for _ in range(2))
        there = min(there, here + 200)
        match chance.randrange(7):
            case 0:
                data[here:here] = chance.choice(WORDS)
            case 1:
                data[here:there] = chance.choice(WORDS)
            case 2:
                del data[here:there]
            case 3:
                data[here:here] = data[here:there] * chance.randint(1, 50)
            case 4 if here < len(data):
                data[here] = chance.randrange(256)
            case 5:
                data[here:here] = chance.randbytes(chance.randint(1, 20))
            case _:
                del data[max(here, len(data) // 2) :]
    return bytes(data)


def _request(chance, token):
    line, body = chance.choice(
        [
            ("POST /clients", json.dumps(CLIENT).encode()),
            (f"PUT /sales/{SALE}/evidences", json.dumps(UPLOAD).encode()),
            ("GET /health", b""),
            ("GET /openapi.json", b""),
        ]
    )
    sender = {"token": token if chance.random() < 0.8 else None}
    if chance.random() < 0.7:
        return request(line, body, **sender)
    half = len(body) // 2
    sent = chunks(part for part in (body[:half], body[half:]) if part)
    return b"".join([request(line, **sender, Transfer_Encoding="chunked"), *sent, b"0\r\n\r\n"])


def _answers(port, sent):
    """The statuses of all answers until the other side closes, or says nothing for a moment."""
    received = b""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as wire:
        wire.sendall(sent)
        wire.settimeout(0.1)
        while data := wire.recv(65536):
            received += data
    return [int(status) for status in re.findall(rb"HTTP/1\.1 ([0-9]{3})", received)]


@contextmanager
def _server():
    plenty = {f"TOOLKIT_QUOTA_{name}": "100000000" for name in ("REQUESTS", "WRONG_TOKENS", "OPEN_FORMS")}
    with own_home() as home:
        environ = {"TOOLKIT_HOME": str(home), "TOOLKIT_JWT_SECRET": secrets.token_urlsafe(32), **plenty}
        application = Services(environ)
        add_sale(application.database, SALE)
        application.close()
        with serving(environ) as server:
            yield server, tokens.issue(application.settings, "fuzz", timedelta(hours=12), datetime.now(UTC)).text
