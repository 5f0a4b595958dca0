"""Query the rows behind the numbers of an audit: unusable files, withdrawn records, completed sales."""

from datetime import datetime, timedelta
from typing import Any, Final

import pandas as pd
import sqlalchemy as sa

from toolkit.domain.codes import KindFault
from toolkit.domain.evidence import KIND_OF, EvidenceType
from toolkit.storage.reader import Reader
from toolkit.storage.tables import (
    content_checks,
    evidence_observations,
    object_observations,
    sale_observations,
    withdrawals,
)

COMPLETED_DAYS: Final = 30

MOST: Final = 100
"""Completed sales of a partner that are listed."""

OF_ANY_RECORD: Final = sa.true()

OF_SALES: Final = sale_observations.c.sale_id.is_not(None)
"""Leaves out the files of records that name none of the sales."""


def faults_at(connection: Reader, moment: datetime, which: sa.ColumnElement[bool] = OF_SALES) -> pd.DataFrame:
    """Return the unusable files that lay in the bucket under a record that was not withdrawn, the latest first.

    ``code`` is a fault of ``toolkit.domain.codes``.
    """
    record, seen, sale, check = evidence_observations, object_observations, sale_observations, content_checks
    latest, first = latest_look_and_first_fault(seen, moment)
    demanded = sa.case({each.value: kind.value for each, kind in KIND_OF.items()}, value=record.c.evidence_type)
    since = sa.func.coalesce(first.c.checked_at, latest.c.checked_at)
    told = {
        "saleId": record.c.sale_id,
        "partner": sale.c.partner,
        "evidenceId": record.c.evidence_id,
        "evidenceType": record.c.evidence_type,
        "code": sa.func.coalesce(first.c.problem, str(KindFault.WRONG_KIND)),
        "since": since,
        "size": seen.c.size,
        "seconds": latest.c.seconds,
        "pages": latest.c.pages,
        "mediaType": latest.c.media_type,
        "sha256": latest.c.sha256,
    }
    query = (
        sa.select(*told.values())
        .distinct()
        .select_from(check)
        .join(seen, seen.c.id == check.c.observation_id)
        .join(record, sa.collate(seen.c.key, "C") == record.c.object_key)  # as it is indexed
        .join(latest, sa.true())
        .outerjoin(first, sa.true())
        .outerjoin(sale, sa.and_(sale.c.sale_id == record.c.sale_id, held(sale, moment)))
        .where(
            which,
            held(record, moment),
            held(seen, moment),
            record.c.evidence_type.in_(list(EvidenceType)),
            check.c.checked_at <= moment,
            sa.or_(check.c.problem.is_not(None), check.c.kind != demanded),
            sa.or_(first.c.problem.is_not(None), latest.c.kind != demanded),
            ~sa.exists().where(
                withdrawals.c.evidence_id == record.c.evidence_id, withdrawals.c.withdrawn_at <= moment
            ),
        )
        .order_by(since.desc(), record.c.sale_id, record.c.evidence_id)
    )
    return pd.DataFrame(connection.execute(query).all(), columns=list(told), dtype=object)


def latest_look_and_first_fault(
    seen: sa.FromClause, moment: datetime | None = None
) -> tuple[sa.FromClause, sa.FromClause]:
    """Return the latest look at an object's contents, and the first that found a fault, by a moment or by now."""
    looked = content_checks.alias("looked")
    by_then = until(looked.c.checked_at, moment)
    every = sa.select(looked).where(looked.c.observation_id == seen.c.id, by_then).limit(1)
    first = every.where(looked.c.problem.is_not(None)).order_by(looked.c.id)
    return every.order_by(looked.c.id.desc()).lateral("latest"), first.lateral("first_fault")


def withdrawals_at(connection: Reader, moment: datetime) -> pd.DataFrame:
    """Return the records that had been withdrawn by then, the latest first, with the reason and both people.

    One that the service holds no more is as it was seen last.
    """
    seen, sale = evidence_observations, sale_observations
    record = (
        sa.select(seen.c.evidence_id, seen.c.sale_id, seen.c.evidence_type)
        .where(seen.c.evidence_id == withdrawals.c.evidence_id, seen.c.seen_at <= moment)
        .order_by(seen.c.seen_at.desc(), seen.c.id.desc())
        .limit(1)
        .lateral("record")
    )
    told = {
        "saleId": record.c.sale_id,
        "partner": sale.c.partner,
        "evidenceId": record.c.evidence_id,
        "evidenceType": record.c.evidence_type,
        "reason": withdrawals.c.reason,
        "withdrawnBy": withdrawals.c.withdrawn_by,
        "approvedBy": withdrawals.c.approved_by,
        "withdrawnAt": withdrawals.c.withdrawn_at,
    }
    query = (
        sa.select(*told.values())
        .select_from(withdrawals)
        .join(record, sa.true())
        .outerjoin(sale, sa.and_(sale.c.sale_id == record.c.sale_id, held(sale, moment)))
        .where(withdrawals.c.withdrawn_at <= moment)
        .order_by(withdrawals.c.withdrawn_at.desc(), record.c.evidence_id)
    )
    return pd.DataFrame(connection.execute(query).all(), columns=list(told), dtype=object)


def completed_at(connection: Reader, moment: datetime) -> pd.DataFrame:
    """Return the sales completed within the ``COMPLETED_DAYS`` before, the latest ``MOST`` of each partner."""
    sale = sale_observations.c
    told = {"saleId": sale.sale_id, "partner": sale.partner, "completedAt": sale.completed_at}
    latest = (sale.completed_at.desc(), sale.sale_id)
    numbered = sa.select(
        *(column.label(name) for name, column in told.items()),
        sa.func.row_number().over(partition_by=sale.partner, order_by=latest).label("place"),
    ).where(
        held(sale_observations, moment),
        sale.completed_at > moment - timedelta(days=COMPLETED_DAYS),
        sale.completed_at <= moment,
    )
    found = numbered.subquery().c
    query = sa.select(*(found[name] for name in told)).where(found.place <= MOST)
    rows = connection.execute(query.order_by(found.completedAt.desc(), found.saleId)).all()
    return pd.DataFrame(rows, columns=list(told), dtype=object)


def held(observations: sa.Table, moment: datetime | None) -> sa.ColumnElement[bool]:
    """Tell the observations that held at the moment, those that hold now where it is ``None``."""
    gone_at = observations.c.gone_at
    if moment is None:
        return gone_at.is_(None)
    return sa.and_(observations.c.seen_at <= moment, sa.or_(gone_at.is_(None), gone_at > moment))


def until(stamp: sa.ColumnElement[Any], moment: datetime | None) -> sa.ColumnElement[bool]:
    """Tell what was stamped by the moment, everything where it is ``None``."""
    return sa.true() if moment is None else stamp <= moment
