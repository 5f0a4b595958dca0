"""The HTTP interface under load: both endpoints beside a bare one on the same server that only inserts."""

import asyncio
import json
import os
import secrets
import sys
import time
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import cycle

import uvloop

from tests.benchmarks.measuring import own_database, timed
from tests.support.raw_http import request
from tests.support.request_bodies import CLIENT, UPLOAD
from tests.support.served_process import serving
from tests.support.uploaded_sales import execute
from tests.support.waiting import free_port, listens, started
from toolkit import embedded
from toolkit.http import tokens
from toolkit.settings import Settings

_CONNECTIONS = (1, 16)
_SECONDS = 10.0
_ROUNDS = 3
_SALES = 5000
"""Sales that credentials are asked for in turn, as partners do: a sale has a few records, not thousands."""
_MADE = f"""
    INSERT INTO sales (id, utility_group, is_client_financial_responsible, created_at)
    SELECT 'VND-' || n, 'A', true, now() FROM generate_series(0, {_SALES - 1}) AS n
"""


def main(scale):
    """Print a line per endpoint and number of connections."""
    with own_database() as (database, home):
        execute(database, _MADE)
        environ = {
            "TOOLKIT_HOME": str(home),
            "TOOLKIT_JWT_SECRET": secrets.token_urlsafe(32),
            "TOOLKIT_QUOTA_REQUESTS": "100000000",
            "DATABASE_URL": embedded.database_url(home),
        }
        token = tokens.issue(
            Settings.from_environment(environ), "bench", timedelta(days=1), datetime.now(UTC)
        ).text
        with _bare(environ) as bare, serving(environ) as server:
            _compare(bare, server.port, token, scale)


def _compare(bare, port, token, scale):
    print("endpoint     conns   req/s  bare/s  ratio")
    seconds = max(_SECONDS * scale / _ROUNDS, 0.5)
    client, upload = (json.dumps(body, ensure_ascii=False).encode() for body in (CLIENT, UPLOAD))
    uploads = [request(f"PUT /sales/VND-{number}/evidences", upload, token=token) for number in range(_SALES)]
    for line, requests in {
        "POST /clients": [request("POST /clients", client, token=token)],
        "PUT /sales/{saleId}/evidences": uploads,
    }.items():
        for connections in _CONNECTIONS:
            runs = {port: [], bare: []}
            for _ in range(_ROUNDS):  # in turns, so that whatever else the machine does meets both
                for each, of_server in runs.items():
                    of_server.append(_run(each, requests, connections=connections, seconds=seconds))
            ours, floor = (
                sum(x.answer.total() for x in own) / sum(x.seconds for x in own) for own in runs.values()
            )
            print(f"{line[:12]:12} {connections:5} {ours:7.0f} {floor:7.0f} {ours / floor:6.2f}", flush=True)


@contextmanager
def _bare(environ):
    port = free_port()
    command = [sys.executable, "-m", "tests.benchmarks.http_bare", str(port)]
    with started(command, lambda: listens(port), env={**os.environ, **environ}):
        yield port


def _run(port, requests, *, connections, seconds):
    """Send ``requests`` in turn, over and over, for ``seconds``, and count the statuses of the answers."""
    run = timed(lambda: uvloop.run(_send_all(port, cycle(requests), connections, seconds)))
    assert set(run.answer) == {200}, run.answer
    return run


async def _send_all(port, requests, connections, seconds):
    statuses, until = Counter(), time.perf_counter() + seconds
    await asyncio.gather(*(_send(port, requests, statuses, until) for _ in range(connections)))
    return statuses


async def _send(port, requests, statuses, until):
    """Send over one connection, a request after the answer to the one before."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.perf_counter() < until:
        writer.write(next(requests))
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split(b"\r", 1)[0]))
        statuses[int(head[9:12])] += 1
    writer.close()
