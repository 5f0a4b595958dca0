"""A closed-loop load generator on loopback: each connection sends again when the last request was answered."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle

import uvloop


@dataclass
class Load:
    """The results of one run: latencies in seconds, and the count of each status."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)

    def __iadd__(self, other: Load) -> Load:
        self.seconds += other.seconds
        self.latencies += other.latencies
        self.statuses += other.statuses
        return self

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.latencies) / self.seconds

    def percentile(self, share: float) -> float:
        """The latency in milliseconds that ``share`` of the answers did not exceed."""
        ordered = sorted(self.latencies)
        return ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1000


def run(port: int, requests: Sequence[bytes], *, connections: int, seconds: float) -> Load:
    """Send ``requests`` in turn, over and over, for ``seconds`` and say how it went."""
    return uvloop.run(_run(port, cycle(requests), connections, seconds))


async def _run(port: int, requests: Iterator[bytes], connections: int, seconds: float) -> Load:
    load = Load()
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    until = began + seconds
    ended: list[asyncio.Future[None]] = [loop.create_future() for _ in range(connections)]
    for future in ended:

        def make(future: asyncio.Future[None] = future) -> _Connection:
            return _Connection(requests, load, until, future)

        await loop.create_connection(make, "127.0.0.1", port)
    await asyncio.gather(*ended)
    load.seconds = time.perf_counter() - began
    return load


class _Connection(asyncio.Protocol):
    def __init__(self, requests: Iterator[bytes], load: Load, until: float, ended: asyncio.Future[None]) -> None:
        self._requests = requests
        self._load = load
        self._until = until
        self._ended = ended
        self._received = b""
        self._sent = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator:
            return
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r", 1)[0])
        if len(body) < length:
            return
        self._received = b""
        self._load.latencies.append(time.perf_counter() - self._sent)
        self._load.statuses[int(head[9:12])] += 1
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    def _send(self) -> None:
        self._sent = time.perf_counter()
        if self._sent < self._until:
            self._transport.write(next(self._requests))
        else:
            self._transport.close()
