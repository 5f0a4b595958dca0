"""Notebook 10: the quality of the registered clients, and those that are registered more than once."""

from toolkit.entrypoints.notebooks.display import Bars, Colour, Fact, Facts, Grid, Part, Shown
from toolkit.entrypoints.notebooks.notebook_errors import application, told_plainly
from toolkit.entrypoints.spoken import _
from toolkit.operations.register.client_quality import (
    QUALITY_TEXTS,
    ClientQuality,
    Likeness,
)
from toolkit.operations.register.client_quality import client_quality as look_through


@told_plainly
def client_quality(*, most: int = 500) -> Shown[ClientQuality]:
    """Look through the registered clients; nothing of a person is shown but the masked CPF.

    Of each likeness ``most`` groups of clients are named, the largest first.
    """
    with application() as opened:
        found = look_through(opened.database, opened.clock().astimezone(opened.settings.timezone).date(), most)
    repeated = found.groups.get(Likeness.SAME_CONTRACT, 0)
    counts = {
        "job": "client_quality",
        "clients": found.clients,
        "doubtful": dict(found.counts),
        "alike": {str(likeness): number for likeness, number in found.groups.items()},
        "needsAttention": repeated > 0,
    }
    return Shown(found, _parts(found, repeated), counts)


def _parts(found: ClientQuality, repeated: int) -> list[Part]:
    alike = sum(found.groups.values())
    facts = [
        Fact("clients", found.clients),
        Fact("registered more than once", repeated, Colour.BAD if repeated else Colour.GOOD),
        Fact("groups that are alike", alike, Colour.WARNING if alike else Colour.QUIET),
    ]
    parts: list[Part] = [Facts("Registered clients", facts)]
    if found.counts:
        doubtful = {_(QUALITY_TEXTS[code]): number for code, number in found.counts.items()}
        parts.append(Bars.ranked("Doubtful or not there", doubtful, Colour.WARNING))
    if found.alike:
        groups = {_(likeness.text): number for likeness, number in found.groups.items()}
        parts.append(Bars.ranked("Groups of clients that are alike", groups, Colour.WARNING))
        columns = ["what is the same", "clients", "CPF, masked", "client ids"]
        rows = [
            (_(each.likeness.text), each.number, each.cpf or _("several"), ", ".join(each.client_ids))
            for each in found.alike
        ]
        parts.append(Grid("Clients that are alike", columns, rows, total=alike))
    return parts
