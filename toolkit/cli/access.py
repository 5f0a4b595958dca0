"""``toolkit serve``, ``token`` and ``partner``: the HTTP interface, and who may call it for whom."""

import os
from contextlib import closing
from datetime import timedelta
from typing import Final

import click

from toolkit.cli.context import Context, pass_context
from toolkit.cli.printing import json_option, note, print_json, show, show_table
from toolkit.contract.fields import named
from toolkit.contract.people import TokenScope
from toolkit.evidence.access import (
    Revocation,
    add_revocation,
    add_subject,
    partner_subjects_of,
    revocations,
    revoke_subject,
)
from toolkit.kit.context import ApplicationContext
from toolkit.kit.process import signed_in_account
from toolkit.kit.spoken import readable
from toolkit.message import Message
from toolkit.settings import LONGEST_LIFE

_FIELDS: Final = ("subject", "partner", "added_at", "added_by", "revoked_at", "revoked_by")


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
    from toolkit.http import logs, server, tokens
    from toolkit.http.app import THREADS, create_app
    from toolkit.http.backend import Backend

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


@click.group()
def token() -> None:
    """Bearer tokens for the HTTP interface.

    \b
    Examples:
      toolkit token issue --subject partner-a --ttl 600
      toolkit token revoke --subject partner-a --reason "laptop stolen"
    """


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
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout, with the token's id.")
@pass_context
def issue(
    ctx: Context, subject: str, partner: str | None, scopes: tuple[str, ...], ttl: int, as_json: bool
) -> None:
    """Print a token for NAME, signed with TOOLKIT_JWT_SECRET or the first secret of TOOLKIT_JWT_JWKS.

    \b
    Examples:
      toolkit token issue --subject partner-a --ttl 600
      toolkit token issue --subject crm-7 --partner "Luz do Vale" --scope evidence:request

    Name systems, not people: the subject is stored with evidence records and written to the log.
    """
    from toolkit.http import tokens

    issued = tokens.issue(
        ctx.settings,
        subject,
        timedelta(seconds=ttl),
        ctx.application.clock(),
        partner=partner,
        scopes=[TokenScope(scope) for scope in scopes],
    )
    if as_json:
        print_json({"token": issued.text, "id": issued.id, "subject": subject, "expiresAt": issued.expires_at})
    else:
        click.echo(issued.text)


@token.command("revoke", short_help="Refuse one token, or all that a subject was issued until now.")
@click.option("--id", "token_id", metavar="JTI", help="The token's id, its claim jti.")
@click.option("--subject", metavar="NAME", help="All tokens of this subject that were issued until now.")
@click.option("--reason", required=True, help="The reason, without personal data.")
@pass_context
def revoke_token(ctx: Context, token_id: str | None, subject: str | None, reason: str) -> None:
    """Refuse one token by its id, or all tokens that a subject was issued until now.

    \b
    A running server notices within five seconds. A revocation cannot be taken back; a new
    token is valid. Whoever must not act for a partner any more: toolkit partner revoke

    \b
    Examples:
      toolkit token revoke --subject partner-a --reason "laptop stolen"
      toolkit token revoke --id 0b7c9f1e-7a44-4a0f-9a51-0d2f0c1b2a3d --reason "sent by e-mail"
    """
    if (token_id is None) == (subject is None):
        raise click.UsageError("Name either --id or --subject.")
    done = Revocation(token_id, subject, reason, ctx.application.clock(), signed_in_account())
    add_revocation(ctx.application.database, done)
    show(_revoked(ctx, done))


@token.command("revocations", short_help="List the revoked tokens and subjects.")
@json_option
@pass_context
def list_revocations(ctx: Context, as_json: bool) -> None:
    """List the tokens and subjects that were revoked, the oldest first.

    \b
    Example:
      toolkit token revocations --json
    """
    found = revocations(ctx.application.database)
    if as_json:
        facts = ("subject", "reason", "revoked_at", "revoked_by")
        print_json({"revocations": [{"id": each.token_id, **named(each, *facts)} for each in found]})
        return
    for each in found:
        show(_revoked(ctx, each))
    if not found:
        note("no token was revoked")


def _revoked(ctx: Context, revocation: Revocation) -> Message:
    return Message(
        "{}  all tokens of {} until then  revoked by {}: {}"
        if revocation.token_id is None
        else "{}  token {}  revoked by {}: {}",
        readable(revocation.revoked_at, ctx.settings.timezone),
        revocation.token_id or revocation.subject,
        revocation.revoked_by,
        revocation.reason,
    )


@click.group()
def partner() -> None:
    """Keep the table of the partners that the subjects of tokens act for.

    \b
    A subject that was never added here is itself the partner. One that was revoked acts for
    nobody: it is told of no sale, also of none without a partner.

    \b
    Examples:
      toolkit partner add --partner "Luz do Vale" --subject crm-7
      toolkit partner list
      toolkit partner revoke --subject crm-7
    """


@partner.command(short_help="Let a subject act for a partner.")
@click.option("--partner", "name", required=True, metavar="NAME", help="The partner as the sales name it.")
@click.option("--subject", required=True, metavar="NAME", help="The subject as its tokens name it.")
@pass_context
def add(ctx: Context, name: str, subject: str) -> None:
    """Let a subject act for a partner from now on. A partner may have many subjects, a subject one partner.

    \b
    Example:
      toolkit partner add --partner "Luz do Vale" --subject crm-7
    """
    space = ctx.application
    added = add_subject(space.database, name, subject, added_by=signed_in_account(), clock=space.clock)
    show("{}: acts for {}" if added else "{}: acts for {}, as before", subject, name)


@partner.command("list", short_help="List the subjects and their partners.")
@click.option("--all", "with_revoked", is_flag=True, help="Also list those that were revoked.")
@json_option
@pass_context
def list_partners(ctx: Context, with_revoked: bool, as_json: bool) -> None:
    """List the subjects and the partners that they act for.

    \b
    Example:
      toolkit partner list --all
    """
    found = partner_subjects_of(ctx.application.database, with_revoked=with_revoked)
    if as_json:
        print_json({"subjects": [named(each, *_FIELDS) for each in found]})
        return
    zone = ctx.settings.timezone
    rows = [
        (
            each.partner,
            each.subject,
            readable(each.added_at, zone),
            each.added_by,
            readable(each.revoked_at, zone) if each.revoked_at else "-",
            each.revoked_by or "-",
        )
        for each in found
    ]
    if rows:
        show_table(("partner", "subject", "since", "added by", "revoked", "revoked by"), rows)
    else:
        note("the table is empty: each subject is itself the partner, unless its token names one")


@partner.command("revoke", short_help="Let a subject act for nobody any more.")
@click.option("--subject", required=True, metavar="NAME", help="The subject as its tokens name it.")
@pass_context
def revoke_partner(ctx: Context, subject: str) -> None:
    """Let a subject act for nobody any more, from the next request on.

    \b
    Example:
      toolkit partner revoke --subject crm-7

    A token that names a partner itself is not touched by this: toolkit token revoke
    """
    space = ctx.application
    name = revoke_subject(space.database, subject, revoked_by=signed_in_account(), clock=space.clock)
    show("{}: acts for {} no more", subject, name)
