"""Count what the audit found, and select the sales that somebody has to act on, as Ibis expressions.

Both start from the table that ``missing_evidence`` gives. The census has one row for each combination that
occurs, so it stays small whatever the number of sales, and every total is a sum over it.
"""

from datetime import datetime, timedelta
from typing import Final

import ibis
from ibis import Table

from toolkit.domain.evidence import UtilityGroup
from toolkit.domain.findings import Status
from toolkit.operations.judge.audit.expression import COVERAGES

UNKNOWN_GROUP: Final = "unknown"
"""The group in the census that stands for every utility group that the contract does not know."""

AGE_BANDS: Final = {"0-1": 1, "2-7": 7, "8-30": 30, "31-90": 90}
"""The age of a sale in whole days since it was created: each band, and the last day that belongs to it."""

OLDER: Final = ">90"


def census(audited: Table, as_of: datetime) -> Table:
    """Count the sales that share status, group, missing types, reasons, problems, partner and age.

    Columns: ``status``, ``utility_group``, ``missing``, ``reasons``, ``problems``, ``partner``, ``age``,
    ``has_client``, ``fully_verified`` (every counted file was), and the counts ``sales``, ``unexamined`` and those
    of ``COVERAGES`` (files).
    """
    known = audited.utility_group.isin(list(UtilityGroup))
    bands = [
        (audited.created_at > ibis.literal(as_of - timedelta(days=last + 1)), band)
        for band, last in AGE_BANDS.items()
    ]
    return audited.group_by(
        "status",
        "missing",
        "reasons",
        "problems",
        "partner",
        utility_group=ibis.cases((known, audited.utility_group), else_=UNKNOWN_GROUP),
        age=ibis.cases(*bands, else_=OLDER),
        has_client=audited.client_id.notnull(),
        fully_verified=(audited.first_bytes + audited.never + audited.unreadable) == 0,
    ).aggregate(
        sales=audited.count(),
        **{name: audited[name].sum() for name in ("unexamined", *COVERAGES.values())},
    )


def to_act_on(audited: Table, clients: Table) -> Table:
    """Return the sales that are not compliant or have a warning, each with the CPF of its client.

    ``clients`` has ``id`` and ``cpf``.
    """
    told = (audited.status != Status.COMPLIANT) | (audited.problems != "") | audited.client_id.isnull()
    sales = audited.filter(told)
    found = sales.left_join(clients, sales.client_id == clients.id)
    return found.select(*(sales[name] for name in audited.columns), clients.cpf)


def by_partner(audited: Table) -> Table:
    """Return the days from creation to completion by partner: ``partner``, ``completed``, ``median_days``."""
    seconds = audited.completed_at.epoch_seconds() - audited.created_at.epoch_seconds()
    completed = audited.filter(audited.completed_at.notnull()).mutate(days=seconds / 86_400)
    return completed.group_by("partner").aggregate(
        completed=completed.count(), median_days=completed.days.median()
    )
