"""Count what the audit found, and select the sales that somebody has to act on, as Ibis expressions.

Both start from the table that ``missing_evidence`` gives. The census has one row for each combination that
occurs, so it stays small whatever the number of sales, and every total is a sum over it.
"""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Final

import ibis
import pandas as pd
from ibis import Table
from ibis.expr.types import BooleanValue

from toolkit.domain.evidence import UtilityGroup
from toolkit.domain.findings import Status
from toolkit.operations.judge.audit.expression import COVERAGES

UNKNOWN_GROUP: Final = "unknown"
"""The group in the census that stands for every utility group that the contract does not know."""

_COUNTS: Final = ("sales", "unexamined", *COVERAGES.values())

UNVERIFIED: Final = 1000
"""Compliant sales on files that are not fully verified, of which this is all that is wrong, that are listed."""

AGE_BANDS: Final = {"0-1": 1, "2-7": 7, "8-30": 30, "31-90": 90}
"""The age of a sale in whole days since it was created: each band, and the last day that belongs to it."""

OLDER: Final = ">90"

_DAY: Final = 86_400
"""Seconds."""


def census(audited: Table) -> Table:
    """Count the sales that share status, group, missing types, reasons, problems and partner.

    Columns: ``status``, ``utility_group``, ``missing``, ``reasons``, ``problems``, ``partner``, ``has_client``,
    ``fully_verified`` (every counted file was), and the counts ``sales``, ``unexamined`` and those of
    ``COVERAGES`` (files).
    """
    known = audited.utility_group.isin(list(UtilityGroup))
    return audited.group_by(
        "status",
        "missing",
        "reasons",
        "problems",
        "partner",
        utility_group=ibis.cases((known, audited.utility_group), else_=UNKNOWN_GROUP),
        has_client=audited.client_id.notnull(),
        fully_verified=_fully_verified(audited),
    ).aggregate(sales=audited.count(), **{name: audited[name].sum() for name in _COUNTS[1:]})


def _fully_verified(audited: Table) -> BooleanValue:
    return (audited.first_bytes + audited.never + audited.unreadable) == 0


def summed(counts: Iterable[pd.DataFrame], less: pd.DataFrame) -> pd.DataFrame:
    """Return the census of the sales in all these, which have no sale in common, without those in ``less``."""
    gone = less.assign(**{name: -less[name] for name in _COUNTS})
    together = pd.concat([*counts, gone], ignore_index=True)
    shared = [name for name in together.columns if name not in _COUNTS]
    found = together.groupby(shared, as_index=False, dropna=False)[list(_COUNTS)].sum()
    return found[(found[list(_COUNTS)] != 0).any(axis=1)].reset_index(drop=True)


def to_act_on(audited: Table, clients: Table, with_files: Collection[str] = ()) -> Table:
    """Return the sales behind the numbers, each with the CPF of its client: ``clients`` has ``id`` and ``cpf``.

    They are not compliant, have a warning, are among those ``with_files`` of which there are findings, or are the
    first ``UNVERIFIED`` compliant ones on files that are not fully verified.
    """
    told = (audited.status != Status.COMPLIANT) | (audited.problems != "") | audited.client_id.isnull()
    if with_files:
        told |= audited.sale_id.isin(sorted(with_files))
    unverified = audited.filter(~told & ~_fully_verified(audited)).order_by("sale_id").limit(UNVERIFIED)
    sales = audited.filter(told).union(unverified)
    found = sales.left_join(clients, sales.client_id == clients.id)
    return found.select(*(sales[name] for name in audited.columns), clients.cpf)


def by_age(audited: Table, moment: datetime) -> Table:
    """Count the sales that are not compliant: ``status``, ``partner``, the ``band`` of age, and ``sales``."""
    waiting = audited.filter(audited.status != Status.COMPLIANT)
    younger = {band: moment - timedelta(days=last + 1) for band, last in AGE_BANDS.items()}
    bands = ((waiting.created_at > ibis.literal(since), band) for band, since in younger.items())
    return waiting.group_by("status", "partner", band=ibis.cases(*bands, else_=OLDER)).aggregate(
        sales=waiting.count()
    )


def by_partner(audited: Table) -> Table:
    """Return the days from creation to completion by partner: ``partner``, ``completed``, ``median_days``."""
    # Some engines tell parts of seconds; a median of whole numbers is the same on every one.
    seconds = audited.completed_at.epoch_seconds().floor() - audited.created_at.epoch_seconds().floor()
    completed = audited.filter(audited.completed_at.notnull()).mutate(seconds=seconds)
    return completed.group_by("partner").aggregate(
        completed=completed.count(),
        median_days=completed.seconds.median() / _DAY,
    )
