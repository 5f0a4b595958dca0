"""Refuse revoked tokens, by a list that is read from the database every few seconds."""

import asyncio
import time
from typing import Final

from toolkit.entrypoints.http_api.backend import Backend
from toolkit.entrypoints.http_api.workers import Busy, Workers
from toolkit.entrypoints.tokens import Bearer, InvalidToken
from toolkit.errors import DatabaseUnavailable, ToolkitError
from toolkit.operations.access.revocations import RevokedTokens, revoked_tokens

BELIEVED: Final = 5.0
"""Seconds after which the revocations are read again: so long a revoked token may still be taken."""

_READ_WITHIN: Final = 5.0
"""Seconds after which a reading counts as failed."""


class Revocations:
    """Refuses revoked tokens.

    Requests do not wait while the list is read again. Before the first reading no token is taken; while the
    database is away later on, the last list is believed: without the database nothing is done anyway.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._workers = Workers("revocations", threads=1, waiting=1, seconds=_READ_WITHIN)
        self._revoked: RevokedTokens | None = None
        self._renew_at = 0.0
        self._reading: asyncio.Task[None] | None = None

    async def check(self, bearer: Bearer) -> None:
        """Let a token pass that is not revoked.

        Raises:
            InvalidToken: it is.
            DatabaseUnavailable: the revocations could not be read yet.
        """
        if self._reading is None and time.monotonic() >= self._renew_at:
            self._reading = asyncio.create_task(self._read())
        if self._revoked is None and self._reading is not None:
            await asyncio.shield(self._reading)
        if self._revoked is None:
            raise DatabaseUnavailable
        if self._revoked.hold(bearer.token_id, bearer.subject, bearer.issued):
            raise InvalidToken("The bearer token was revoked")

    async def _read(self) -> None:
        try:
            self._revoked = await self._workers.run(lambda: revoked_tokens(self._backend.database))
            self._renew_at = time.monotonic() + BELIEVED
        except (ToolkitError, Busy):
            if self._revoked is not None:
                self._renew_at = time.monotonic() + 1
        finally:
            self._reading = None
