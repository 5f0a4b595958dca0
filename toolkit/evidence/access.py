"""Decide on access: the partners that subjects of tokens act for, and tokens revoked before they expire."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Row

from toolkit.contract.deadlines import Clock
from toolkit.contract.people import NAME_MAX, is_plain_name
from toolkit.database.connection import Database
from toolkit.database.tables import partner_subjects, token_revocations
from toolkit.errors import InvalidInput


def add_subject(database: Database, partner: str, subject: str, *, added_by: str, clock: Clock) -> bool:
    """Let ``subject`` act for ``partner`` from now on; ``False`` where it does so already.

    Raises:
        InvalidInput: it acts for another partner, or a name cannot be used.
    """
    for what, name in (("partner", partner), ("subject", subject)):
        if not is_plain_name(name):
            raise InvalidInput("The {} must be plain text of 1 to {} characters.", what, NAME_MAX)
    row = {"subject": subject, "partner": partner, "added_at": clock(), "added_by": added_by}
    with database.transaction() as connection:
        added = connection.execute(_ADD, row).first() is not None
        acts_for: str = connection.execute(
            sa.select(partner_subjects.c.partner).where(_is_current, partner_subjects.c.subject == subject)
        ).scalar_one()
    if acts_for != partner:
        raise InvalidInput(
            "The subject acts for another partner, {}. First: toolkit partner revoke --subject SUBJECT", acts_for
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
    """  # made of the name of our table
)


@dataclass(frozen=True, slots=True)
class Revocation:
    """One token by its id, or all tokens that a subject was issued until ``revoked_at``."""

    token_id: str | None
    subject: str | None
    reason: str
    revoked_at: datetime
    revoked_by: str


@dataclass(frozen=True, slots=True)
class RevokedTokens:
    """All revocations, indexed by token and by subject."""

    token_ids: frozenset[str] = frozenset()
    subjects: Mapping[str, float] = field(default_factory=dict)
    """For each subject the last moment until which its tokens are refused, in seconds since 1970."""

    def hold(self, token_id: str | None, subject: str, issued: float | None) -> bool:
        """Tell whether a token is revoked; of a revoked subject, one that does not claim its age is."""
        if token_id in self.token_ids:
            return True
        until = self.subjects.get(subject)
        return until is not None and (issued is None or issued <= until)


def revocations(database: Database) -> list[Revocation]:
    """Return all revocations, the oldest first, whatever the clock did between them."""
    columns = token_revocations.c
    query = sa.select(*columns["token_id", "subject", "reason", "revoked_at", "revoked_by"])
    with database.transaction() as connection:
        return [Revocation(*row) for row in connection.execute(query.order_by(columns.revoked_at, columns.id))]


def revoked_tokens(database: Database) -> RevokedTokens:
    """Return all revocations, made for asking fast."""
    found = revocations(database)
    return RevokedTokens(
        frozenset(each.token_id for each in found if each.token_id is not None),
        # The newest of a subject comes last.
        {each.subject: each.revoked_at.timestamp() for each in found if each.subject is not None},
    )


def add_revocation(database: Database, revocation: Revocation) -> None:
    """Refuse what the revocation names from now on; tokens that are issued later are valid.

    Raises:
        InvalidInput: no token can have such an id or subject.
    """
    if not is_plain_name(revocation.token_id or revocation.subject or ""):
        raise InvalidInput("The id or subject must be plain text of 1 to {} characters.", NAME_MAX)
    with database.transaction() as connection:
        connection.execute(sa.insert(token_revocations), asdict(revocation))
