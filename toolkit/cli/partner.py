"""``toolkit partner``: tell partners what they have to mend, and list what they answered."""

from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from toolkit.audit.partners import kept_answers, load_answers
from toolkit.cli.context import NonEmptyPath, shows
from toolkit.jobs.partner_notices import notify_partners
from toolkit.kit.audits import shown_answers, shown_answers_loaded
from toolkit.kit.connection import Kit
from toolkit.kit.process import signed_in_account
from toolkit.kit.shown import Shown
from toolkit.kit.spoken import current_language
from toolkit.message import Message

partner = click.Group("partner")


@partner.command(short_help="Send each partner its own findings, where there is something to tell.")
@click.option(
    "--within",
    type=click.IntRange(1, 60),
    default=3,
    show_default=True,
    metavar="DAYS",
    help="A finding comes due when it is due within so many business days.",
)
@shows()
def notify(kit: Kit, /, within: int) -> Shown[Any]:
    """Send each partner the findings about its own sales, where there is something to tell.

    That is a finding which is new, comes due or is overdue, and of which the partner was not told at
    that stage; each partner is told at most once a day. The newest audit says what is found. A mail
    has the list as a page and as a workbook; a webhook gets it as JSON, signed as job notices are.

    TOOLKIT_PARTNERS names a TOML file with the addresses:
      [partner."Norte Energia"]
      mail = ["backoffice@norte.example.com"]
      language = "pt-BR"
      webhook = "https://crm.norte.example.com/findings"
      webhook-secret-file = "norte.secret"

    Examples:
      toolkit partner notify
      toolkit partner notify --within 5 --json

    Exit status 3: a partner could not be told at every address; the next start tries again where it helps.
    """
    pa.set_memory_pool(pa.system_memory_pool())  # it gives back what Arrow's own one keeps
    return notify_partners(kit, within=within)


@partner.command(short_help="List what partners answered to their findings, or read a workbook of answers.")
@click.argument("file", type=NonEmptyPath(), required=False)
@click.option(
    "--partner", "name", metavar="NAME", help="Only the answers of this partner; with FILE, whose it is."
)
@click.option("--out", type=NonEmptyPath(), help="Folder for rejected rows; beside FILE by default.")
@shows()
def answers(kit: Kit, /, file: Path | None, name: str | None, out: Path | None) -> Shown[Any]:
    """List what partners answered to their findings, the newest first; or keep the answers in FILE.

    FILE is the workbook that a partner was sent, with its answers on the sheet Answers (Respostas), or
    a CSV file of that sheet. An answer that is known already is not kept again; rejected rows come
    back in FILE.rejected.csv and FILE.rejected.xlsx, to be corrected and read.

    Partners answer in that workbook, or over HTTP: that the file was sent again, will come by a day,
    that the finding is wrong, or that they ask for a waiver. An answer changes no verdict; a waiver
    takes two people of ours, see: toolkit waiver add.

    Examples:
      toolkit partner answers
      toolkit partner answers --partner "Norte Energia" --json
      toolkit partner answers missing-evidence-Norte_Energia.xlsx --partner "Norte Energia"

    Exit status 3: some rows were rejected; each is named with its line.
    """
    if file is None:
        return shown_answers(kept_answers(kit.database, name))
    if name is None:
        raise click.BadParameter(
            Message("is needed with {}: whose answers they are.", "FILE"), param_hint="--partner"
        )
    loaded = load_answers(
        kit.database,
        kit.last_audit(),
        file,
        partner=name,
        answered_by=signed_in_account(),
        out=out,
        spoken=current_language(),
    )
    return shown_answers_loaded(loaded, file.name)
