"""``toolkit partner``: the table of the partners that the subjects of tokens act for."""

from typing import Final

import click

from toolkit.cli.context import Context, pass_context
from toolkit.cli.printing import json_option, note, print_json, show, show_table
from toolkit.contract.fields import named
from toolkit.evidence.access import add_subject, partner_subjects_of, revoke_subject
from toolkit.kit.process import signed_in_account
from toolkit.kit.spoken import readable

_FIELDS: Final = ("subject", "partner", "added_at", "added_by", "revoked_at", "revoked_by")


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


@partner.command(short_help="Let a subject act for nobody any more.")
@click.option("--subject", required=True, metavar="NAME", help="The subject as its tokens name it.")
@pass_context
def revoke(ctx: Context, subject: str) -> None:
    """Let a subject act for nobody any more, from the next request on.

    \b
    Example:
      toolkit partner revoke --subject crm-7

    A token that names a partner itself is not touched by this: toolkit token revoke
    """
    space = ctx.application
    name = revoke_subject(space.database, subject, revoked_by=signed_in_account(), clock=space.clock)
    show("{}: acts for {} no more", subject, name)
