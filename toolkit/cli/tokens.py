"""``toolkit token``: issue bearer tokens for a trial, and refuse tokens before they expire."""

from datetime import timedelta

import click

from toolkit.cli.context import Context, pass_context
from toolkit.cli.printing import json_option, note, print_json, show
from toolkit.contract.fields import named
from toolkit.contract.people import TokenScope
from toolkit.evidence.access import Revocation, add_revocation, revocations
from toolkit.http import tokens
from toolkit.kit.process import signed_in_account
from toolkit.kit.spoken import readable
from toolkit.message import Message
from toolkit.settings import LONGEST_LIFE


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


@token.command(short_help="Refuse one token, or all that a subject was issued until now.")
@click.option("--id", "token_id", metavar="JTI", help="The token's id, its claim jti.")
@click.option("--subject", metavar="NAME", help="All tokens of this subject that were issued until now.")
@click.option("--reason", required=True, help="The reason, without personal data.")
@pass_context
def revoke(ctx: Context, token_id: str | None, subject: str | None, reason: str) -> None:
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
    show(_told(ctx, done))


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
        print_json({"revocations": [_as_json(each) for each in found]})
        return
    for each in found:
        show(_told(ctx, each))
    if not found:
        note("no token was revoked")


def _told(ctx: Context, revocation: Revocation) -> Message:
    return Message(
        "{}  all tokens of {} until then  revoked by {}: {}"
        if revocation.token_id is None
        else "{}  token {}  revoked by {}: {}",
        readable(revocation.revoked_at, ctx.settings.timezone),
        revocation.token_id or revocation.subject,
        revocation.revoked_by,
        revocation.reason,
    )


def _as_json(revocation: Revocation) -> dict[str, object]:
    return {"id": revocation.token_id, **named(revocation, "subject", "reason", "revoked_at", "revoked_by")}
