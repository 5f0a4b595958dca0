"""``toolkit privacy``: what is known of a person, holds, requests, erasure, and the records of the LGPD."""

import sys
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import click

from toolkit.cli.context import DONE, NonEmptyPath, note, pass_kit, past_moment, show, shows
from toolkit.contract.fields import DATE_SHAPE
from toolkit.contract.privacy import AnswerOutcome, Right
from toolkit.kit.connection import Kit
from toolkit.kit.shown import Shown, say

_DAY = click.DateTime(["%Y-%m-%d"])

by_option = click.option("--by", required=True, metavar="NAME", help="The person who decides.")

asked_by = click.option("--by", default="", metavar="NAME", help="The person who asks for it.")
approved_by = click.option("--approved-by", default="", metavar="NAME", help="The approver; not the same person.")


def _cpf() -> str:
    """Read a CPF from standard input; a terminal does not show it."""
    if sys.stdin and sys.stdin.isatty():
        return str(click.prompt("CPF", hide_input=True, err=True))
    with suppress(UnicodeDecodeError):
        return sys.stdin.read() if sys.stdin else ""
    return ""


def _day(given: datetime | None) -> date | None:
    return None if given is None else given.date()


@click.group()
def privacy() -> None:
    """Answer persons: what is known of them, a copy, erasure; and keep what the law keeps.

    A CPF is read from standard input, so that no list of processes and no history of a shell
    holds it. Where it is asked for, give it in one line:

    Examples:
      toolkit privacy show < cpf.txt
      toolkit privacy request add --right access --received 2026-11-20 < cpf.txt
      toolkit privacy erase --dry-run --look-in reports < cpf.txt
    """


@privacy.command("show", short_help="Tell what is kept of a person, without showing it.")
@shows(DONE)
def show_person(kit: Kit) -> Shown[Any]:
    """Tell what is kept of the person whose CPF stands on standard input, without showing the data.

    Example:
      toolkit privacy show < cpf.txt
    """
    return kit.privacy.show(_cpf())


@privacy.command(short_help="Write the full copy for a person into a ZIP.")
@click.option("--out", type=NonEmptyPath(), default=".", show_default=True, help="Folder of the ZIP.")
@click.option("--reason", required=True, help="The reason; the custody log keeps it with your account.")
@click.option("--with-files", is_flag=True, help="Add the files of the evidence; each is told as opened.")
@pass_kit
def export(kit: Kit, out: Path, reason: str, with_files: bool) -> None:
    """Write all that is kept of a person into a ZIP that only you can read: JSON, and the files.

    Example:
      toolkit privacy export --reason "request 0199c0de" --with-files < cpf.txt
    """
    show("{}", kit.privacy.export(_cpf(), out, reason=reason, with_files=with_files).result)


@privacy.command(short_help="Erase what is known of a person, or of sales.")
@click.option("--sale", "sale_ids", multiple=True, metavar="ID", help="This sale, instead of a person.")
@click.option("--basis", default="", help="The reason or the legal basis.")
@asked_by
@approved_by
@click.option(
    "--look-in",
    multiple=True,
    type=NonEmptyPath(exists=True, file_okay=False),
    metavar="DIR",
    help="Also search this folder: reports, rejected rows, notebooks.",
)
@click.option("--dry-run", is_flag=True, help="Only tell what would be removed.")
@shows()
def erase(kit: Kit, sale_ids: tuple[str, ...], **given: Any) -> Shown[Any]:
    """Erase what is known of a person, or of sales: objects in every version, rows, names, files.

    A client goes with the last of the sales. What is held, or within the period for which its
    evidence is kept, stays; it is listed with its basis. The custody log is not rewritten:
    everything that was proven before still verifies. Nothing can be brought back.

    Examples:
      toolkit privacy erase --dry-run --look-in reports --look-in work < cpf.txt
      toolkit privacy erase --basis "consent revoked" --by ana --approved-by rui \\
        --look-in reports < cpf.txt

    Exit status 3: some sales are kept.
    """
    return kit.privacy.erase(None if sale_ids else _cpf(), sale_ids=sale_ids, **given)


@privacy.group(short_help="Keep the data of a sale from being erased.")
def hold() -> None:
    """Keep the data of a sale from being erased, such as for a lawsuit: add, list, release.

    Example:
      toolkit privacy hold add V-2026-00013 --basis "lawsuit 0001234" --by ana
    """


@hold.command("add", short_help="Hold a sale.")
@click.argument("sale_id")
@click.option("--basis", required=True, help="The reason or the legal basis.")
@by_option
@click.option("--until", type=_DAY, metavar="DATE", help="The first day on which it holds no longer.")
@pass_kit
def add_hold(kit: Kit, sale_id: str, basis: str, by: str, until: datetime | None) -> None:
    """Keep the data of the sale SALE_ID from being erased.

    Example:
      toolkit privacy hold add V-2026-00013 --basis "lawsuit 0001234" --by ana
    """
    show("{}: held", kit.privacy.hold(sale_id, basis=basis, by=by, until=_day(until)))


@hold.command("list", short_help="List all holds.")
@shows(DONE)
def list_holds(kit: Kit) -> Shown[Any]:
    """List all holds, the newest first.

    Example:
      toolkit privacy hold list
    """
    return kit.privacy.holds()


@hold.command("release", short_help="Release a hold.")
@click.argument("hold_id", type=click.UUID)
@click.option("--reason", required=True, help="The reason why it holds no longer.")
@by_option
@pass_kit
def release_hold(kit: Kit, hold_id: UUID, reason: str, by: str) -> None:
    """Release the hold HOLD_ID: the data of its sale may be erased.

    Example:
      toolkit privacy hold release 0199c0de-0000-7000-8000-000000000001 --reason "settled" --by ana
    """
    kit.privacy.release(hold_id, reason=reason, by=by)
    show("{}: released", hold_id)
    note("note: what was refused because of it can be erased now: toolkit privacy erase")


@privacy.group(short_help="Note requests of persons and their answers.")
def request() -> None:
    """Note requests of persons, each due in 15 days, and how they were answered.

    Example:
      toolkit privacy request list
    """


@request.command("add", short_help="Note a request.")
@click.option(
    "--right", type=click.Choice([each.value for each in Right]), required=True, help="What the person asks for."
)
@click.option("--received", type=_DAY, metavar="DATE", help="The day on which it came; today by default.")
@shows(DONE)
def add_request(kit: Kit, right: str, received: datetime | None) -> Shown[Any]:
    """Note the request of the person whose CPF stands on standard input; a keyed hash of it is kept.

    Example:
      toolkit privacy request add --right erasure --received 2026-11-20 < cpf.txt
    """
    noted = kit.privacy.request(_cpf(), Right(right), _day(received))
    said = say("{}: due on {}", noted.id, noted.due_on)
    return Shown(noted, [said], {"id": noted.id, "dueOn": noted.due_on})


@request.command("list", short_help="List the requests.")
@click.option("--person", is_flag=True, help="Those of one person alone, whose CPF stands on standard input.")
@shows()
def list_requests(kit: Kit, person: bool) -> Shown[Any]:
    """List the requests of persons, open ones first.

    Example:
      toolkit privacy request list

    Exit status 3: a request is overdue.
    """
    return kit.privacy.requests(_cpf() if person else None)


@request.command("close", short_help="Note how a request was answered.")
@click.argument("request_id", type=click.UUID)
@click.option(
    "--outcome", type=click.Choice([each.value for each in AnswerOutcome]), required=True, help="How it ended."
)
@click.option("--basis", required=True, help="What was done, or the basis of the refusal.")
@by_option
@pass_kit
def close_request(kit: Kit, request_id: UUID, outcome: str, basis: str, by: str) -> None:
    """Note how the request REQUEST_ID was answered: a reasoned refusal is an answer, too.

    Example:
      toolkit privacy request close 0199c0de-0000-7000-8000-000000000001 --outcome refused \\
        --basis "contract evidence is kept for five years (LGPD, art. 16, I)" --by ana
    """
    kit.privacy.close(request_id, AnswerOutcome(outcome), basis=basis, by=by)
    show("{}: {}", request_id, outcome)


@privacy.command(short_help="Tell whose evidence is beyond its period, or erase it.")
@click.option("--erase", "erase_them", is_flag=True, help="Erase it; needs --by and --approved-by.")
@asked_by
@approved_by
@shows(DONE)
def retention(kit: Kit, **given: Any) -> Shown[Any]:
    """Tell the sales whose evidence is beyond the periods in the file of TOOLKIT_PRIVACY.

    Sales that are held, or whose client has an open request, stay.

    Example:
      toolkit privacy retention
      toolkit privacy retention --erase --by ana --approved-by rui
    """
    return kit.privacy.retention(**given)


@privacy.command(short_help="Write the record of processing.")
@shows()
def record(kit: Kit) -> Shown[Any]:
    """Write the record of processing (LGPD, art. 37): which personal data stand where, why, for how long.

    Example:
      toolkit privacy record --json > record.json

    Exit status 3: the file of TOOLKIT_PRIVACY leaves something out.
    """
    return kit.privacy.record()


@privacy.command(short_help="Tell who saw personal data in a time, and whom to notify by when.")
@click.option("--since", required=True, metavar="TIME", help="The beginning; a day counts from its start.")
@click.option("--until", metavar="TIME", help="The end; now by default.")
@click.option("--known", type=_DAY, metavar="DATE", help="The day on which it became known; today by default.")
@shows(DONE)
def incident(kit: Kit, since: str, until: str | None, known: datetime | None) -> Shown[Any]:
    """Tell who saw personal data between two times, of which sales, and the days for the notices.

    Example:
      toolkit privacy incident --since 2026-11-20 --until 2026-11-22
    """
    begin = past_moment(kit, f"{since}T00:00" if DATE_SHAPE.fullmatch(since) else since, "--since")
    end = past_moment(kit, until, "--until") or kit.clock()
    assert begin is not None
    return kit.privacy.incident(begin, end, _day(known) or kit.today())


@privacy.command(short_help="Erase again what a restored backup brought back.")
@click.option("--dry-run", is_flag=True, help="Only tell what would be carried out.")
@shows()
def replay(kit: Kit, dry_run: bool) -> Shown[Any]:
    """Carry out again each erasure of the ledger of which something is in the database.

    After a restore from a backup, data of persons who left may be back.

    Example:
      toolkit privacy replay
    """
    return kit.privacy.replay(dry_run=dry_run)
