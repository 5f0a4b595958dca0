"""``toolkit serve`` and ``toolkit token``: the contract's HTTP interface, and tokens for trying it out."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta

import click

from toolkit.extras import require

require("serve", "The HTTP interface and its tokens")

from toolkit.entrypoints import tokens  # noqa: E402
from toolkit.entrypoints.application_context import ApplicationContext  # noqa: E402
from toolkit.entrypoints.cli.context import DONE, Context, pass_context  # noqa: E402
from toolkit.entrypoints.http_api import logs, server  # noqa: E402
from toolkit.entrypoints.http_api.app import THREADS, create_app  # noqa: E402
from toolkit.entrypoints.http_api.backend import Backend  # noqa: E402

_HOUR = 3600
_YEAR = 365 * 24 * _HOUR


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="0: any free one, see the log."
)
@pass_context
def serve(ctx: Context, host: str, port: int) -> int:
    """Answer POST /clients and PUT /sales/{saleId}/evidences, as the contract says.

    \b
    Every request needs a bearer token, checked with one key:
      TOOLKIT_JWT_SECRET       HS256, at least 32 bytes
      TOOLKIT_JWT_PUBLIC_KEY   RS256 or ES256, PEM
    TOOLKIT_JWT_AUDIENCE and TOOLKIT_JWT_ISSUER: what tokens must name, where set.

    \b
    Example:
      export TOOLKIT_JWT_SECRET=$(python -c 'import secrets; print(secrets.token_urlsafe(32))')
      toolkit serve --port 8000 &
      curl -X POST http://127.0.0.1:8000/clients -H 'Content-Type: application/json' \\
           -H "Authorization: Bearer $(toolkit token issue --subject partner-a)" -d @client.json

    \b
    Without a token: /health, /ready, /openapi.json, and /docs to try it out in a browser.
    The log is JSON lines on stderr. SIGTERM and Ctrl-C end it after the requests that were begun.
    Leave TLS to a proxy in front.
    """
    key = tokens.TokenKey.from_settings(ctx.settings)
    application = ApplicationContext(ctx.settings, pool_size=THREADS)
    with server.listen(host, port) as listening, closing(application):
        backend = Backend(application)
        away = backend.open()
        logs.capture_libraries()
        for error in away:
            logs.write("away", error=type(error).__name__, message=str(error))
        server.run(create_app(backend, key), listening)
    return DONE


@click.group()
def token() -> None:
    """Bearer tokens for the HTTP interface.

    \b
    Examples:
      toolkit token issue --subject partner-a --ttl 600
    """


@token.command()
@click.option("--subject", required=True, metavar="NAME", help="Whose token it is; stored with every record.")
@click.option(
    "--ttl",
    default=_HOUR,
    show_default=True,
    type=click.IntRange(1, _YEAR),
    metavar="SECONDS",
    help="How long it is valid.",
)
@pass_context
def issue(ctx: Context, subject: str, ttl: int) -> int:
    """Print a token for NAME, signed with TOOLKIT_JWT_SECRET.

    \b
    Example:
      toolkit token issue --subject partner-a --ttl 600

    Name systems, not people: the subject is stored with evidence records and written to the log.
    """
    click.echo(tokens.issue(ctx.settings, subject, timedelta(seconds=ttl), ctx.application.clock()))
    return DONE
