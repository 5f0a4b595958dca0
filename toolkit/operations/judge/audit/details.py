"""Query the rows behind the numbers of an audit: unusable files with their faults, and withdrawn records."""

from datetime import datetime
from typing import Final

import pandas as pd
import sqlalchemy as sa

from toolkit.domain.codes import KindFault
from toolkit.domain.evidence import KIND_OF, EvidenceType
from toolkit.storage.reader import Place, Reader
from toolkit.storage.tables import (
    content_checks,
    evidence_observations,
    object_observations,
    sale_observations,
    withdrawals,
)

FAULTS: Final = (
    "saleId",
    "partner",
    "evidenceId",
    "evidenceType",
    "code",
    "since",
    "size",
    "seconds",
    "pages",
    "mediaType",
    "sha256",
)
"""The columns of a table of unusable files; ``code`` is a fault of ``toolkit.domain.codes``."""

WITHDRAWN: Final = (
    "saleId",
    "partner",
    "evidenceId",
    "evidenceType",
    "reason",
    "withdrawnBy",
    "approvedBy",
    "withdrawnAt",
)
"""The columns of a table of withdrawn records."""


OF_ANY_RECORD: Final = sa.true()

OF_SALES: Final = sale_observations.c.sale_id.is_not(None)
"""Leaves out the files of records that name none of the sales."""


def faults_at(place: Place, moment: datetime, which: sa.ColumnElement[bool] = OF_SALES) -> pd.DataFrame:
    """Return the unusable files that lay in the bucket under a record that was not withdrawn, the latest first."""
    with place.snapshot() as connection:
        return faults_seen(connection, moment, which)


def faults_seen(connection: Reader, moment: datetime, which: sa.ColumnElement[bool]) -> pd.DataFrame:
    """Return the same, as this connection sees the database."""
    record, seen, sale = evidence_observations, object_observations, sale_observations
    check, looked = content_checks, content_checks.alias("looked")
    known = sa.and_(looked.c.observation_id == seen.c.id, looked.c.checked_at <= moment)
    latest = sa.select(looked).where(known).order_by(looked.c.id.desc()).limit(1).lateral("latest")
    first = (
        sa.select(looked.c.problem, looked.c.checked_at)
        .where(known, looked.c.problem.is_not(None))
        .order_by(looked.c.id)
        .limit(1)
        .lateral("first_fault")
    )
    demanded = sa.case({each.value: kind.value for each, kind in KIND_OF.items()}, value=record.c.evidence_type)
    since = sa.func.coalesce(first.c.checked_at, latest.c.checked_at)
    query = (
        sa.select(
            record.c.sale_id,
            sale.c.partner,
            record.c.evidence_id,
            record.c.evidence_type,
            sa.func.coalesce(first.c.problem, str(KindFault.WRONG_KIND)),
            since,
            seen.c.size,
            latest.c.seconds,
            latest.c.pages,
            latest.c.media_type,
            latest.c.sha256,
        )
        .distinct()
        .select_from(check)
        .join(seen, seen.c.id == check.c.observation_id)
        .join(record, sa.collate(seen.c.key, "C") == record.c.object_key)  # as it is indexed
        .join(latest, sa.true())
        .outerjoin(first, sa.true())
        .outerjoin(sale, sa.and_(sale.c.sale_id == record.c.sale_id, _held(sale, moment)))
        .where(
            which,
            _held(record, moment),
            _held(seen, moment),
            record.c.evidence_type.in_(list(EvidenceType)),
            check.c.checked_at <= moment,
            sa.or_(check.c.problem.is_not(None), check.c.kind != demanded),
            sa.or_(first.c.problem.is_not(None), latest.c.kind != demanded),
            ~_withdrawn(record, moment),
        )
        .order_by(since.desc(), record.c.sale_id, record.c.evidence_id)
    )
    return _frame(connection, query, FAULTS)


def withdrawals_at(place: Place, moment: datetime) -> pd.DataFrame:
    """Return the records that had been withdrawn by then, the latest first, with the reason and both people."""
    record, sale = evidence_observations, sale_observations
    query = (
        sa.select(
            record.c.sale_id,
            sale.c.partner,
            record.c.evidence_id,
            record.c.evidence_type,
            withdrawals.c.reason,
            withdrawals.c.withdrawn_by,
            withdrawals.c.approved_by,
            withdrawals.c.withdrawn_at,
        )
        .join(record, record.c.evidence_id == withdrawals.c.evidence_id)
        .outerjoin(sale, sa.and_(sale.c.sale_id == record.c.sale_id, _held(sale, moment)))
        .where(withdrawals.c.withdrawn_at <= moment, _held(record, moment))
        .order_by(withdrawals.c.withdrawn_at.desc(), record.c.evidence_id)
    )
    with place.snapshot() as connection:
        return _frame(connection, query, WITHDRAWN)


def _held(observations: sa.Table, moment: datetime) -> sa.ColumnElement[bool]:
    gone_at = observations.c.gone_at
    return sa.and_(observations.c.seen_at <= moment, sa.or_(gone_at.is_(None), gone_at > moment))


def _withdrawn(record: sa.Table, moment: datetime) -> sa.ColumnElement[bool]:
    return sa.exists().where(
        withdrawals.c.evidence_id == record.c.evidence_id, withdrawals.c.withdrawn_at <= moment
    )


def _frame(connection: Reader, query: sa.Select[tuple[object, ...]], columns: tuple[str, ...]) -> pd.DataFrame:
    return pd.DataFrame(connection.execute(query).all(), columns=list(columns), dtype=object)
