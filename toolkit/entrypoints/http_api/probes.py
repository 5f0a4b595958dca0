"""Serve the probes of a supervisor: ``/health`` for the process, ``/ready`` for database and bucket."""

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolkit.entrypoints.http_api.answers import PROBLEMS, Live, NotReady, Ready, answer
from toolkit.entrypoints.http_api.backend import Backend
from toolkit.entrypoints.http_api.workers import Busy, Workers

_OK = "ok"
_AWAY = "unavailable"


@dataclass(frozen=True, slots=True)
class Probes:
    """The probes over one backend; they have threads of their own, so that load does not hide an outage."""

    backend: Backend
    workers: Workers

    def routes(self) -> list[Route]:
        """Return the routes; none of them needs a token."""
        return [Route("/health", self.health), Route("/ready", self.ready)]

    async def health(self, request: Request) -> Response:  # noqa: ARG002  # Starlette's signature
        """``GET /health``."""
        return answer(200, Live(status=_OK))

    async def ready(self, request: Request) -> Response:
        """``GET /ready``."""
        try:
            errors: Mapping[str, Exception | None] = await self.workers.run(self.backend.check)
        except Busy as error:
            errors = {"database": error, "bucket": error}
        database, bucket = (_OK if errors[name] is None else _AWAY for name in ("database", "bucket"))
        if database == bucket == _OK:
            return answer(200, Ready(status="ready", database=database, bucket=bucket))
        request.state.reason = ", ".join(sorted({type(error).__name__ for error in errors.values() if error}))
        problem = PROBLEMS[503]
        body = NotReady(message=problem.message, code=503, database=database, bucket=bucket)
        return answer(503, body, problem.headers)
