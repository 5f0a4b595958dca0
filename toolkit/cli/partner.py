"""``toolkit partner``: tell partners what they have to mend, and list what they answered."""

from collections.abc import Sequence

import click

from toolkit.audit.partner_answers import KeptAnswer, kept_answers
from toolkit.cli.context import shows
from toolkit.jobs.partner_notices import PartnersTold, notify_partners, shown_told
from toolkit.kit.audits import shown_answers
from toolkit.kit.connection import Kit
from toolkit.kit.shown import Shown


@click.group()
def partner() -> None:
    """Tell partners what they have to mend, and until when; list what they answered.

    \b
    Examples:
      toolkit partner notify
      toolkit partner answers
    """


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
def notify(kit: Kit, /, within: int) -> Shown[PartnersTold | None]:
    """Send each partner the findings about its own sales, where there is something to tell.

    That is a finding which is new, comes due or is overdue, and of which the partner was not told at
    that stage; each partner is told at most once a day. The newest audit says what is found. A mail
    has the list as a page and as a workbook; a webhook gets it as JSON, signed as job notices are.

    \b
    TOOLKIT_PARTNERS names a TOML file with the addresses:
      [partner."Norte Energia"]
      mail = ["backoffice@norte.example.com"]
      language = "pt-BR"
      webhook = "https://crm.norte.example.com/findings"
      webhook-secret-file = "norte.secret"

    \b
    Examples:
      toolkit partner notify
      toolkit partner notify --within 5 --json

    Exit status 3: a partner could not be told; the next start tries again.
    """
    return shown_told(notify_partners(kit, within=within))


@partner.command(short_help="List what partners answered to their findings.")
@click.option("--partner", "name", metavar="NAME", help="Only the answers of this partner.")
@shows()
def answers(kit: Kit, /, name: str | None) -> Shown[Sequence[KeptAnswer]]:
    """List what partners answered to their findings, the newest first.

    Partners answer over HTTP: that the file was sent again, will come by a day, that the finding is
    wrong, or that they ask for a waiver. An answer changes no verdict; a waiver takes two people of
    ours, see: toolkit waiver add.

    \b
    Examples:
      toolkit partner answers
      toolkit partner answers --partner "Norte Energia" --json
    """
    return shown_answers(kept_answers(kit.database, name), kit.settings.timezone)
