"""Collect everything about one sale: rule, records with files, missing pieces, findings and time line.

What is missing is judged now, by what was last seen; findings are those of the last audit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from sqlalchemy import Row

from toolkit.audit.findings import findings_of_sale
from toolkit.audit.folder import Audit, LastSync
from toolkit.audit.observe_bucket import last_sync
from toolkit.audit.reviews import looks_at
from toolkit.audit.waivers import waivers_at
from toolkit.contract.codes import CODES, WITHOUT_CLIENT, missing_code
from toolkit.contract.findings import Verdict
from toolkit.contract.rules import Evidence, Requirement, Sale, evaluate, requirements
from toolkit.contract.waivers import Waiver
from toolkit.database.connection import Database
from toolkit.database.observation_clock import latest
from toolkit.evidence.access import one_sale
from toolkit.evidence.records import EvidenceRecord, TimeLine, records_seen, time_line


@dataclass(frozen=True, eq=False)
class SaleCase:
    """One sale as it stands now, by what was last seen of the bucket."""

    sale_id: str
    sale: Row[Any]
    """The sale as the service has it."""
    last_sync: LastSync | None
    """The last reading of the bucket, ``None`` where it was never read."""
    verdict: Verdict
    rule: tuple[Requirement, ...]
    """The requirements of its utility group, empty where the group is unknown."""
    records: tuple[EvidenceRecord, ...]
    findings: pd.DataFrame
    """Those of the last audit with their lives, see ``toolkit.audit.findings.as_listed``; also resolved ones."""
    waivers: tuple[Waiver, ...]
    """Those that waive one of its findings."""
    timeline: TimeLine
    looks: Sequence[Row[Any]]
    """The looks of people at its files, oldest first, see ``toolkit.audit.reviews.looks_at``."""

    @property
    def next_steps(self) -> dict[str, str]:
        """The remedy of each code that keeps the sale from being compliant."""
        nobody = [WITHOUT_CLIENT] if self.sale.client_id is None else []
        return {
            **{each: CODES[each].remedy for each in self.verdict.problems},
            **{missing_code(each.evidence_type): CODES[each.reason].remedy for each in self.verdict.missing},
            **{each: CODES[each].remedy for each in nobody},
        }


def sale_case(database: Database, sale_id: str, *, audit: Audit | None = None) -> SaleCase:
    """Collect everything that is known of one sale; neither the service nor the bucket is observed again.

    ``audit`` is the last one, which its findings are taken from.

    Raises:
        SaleNotFound: the service has no sale with this id.
    """
    findings = findings_of_sale(audit, sale_id)
    with database.snapshot() as connection:
        now = latest(connection)
        sale = one_sale(connection, None, sale_id)
        records = records_seen(connection, sale_id, now)
        judged = Sale(sale.utility_group, sale.is_client_financial_responsible, sale.completed_at is not None)
        verdict = evaluate(judged, [Evidence(record.evidence_type, record.state) for record in records])
        waived = set(findings["waiverId"].dropna())
        waivers = tuple(each for each in waivers_at(connection, now) if str(each.id) in waived)
        timeline = time_line(connection, sale_id, {each.id: each.object_key for each in records})
        return SaleCase(
            sale_id,
            sale,
            last_sync(connection, now),
            verdict,
            requirements(judged),
            tuple(records),
            findings,
            waivers,
            timeline,
            looks_at(connection, sale_id),
        )
