"""``toolkit waiver``: accept findings for a time, by two people, with a reason and an end."""

from pathlib import Path
from typing import Any
from uuid import UUID

import click

from toolkit.audit.waivers import add_waiver, add_waivers, all_waivers, fits_a_sale, lint_waivers, revoke_waiver
from toolkit.cli.context import DONE, FAILED, NEEDS_ATTENTION, Context, NonEmptyPath, pass_context
from toolkit.cli.printing import json_option, note, print_json, show, show_table
from toolkit.contract.waivers import Waiver, WaiverRequest
from toolkit.kit.process import signed_in_account
from toolkit.kit.spoken import _, counted
from toolkit.message import Message, listed
from toolkit.reports.audited import ENDS_SOON
from toolkit.reports.json_document import waiver_as_json


@click.group()
def waiver() -> None:
    """Accept findings for a time: by an owner and an approver, with a reason and an end.

    \b
    While a waiver holds, its findings are counted as waived; the status of the sale stays
    what it is. On the day on which it ends they are back. A waiver is never changed or
    deleted, only revoked.

    \b
    Examples:
      toolkit waiver add --sale V-1 --code MISSING_AUT --reason "recording ordered" \\
        --owner ana --approved-by bruno --end 2026-12-15
      toolkit waiver lint waivers.toml
      toolkit waiver list
    """


@waiver.command(short_help="Add one waiver, or those of a file.")
@click.option("--sale", help="For this sale.")
@click.option("--partner", help="For the sales of this partner.")
@click.option("--code", help="For findings of this code.")
@click.option("--reason", help="The reason for accepting the findings.")
@click.option("--owner", help="The person who answers for the waiver.")
@click.option("--approved-by", "approvedBy", help="The approver; not the same person.")
@click.option("--start", metavar="DATE", help="The first day on which it holds; today by default.")
@click.option("--end", metavar="DATE", help="The day on which the findings are back.")
@click.option("--file", type=NonEmptyPath(), help="A TOML file of waivers instead: all of them or none.")
@json_option
@pass_context
def add(ctx: Context, /, file: Path | None, as_json: bool, **given: str | None) -> int:
    """Add a waiver for a sale, a partner or a code; where several are given, all must fit.

    \b
    Examples:
      toolkit waiver add --partner "Norte Energia" --code WITHOUT_CLIENT \\
        --reason "clients follow in December" --owner ana --approved-by bruno --end 2026-12-31
      toolkit waiver add --file waivers.toml
    """
    database, clock = ctx.application.database, ctx.application.clock
    if file is None:
        added = [add_waiver(database, given, today=ctx.today(), account=signed_in_account(), clock=clock)]
    else:
        if any(given.values()):
            raise click.UsageError("--file holds whole waivers: leave the other options out.")
        linted = lint_waivers(file, today=ctx.today())
        if _tell_wrong(file, linted):
            note("toolkit: nothing was added")
            return FAILED
        requests = [request for request, _wrong in linted if request]
        added = add_waivers(database, requests, account=signed_in_account(), clock=clock)
    if as_json:
        print_json({"waivers": [waiver_as_json(each, ctx.today(), ctx.settings.timezone) for each in added]})
    else:
        _show(added, ctx)
    for each in added:
        if not fits_a_sale(database, each.request):
            note(
                "note: {} fits no sale that was seen: ids and partners are written exactly as in the sales",
                each.id,
            )
    return DONE


@waiver.command("list", short_help="List the waivers that hold or will hold.")
@click.option("--all", "everything", is_flag=True, help="Also list those that ended or were revoked.")
@json_option
@pass_context
def list_waivers(ctx: Context, everything: bool, as_json: bool) -> None:
    """List the waivers that hold or will hold; those that end within 14 days are warned of.

    \b
    Examples:
      toolkit waiver list
      toolkit waiver list --all --json
    """
    today = ctx.today()
    found = all_waivers(ctx.application.database, ctx.now())
    if not everything:
        found = [each for each in found if not each.revoked_at and each.request.end > today]
    if as_json:
        print_json({"waivers": [waiver_as_json(each, today, ctx.settings.timezone) for each in found]})
        return
    if not found:
        note("no waivers")
        return
    _show(found, ctx)
    for each in found:
        if each.holds(today) and each.days_left(today) <= ENDS_SOON:
            left = counted(each.days_left(today), "day")
            note("note: {} ends in {}; its findings are back then", each.id, left)


@waiver.command(short_help="Revoke a waiver: its findings are back at once.")
@click.argument("waiver_id", type=click.UUID)
@click.option("--reason", required=True, help="The reason why it holds no longer.")
@click.option("--by", "revoked_by", required=True, help="The person who revokes the waiver.")
@json_option
@pass_context
def revoke(ctx: Context, waiver_id: UUID, reason: str, revoked_by: str, as_json: bool) -> None:
    """Revoke the waiver WAIVER_ID: its findings are back at once.

    \b
    Example:
      toolkit waiver revoke 0199c0de-0000-7000-8000-000000000001 --reason "sent after all" --by ana
    """
    database, clock = ctx.application.database, ctx.application.clock
    why = {"reason": reason, "revoked_by": revoked_by, "account": signed_in_account()}
    revoked_at = revoke_waiver(database, waiver_id, **why, clock=clock)
    if as_json:
        print_json({"id": waiver_id, "revokedAt": revoked_at})
    else:
        show("{}: revoked", waiver_id)


@waiver.command(short_help="Check a file of waivers without adding them.")
@click.argument("file", type=NonEmptyPath())
@json_option
@pass_context
def lint(ctx: Context, file: Path, as_json: bool) -> int:
    """Check the waivers in the TOML file FILE without adding them, for a review.

    \b
    A table [[waiver]] for each, with sale, partner or code, and reason, owner,
    approvedBy, start and end.

    \b
    Example:
      toolkit waiver lint waivers.toml

    Exit status 3: something is wrong with a waiver; each is named with its reasons.
    """
    linted = lint_waivers(file, today=ctx.today())
    wrong = [{"place": place, "errors": errors} for place, (_r, errors) in enumerate(linted, start=1) if errors]
    if as_json:
        print_json({"waivers": len(linted), "wrong": wrong})
    else:
        _tell_wrong(file, linted)
        show("{}: {}, {} wrong", file.name, counted(len(linted), "waiver"), len(wrong))
    return NEEDS_ATTENTION if wrong else DONE


def _tell_wrong(file: Path, linted: list[tuple[WaiverRequest | None, list[Message]]]) -> bool:
    for place, (_request, wrong) in enumerate(linted, start=1):
        if wrong:
            note("{}, waiver {}: {}", file.name, place, listed(wrong))
    return any(wrong for _request, wrong in linted)


def _show(waivers: list[Waiver], ctx: Context) -> None:
    columns = ("id", "state", "start", "end", "about", "reason", "owner", "approved by")
    show_table(columns, [_cells(each, ctx) for each in waivers])


def _cells(each: Waiver, ctx: Context) -> tuple[str, ...]:
    request = each.request
    about: dict[str, Any] = {"sale": request.sale_id, "partner": request.partner, "code": request.code}
    told = ", ".join(f"{_(name)} {value}" for name, value in about.items() if value)
    state = "revoked" if each.revoked_at else "holds" if each.holds(ctx.today()) else "later"
    if not each.revoked_at and request.end <= ctx.today():
        state = "ended"
    dates = str(request.start), str(request.end)
    return str(each.id), _(state), *dates, told, request.reason, request.owner, request.approved_by
