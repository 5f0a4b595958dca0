"""The HTTP interface under load: both endpoints beside a bare framework endpoint that only inserts.

Goals on 2 cores: at least 0.6 of the bare one's rate, a p99 under 50 ms at 16 connections, and memory that
stays flat over a run of five minutes.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import psutil
import sqlalchemy as sa

from tests.benchmarks import http_load
from tests.contract.bodies import CLIENT, UPLOAD
from tests.contract.server import Server, serving
from tests.own_services import own_home
from toolkit.entrypoints import tokens
from toolkit.entrypoints.application_context import ApplicationContext
from toolkit.settings import Settings
from toolkit.storage import embedded
from toolkit.storage.tables import sales

_CONNECTIONS = (1, 16, 64)
_SECONDS = 10.0
_SOAK_SECONDS = 300.0
_ROUNDS = 3
_SALES = 5000
"""Sales that credentials are asked for in turn, as partners do: a sale has a few records, not thousands."""


def main(scale: float) -> None:
    """Print a line per endpoint and number of connections, then how memory went."""
    with own_home() as home:
        environ = {
            "TOOLKIT_HOME": str(home),
            "TOOLKIT_JWT_SECRET": secrets.token_urlsafe(32),
            "TOOLKIT_QUOTA_REQUESTS": "100000000",
        }
        settings = Settings.from_environment(environ)
        _make_sales(settings)
        environ |= {"DATABASE_URL": embedded.database_url(home)}
        token = tokens.issue(settings, "bench", timedelta(days=1), datetime.now(UTC)).text
        with _bare(environ) as bare, serving(environ) as server:
            _compare(bare, server.port, token, scale)
            _soak(server, token, scale)


def _compare(bare: int, port: int, token: str, scale: float) -> None:
    print("endpoint     conns   req/s  p50 ms  p99 ms  bare/s  p99 ms  ratio")
    seconds = max(_SECONDS * scale / _ROUNDS, 0.5)
    uploads = [_request(f"PUT /sales/VND-{number}/evidences", UPLOAD, token) for number in range(_SALES)]
    for line, requests in {
        "POST /clients": [_request("POST /clients", CLIENT, token)],
        "PUT /sales/{saleId}/evidences": uploads,
    }.items():
        for connections in _CONNECTIONS:
            ours, floor = http_load.Load(), http_load.Load()
            for _ in range(_ROUNDS):  # in turns, so that whatever else the machine does meets both
                floor += http_load.run(bare, requests, connections=connections, seconds=seconds)
                ours += http_load.run(port, requests, connections=connections, seconds=seconds)
            assert set(ours.statuses) == set(floor.statuses) == {200}, (ours.statuses, floor.statuses)
            print(
                f"{line[:12]:12} {connections:5} {ours.rate:7.0f} {ours.percentile(0.5):7.1f} "
                f"{ours.percentile(0.99):7.1f} {floor.rate:7.0f} {floor.percentile(0.99):7.1f} "
                f"{ours.rate / floor.rate:6.2f}",
                flush=True,
            )


def _soak(server: Server, token: str, scale: float) -> None:
    process = psutil.Process(server.process.pid)
    request = _request("POST /clients", CLIENT, token)
    slices = 10
    memory = []
    for _ in range(slices):
        http_load.run(server.port, [request], connections=16, seconds=max(_SOAK_SECONDS * scale / slices, 0.5))
        memory.append(process.memory_info().rss / 1e6)
    print(f"memory over {_SOAK_SECONDS * scale:.0f} s, MB: " + " ".join(f"{each:.0f}" for each in memory))


def _request(line: str, body: Mapping[str, object], token: str) -> bytes:
    content = json.dumps(body, ensure_ascii=False).encode()
    head = (
        f"{line} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {token}\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def _make_sales(settings: Settings) -> None:
    application = ApplicationContext(settings)
    sale = {"utility_group": "A", "is_client_financial_responsible": True, "created_at": datetime.now(UTC)}
    with application.database.transaction() as connection:
        connection.execute(sa.insert(sales), [{**sale, "id": f"VND-{number}"} for number in range(_SALES)])
    application.close()


@contextmanager
def _bare(environ: Mapping[str, str]) -> Iterator[int]:
    command = [sys.executable, "-m", "tests.benchmarks.http_bare"]
    with subprocess.Popen(command, env={**os.environ, **environ}, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()
