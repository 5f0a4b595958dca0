"""``toolkit serve`` and ``token``: the HTTP interface, and the tokens of its callers."""

import os
from contextlib import closing
from datetime import timedelta
from typing import Any

import click

from toolkit.cli.context import DONE, pass_kit, show, shows
from toolkit.contract.people import TokenScope
from toolkit.evidence.access import add_revocation
from toolkit.kit.connection import Kit
from toolkit.kit.shown import Shown, say
from toolkit.settings import LONGEST_LIFE


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=8000,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port to listen on; 0 takes a free one, which the log names.",
)
@pass_kit
def serve(kit: Kit, host: str, port: int) -> None:
    """Answer POST /clients and PUT /sales/{saleId}/evidences, as the contract says.

    Every request needs a bearer token, checked with the key of one of
      TOOLKIT_JWT_SECRET       HS256, at least 32 bytes
      TOOLKIT_JWT_PUBLIC_KEY   RS256 or ES256, PEM
    TOOLKIT_JWT_AUDIENCE and TOOLKIT_JWT_ISSUER: what tokens must name, where set.
    TOOLKIT_JWT_MAX_TTL: the longest life of a token, one day by default.

    A partner acts on its own sales only. The token names it in the claim `partner`; else the
    subject is the partner. TOOLKIT_UNASSIGNED_SALES says who may ask for a sale that names
    no partner.

    Example:
      export TOOLKIT_JWT_SECRET=$(python -c 'import secrets; print(secrets.token_urlsafe(32))')
      toolkit serve --port 8000 &
      curl -X POST http://127.0.0.1:8000/clients -H 'Content-Type: application/json' \\
           -H "Authorization: Bearer $(toolkit token issue --subject partner-a)" -d @client.json

    Without a token: /health, /ready, /openapi.json, and /docs to try it out in a browser.
    The log is JSON lines on stderr. SIGTERM and Ctrl-C end it after the requests that were begun.
    Leave TLS to a proxy in front: toolkit/http/nginx.conf is one, ready to use.
    """
    from toolkit.http import logs, server, tokens
    from toolkit.http.app import THREADS, create_app
    from toolkit.http.backend import Backend

    kit.pool_size = THREADS
    checks = tokens.TokenChecks(kit.settings, kit.clock)
    port = server.free_address(host, port)
    with closing(Backend(kit)) as backend:
        away = backend.open()
        logs.start()
        for error in away:
            logs.write("away", error=type(error).__name__, message=str(error))
        server.run(create_app(backend, checks), host, port)
    os._exit(0)  # an operation that hangs with its database does not keep the process


token = click.Group("token")


@token.command(short_help="Print a token, signed with TOOLKIT_JWT_SECRET.")
@click.option(
    "--subject", required=True, metavar="NAME", help="The subject of the token; stored with every record."
)
@click.option("--partner", metavar="NAME", help="The partner that the subject acts for.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice([str(scope) for scope in TokenScope]),
    help="A purpose of the token; may be given several times. Every purpose by default.",
)
@click.option(
    "--ttl",
    default=3600,
    show_default=True,
    type=click.IntRange(1, LONGEST_LIFE),
    metavar="SECONDS",
    help="The life of the token; TOOLKIT_JWT_MAX_TTL at most.",
)
@shows(DONE)
def issue(kit: Kit, /, subject: str, partner: str | None, scopes: tuple[str, ...], ttl: int) -> Shown[Any]:
    """Print a token for NAME, signed with TOOLKIT_JWT_SECRET.

    Examples:
      toolkit token issue --subject partner-a --ttl 600
      toolkit token issue --subject crm-7 --partner "Luz do Vale" --scope evidence:request

    Name systems, not people: the subject is stored with evidence records and written to the log.
    """
    from toolkit.http import tokens

    issued = tokens.issue(
        kit.settings,
        subject,
        timedelta(seconds=ttl),
        kit.clock(),
        partner=partner,
        scopes=[TokenScope(scope) for scope in scopes],
    )
    document = {"token": issued.text, "id": issued.id, "subject": subject, "expiresAt": issued.expires_at}
    return Shown(issued, [say(issued.text)], document)


@token.command("revoke", short_help="Refuse one token, or all that a subject was issued until now.")
@click.option("--id", "token_id", metavar="JTI", help="The token's id, its claim jti.")
@click.option("--subject", metavar="NAME", help="All tokens of this subject that were issued until now.")
@click.option("--reason", required=True, help="The reason, without personal data.")
@pass_kit
def revoke_token(kit: Kit, token_id: str | None, subject: str | None, reason: str) -> None:
    """Refuse one token by its id, or all tokens that a subject was issued until now.

    A running server notices within five seconds. A revocation cannot be taken back; a new
    token is valid.

    Examples:
      toolkit token revoke --subject partner-a --reason "laptop stolen"
      toolkit token revoke --id 0b7c9f1e-7a44-4a0f-9a51-0d2f0c1b2a3d --reason "sent by e-mail"
    """
    if (token_id is None) == (subject is None):
        raise click.UsageError("Name either --id or --subject.")
    add_revocation(kit.database, token_id, subject, reason=reason)
    show("revoked: {}", token_id or subject)
