"""Count requests in a small mapped file that all server processes with one ``TOOLKIT_HOME`` share.

For each caller the file holds one time: until when what it has sent so far would keep it busy at its rate. A
request moves that time on by one interval, and is refused where it lies more than a minute ahead. So a caller may
send a minute's worth at once, and after that as fast as its rate. The file has a fixed size; where callers
crowd it, the one that was quiet for longest is forgotten. Nobody waits for a lock: two processes that count the
same caller in the same microsecond may count once.
"""

import mmap
import secrets
import struct
import time
from hashlib import blake2b
from typing import Final, Self

from toolkit.entrypoints.http_api.logs import write
from toolkit.errors import EmbeddedServiceError
from toolkit.settings import Quotas, Settings
from toolkit.storage.embedded.home import explained, make_once, prepare

FILE: Final = "http-quotas-1"
"""The name of the file, with the version of its layout."""

_PERIOD: Final = 60.0
_SECRET_BYTES: Final = 32
_PLACES: Final = 1 << 14
_NEIGHBOURS: Final = 8
"""Adjacent places in which a caller is looked for."""

_PLACE: Final = struct.Struct("=Qd")
_ROW: Final = struct.Struct("=" + "Qd" * _NEIGHBOURS)
_SIZE: Final = _SECRET_BYTES + (_PLACES + _NEIGHBOURS) * _PLACE.size


class SharedQuotas:
    """Counts requests by subject and by address; both answers are seconds to wait, 0 where there is room."""

    def __init__(self, memory: mmap.mmap, quotas: Quotas) -> None:
        self._memory = memory
        self._secret = memory[:_SECRET_BYTES]
        self._quotas = quotas
        self.trusted_proxies = quotas.trusted_proxies

    @classmethod
    def open(cls, settings: Settings) -> Self:
        """Use the file of this home; where none can be made there, this process counts for itself."""
        try:
            prepare(settings.home)
            with explained(settings.home):
                make_once(settings.home / FILE, secrets.token_bytes(_SECRET_BYTES).ljust(_SIZE, b"\0"))
                with (settings.home / FILE).open("r+b") as file:
                    memory = mmap.mmap(file.fileno(), _SIZE)
        except EmbeddedServiceError as error:
            write("quotas", shared=False, message=str(error))
            memory = mmap.mmap(-1, _SIZE)
            memory[:_SECRET_BYTES] = secrets.token_bytes(_SECRET_BYTES)
        return cls(memory, settings.quotas)

    def request(self, subject: str) -> float:
        """Count a request of ``subject``."""
        return self._spend(f"s{subject}", self._quotas.requests)

    def wrong_token(self, address: str) -> float:
        """Count a request without a valid token from ``address``."""
        return self._spend(f"a{address}", self._quotas.wrong_tokens)

    def _spend(self, who: str, rate: int) -> float:
        now, interval = time.time(), _PERIOD / rate
        name, place, busy_until = self._find(who, now)
        if busy_until > now + _PERIOD + interval:  # the clock was set back
            busy_until = now
        wait = busy_until + interval - now - _PERIOD
        if wait > 0:
            return wait
        _PLACE.pack_into(self._memory, place, name, busy_until + interval)
        return 0.0

    def _find(self, who: str, now: float) -> tuple[int, int, float]:
        """Return the caller's number, its place in the file, and until when it is busy."""
        digest = blake2b(who.encode("utf-8", "surrogateescape"), digest_size=12, key=self._secret).digest()
        name = int.from_bytes(digest[:8], "little")
        first = _SECRET_BYTES + int.from_bytes(digest[8:], "little") % _PLACES * _PLACE.size
        row = _ROW.unpack_from(self._memory, first)
        names, times = row[::2], row[1::2]
        if name in names:
            neighbour = names.index(name)
            return name, first + neighbour * _PLACE.size, max(times[neighbour], now)
        return name, first + times.index(min(times)) * _PLACE.size, now
