"""``toolkit waiver``: accept findings for a time, by two people, with a reason and an end."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import click

from toolkit.audit.waivers import add_waivers, fits_a_sale, lint_waivers
from toolkit.cli.context import DONE, NonEmptyPath, note, shows
from toolkit.contract.waivers import WaiverRequest
from toolkit.errors import InvalidInput
from toolkit.kit.audits import shown_waivers
from toolkit.kit.connection import Kit
from toolkit.kit.shown import Shown, remark, say
from toolkit.kit.spoken import counted
from toolkit.message import Message, listed


@click.group()
def waiver() -> None:
    """Accept findings for a time: by an owner and an approver, with a reason and an end.

    While a waiver holds, its findings are counted as waived; the status of the sale stays
    what it is. On the day on which it ends they are back. A waiver is never changed or
    deleted, only revoked.
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
@shows(DONE)
def add(kit: Kit, /, file: Path | None, **given: str | None) -> Shown[Any]:
    """Add a waiver for a sale, a partner or a code; where several are given, all must fit.

    The next audit is the first to heed it.

    Examples:
      toolkit waiver add --partner "Norte Energia" --code WITHOUT_CLIENT \\
        --reason "clients follow in December" --owner ana --approved-by bruno --end 2026-12-31
      toolkit waiver add --file waivers.toml
    """
    if file is None:
        shown = kit.add_waiver(**given)
    else:
        if any(given.values()):
            raise click.UsageError("--file holds whole waivers: leave the other options out.")
        linted = lint_waivers(file, today=kit.today())
        if _tell_wrong(file, linted):
            raise InvalidInput("nothing was added")
        requests = [request for request, _ in linted if request]
        shown = shown_waivers(add_waivers(kit.database, requests), kit.today())
    odd = (each.id for each in shown.result if not fits_a_sale(kit.database, each))
    notes = (
        Message("{} fits no sale that was seen: ids and partners are written exactly as in the sales", each)
        for each in odd
    )
    return replace(shown, parts=[*shown.parts, *(remark("note", text) for text in notes)])


@waiver.command("list", short_help="List the waivers that hold or will hold.")
@click.option("--all", "everything", is_flag=True, help="Also list those that ended or were revoked.")
@shows(DONE)
def list_waivers(kit: Kit, everything: bool) -> Shown[Any]:
    """List the waivers that hold or will hold; those that end within 14 days are warned of.

    Examples:
      toolkit waiver list
      toolkit waiver list --all --json
    """
    return kit.waivers(everything=everything)


@waiver.command(short_help="Revoke a waiver: its findings are back at once.")
@click.argument("waiver_id", type=click.UUID)
@click.option("--reason", required=True, help="The reason why it holds no longer.")
@click.option("--by", required=True, help="The person who revokes the waiver.")
@shows(DONE)
def revoke(kit: Kit, waiver_id: UUID, reason: str, by: str) -> Shown[Any]:
    """Revoke the waiver WAIVER_ID: its findings are back at once.

    Example:
      toolkit waiver revoke 0199c0de-0000-7000-8000-000000000001 --reason "sent after all" --by ana
    """
    revoked_at = kit.revoke_waiver(waiver_id, reason=reason, by=by)
    document = {"id": waiver_id, "revokedAt": revoked_at}
    return Shown(revoked_at, [say("{}: revoked", waiver_id)], document)


@waiver.command(short_help="Check a file of waivers without adding them.")
@click.argument("file", type=NonEmptyPath())
@shows()
def lint(kit: Kit, file: Path) -> Shown[Any]:
    """Check the waivers in the TOML file FILE without adding them, for a review.

    A table [[waiver]] for each, with sale, partner or code, and reason, owner,
    approvedBy, start and end.

    Example:
      toolkit waiver lint waivers.toml

    Exit status 3: something is wrong with a waiver; each is named with its reasons.
    """
    linted = lint_waivers(file, today=kit.today())
    wrong = [{"place": place, "errors": errors} for place, (_r, errors) in enumerate(linted, start=1) if errors]
    _tell_wrong(file, linted)
    heading = say("{}: {}, {} wrong", file.name, counted(len(linted), "waiver"), len(wrong))
    return Shown(linted, [heading], {"waivers": len(linted), "wrong": wrong}, bool(wrong))


def _tell_wrong(file: Path, linted: list[tuple[WaiverRequest | None, list[Message]]]) -> bool:
    for place, (_request, wrong) in enumerate(linted, start=1):
        if wrong:
            note("{}, waiver {}: {}", file.name, place, listed(wrong))
    return any(wrong for _request, wrong in linted)
