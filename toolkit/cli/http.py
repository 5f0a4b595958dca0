"""``toolkit serve``: the contract's HTTP interface."""

import os
from contextlib import closing

import click

from toolkit.cli.context import Context, pass_context
from toolkit.http import logs, server, tokens
from toolkit.http.app import THREADS, create_app
from toolkit.http.backend import Backend
from toolkit.kit.context import ApplicationContext


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=8000,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port to listen on; 0 takes a free one, which the log names.",
)
@pass_context
def serve(ctx: Context, host: str, port: int) -> None:
    """Answer POST /clients and PUT /sales/{saleId}/evidences, as the contract says.

    \b
    Every request needs a bearer token, checked with the key or keys of one of
      TOOLKIT_JWT_SECRET       HS256, at least 32 bytes
      TOOLKIT_JWT_PUBLIC_KEY   RS256 or ES256, PEM
      TOOLKIT_JWT_JWKS         a file with a JSON Web Key Set: several keys, by kid
    TOOLKIT_JWT_AUDIENCE and TOOLKIT_JWT_ISSUER: what tokens must name, where set.
    TOOLKIT_JWT_MAX_TTL: the longest life of a token, one day by default.

    \b
    A partner acts on its own sales only. The token names it in the claim `partner`; else the
    table of `toolkit partner` does; else the subject is the partner. TOOLKIT_UNASSIGNED_SALES
    says who may ask for a sale that names no partner.

    \b
    Example:
      export TOOLKIT_JWT_SECRET=$(python -c 'import secrets; print(secrets.token_urlsafe(32))')
      toolkit serve --port 8000 &
      curl -X POST http://127.0.0.1:8000/clients -H 'Content-Type: application/json' \\
           -H "Authorization: Bearer $(toolkit token issue --subject partner-a)" -d @client.json

    \b
    Without a token: /health, /ready, /openapi.json, and /docs to try it out in a browser.
    The log is JSON lines on stderr. SIGTERM and Ctrl-C end it after the requests that were begun.
    Leave TLS to a proxy in front: toolkit/http/nginx.conf is one, ready to use.
    """
    application = ApplicationContext(ctx.settings, pool_size=THREADS)
    checks = tokens.TokenChecks.from_settings(ctx.settings, application.clock)
    port = server.free_address(host, port)
    with closing(application):
        backend = Backend(application)
        away = backend.open()
        logs.start()
        for error in away:
            logs.write("away", error=type(error).__name__, message=str(error))
        server.run(create_app(backend, checks), host, port)
    os._exit(0)  # an operation that hangs with its database does not keep the process
