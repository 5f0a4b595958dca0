"""Write observations for the audit tests as the toolkit writes them, at the moments a test wants."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from tests.support.request_bodies import CLIENT
from toolkit.contract.evidence import KIND_OF, EvidenceType, FileKind, object_key
from toolkit.database.connection import Database
from toolkit.database.tables import (
    bucket_syncs,
    content_checks,
    evidence_observations,
    evidences,
    new_id,
    object_observations,
    sale_observations,
    sales,
    withdrawals,
)
from toolkit.intake.registration import register_client

FIRST = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def day(number: int) -> datetime:
    """Noon of a day of March 2026."""
    return FIRST + timedelta(days=number - 1)


@dataclass
class Story:
    """Writes what happened into a database."""

    database: Database

    def client(self, cpf: str = "52998224725") -> UUID:
        return register_client(self.database, CLIENT | {"cpf": cpf, "lastName": "Souza"}, lambda: FIRST).client_id

    def sale(
        self, sale_id: str = "S-1", *, seen_at: datetime = FIRST, gone_at: datetime | None = None, **values: Any
    ) -> str:
        """A sale as it was seen from ``seen_at`` until ``gone_at``."""
        sale = {
            "utility_group": "A",
            "is_client_financial_responsible": True,
            "client_id": None,
            "partner": None,
            "created_at": FIRST,
            "completed_at": None,
            **values,
        }
        with self.database.transaction() as connection:
            known = connection.scalar(sa.select(sa.func.count()).where(sales.c.id == sale_id))
        if not known:
            self._insert(sales, id=sale_id, **sale)
        self._insert(sale_observations, sale_id=sale_id, seen_at=seen_at, gone_at=gone_at, **sale)
        return sale_id

    def record(
        self,
        sale_id: str,
        evidence_type: str,
        *,
        requested_at: datetime = FIRST,
        lives: timedelta = timedelta(hours=1),
    ) -> tuple[UUID, str]:
        """An evidence record, seen as soon as it was requested: its id, and the key of its object."""
        evidence_id = new_id()
        key = object_key(evidence_id, "file", requested_at)
        record = {
            "sale_id": sale_id,
            "type": "x",
            "evidence_type": evidence_type,
            "object_key": key,
            "requested_at": requested_at,
            "expires_at": requested_at + lives,
        }
        self._insert(evidences, id=evidence_id, file_name="file", file_format="x", requested_by="test", **record)
        self._insert(evidence_observations, evidence_id=evidence_id, seen_at=requested_at, **record)
        return evidence_id, key

    def upload(
        self,
        key: str,
        *,
        seen_at: datetime = FIRST,
        gone_at: datetime | None = None,
        size: int = 1000,
    ) -> int:
        """An object as it was seen in the bucket: the id of the observation."""
        return self._insert(
            object_observations,
            key=key,
            size=size,
            etag="etag",
            last_modified=seen_at,
            seen_at=seen_at,
            gone_at=gone_at,
        )

    def check(self, observation: int, kind: FileKind, *, at: datetime = FIRST, **values: Any) -> None:
        self._insert(content_checks, observation_id=observation, kind=kind, checked_at=at, **values)

    def file(self, sale_id: str, evidence_type: EvidenceType, *, at: datetime = FIRST) -> None:
        """A record with a good file that was examined, all at one moment."""
        _, key = self.record(sale_id, evidence_type, requested_at=at)
        self.check(self.upload(key, seen_at=at), KIND_OF[evidence_type], at=at)

    def withdraw(self, evidence_id: UUID, *, at: datetime) -> None:
        self._insert(
            withdrawals,
            evidence_id=evidence_id,
            reason="sent twice",
            withdrawn_by="ana",
            approved_by="bia",
            withdrawn_at=at,
        )

    def synced(self, at: datetime) -> None:
        self._insert(
            bucket_syncs,
            started_at=at,
            finished_at=at,
            bucket="evidence",
            full_listing=True,
            listed=0,
            appeared=0,
            vanished=0,
        )

    def _insert(self, table: sa.Table, **values: Any) -> Any:
        with self.database.transaction() as connection:
            return connection.execute(sa.insert(table), values).inserted_primary_key[0]
