"""Keep the table of the partners that subjects act for, for tokens that name no partner."""

from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Row

from toolkit.domain.partners import NAME_MAX, is_plain_name
from toolkit.errors import InvalidInput
from toolkit.operations import Clock
from toolkit.storage.database import Database
from toolkit.storage.tables import partner_subjects


def add_subject(database: Database, partner: str, subject: str, *, added_by: str, clock: Clock) -> bool:
    """Let ``subject`` act for ``partner`` from now on; ``False`` where it does so already.

    Raises:
        InvalidInput: it acts for another partner, or a name cannot be used.
    """
    for what, name in (("partner", partner), ("subject", subject)):
        if not is_plain_name(name):
            raise InvalidInput(f"The {what} must be plain text of 1 to {NAME_MAX} characters.")
    row = {"subject": subject, "partner": partner, "added_at": clock(), "added_by": added_by}
    with database.transaction() as connection:
        added = connection.execute(_ADD, row).first() is not None
        acts_for: str = connection.execute(
            sa.select(partner_subjects.c.partner).where(_is_current, partner_subjects.c.subject == subject)
        ).scalar_one()
    if acts_for != partner:
        raise InvalidInput(
            f"The subject acts for another partner, {acts_for}. First: toolkit partner revoke --subject SUBJECT"
        )
    return added


def revoke_subject(database: Database, subject: str, *, revoked_by: str, clock: Clock) -> str:
    """Let ``subject`` act for nobody any more; return the partner that it acted for.

    Raises:
        InvalidInput: the subject acts for no partner of the table.
    """
    query = (
        sa.update(partner_subjects)
        .where(_is_current, partner_subjects.c.subject == subject)
        .values(revoked_at=clock(), revoked_by=revoked_by)
        .returning(partner_subjects.c.partner)
    )
    with database.transaction() as connection:
        partner: str | None = connection.execute(query).scalar_one_or_none()
    if partner is None:
        raise InvalidInput("This subject acts for no partner of the table. See: toolkit partner list")
    return partner


def partner_subjects_of(database: Database, *, with_revoked: bool = False) -> Sequence[Row[Any]]:
    """Return the rows of the table, by partner and subject, the oldest first."""
    columns = partner_subjects.c
    query = sa.select(partner_subjects).order_by(columns.partner, columns.subject, columns.id)
    with database.transaction() as connection:
        return connection.execute(query if with_revoked else query.where(_is_current)).all()


_is_current: Final = partner_subjects.c.revoked_at.is_(None)

_ADD: Final = sa.text(
    f"""
    INSERT INTO {partner_subjects} (subject, partner, added_at, added_by)
    VALUES (:subject, :partner, :added_at, :added_by)
    ON CONFLICT (subject) WHERE revoked_at IS NULL DO NOTHING
    RETURNING subject
    """  # noqa: S608  # made of the name of our table
)
