"""The numbers and lists of an audit, of all partners or of one: values that were read once, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property
from typing import Final

import pandas as pd
import pyarrow as pa

from toolkit.audit.changes import BETWEEN, CHANGED, KINDS, FindingChanges
from toolkit.audit.source import Looks, Source
from toolkit.contract.codes import CODES, SALE_GONE, Subject
from toolkit.contract.contents import COVERAGES, Coverage, IntegrityFinding, IntegrityProblem
from toolkit.contract.findings import STANDING, FindingStatus, Status
from toolkit.contract.waivers import Waiver
from toolkit.reports.reviews import Reviews
from toolkit.reports.totals import Totals

CASES: Final = 20_000
"""The sales whose records and time lines are read, the gravest and oldest ones."""

ENDS_SOON: Final = 14
"""Days before the end of a waiver in which reports warn of it."""


@dataclass(frozen=True, eq=False)
class Audited(Totals):
    """All sales judged as of one moment, or those of one partner."""

    as_of: datetime
    made_at: datetime
    source: Source
    told: pd.DataFrame
    """The sales behind the numbers, columns as in ``ROW_COLUMNS`` and ``OF_FINDINGS``: first those that are not
    compliant, the gravest and oldest first, then compliant ones with a warning or a finding, or on files not fully
    verified."""
    findings: pd.DataFrame
    """One row a finding with its history and its ``change`` since an earlier audit; resolved ones come last."""
    changes_since: datetime | None
    """The moment of that audit, the one before where nobody chose another; ``None`` where there is none."""
    trends: pd.DataFrame
    """The last days: ``partner``, ``day``, ``present``, ``came``, ``went``."""
    partners: pd.DataFrame
    """The scoreboard: one row a ``partner``, those with the most overdue findings first.

    ``sales``, ``compliant``, ``incomplete``, ``conflict``; ``findings`` (open and reopened), ``overdue``,
    ``waived``; ``trend``, the findings that it has more than when the trend began; ``medianDays`` from
    creation to completion of its completed sales, null where there are none."""
    partner_months: pd.DataFrame
    """The work of partners on their findings, by the ``month`` in which these came, the latest first.

    ``partner``; ``findings``, those ``told``, ``answered`` and ``mended``, those ``stillOpen``; ``medianDays``,
    business days until an audit saw a finding mended; ``lateUntold``, those whose deadline
    passed while nobody had told the partner."""
    waivers: tuple[Waiver, ...]
    """The waivers that hold on the day of the audit."""
    file_findings: tuple[IntegrityFinding, ...]
    """The findings about the files themselves, gravest first."""
    faults: pd.DataFrame
    """The unusable files, the latest first."""
    withdrawals: pd.DataFrame
    """The withdrawn records with reason and people, the latest first."""
    completed: pd.DataFrame
    """The sales that were completed lately, each with its ``status`` now."""
    reviews: Reviews
    """The reviews of files by people."""
    records: pa.Table
    """The evidence records of the first ``CASES`` sales, those of a sale in the order of their requests."""
    events: pa.Table
    """Their events: those of a sale in the order of time."""
    today: date
    """The day of the audit, in the zone of its deadlines."""
    partner: str | None = None
    """The partner that everything is restricted to, ``None`` where it is not."""
    of_now: bool = True
    """True for an audit of now; one of the past only reads."""
    verified_first: bool | None = None
    """True where the contents of new files were verified before an audit of now."""
    looks: Looks = field(default_factory=Looks)
    """The counted files by what they were looked at with."""
    cpf_shown: bool = False
    """True if CPFs are whole instead of masked."""

    @cached_property
    def rows(self) -> pd.DataFrame:
        """One row a sale that is not compliant, the gravest and oldest first."""
        return self.told.iloc[: (self.told["status"] != Status.COMPLIANT).sum()]

    @cached_property
    def warned(self) -> pd.DataFrame:
        """One row a compliant sale with a warning."""
        return self._compliant((self.told["problems"] != "") | self.told["clientId"].isna())

    @cached_property
    def unverified(self) -> pd.DataFrame:
        """The first compliant sales on files that are not fully verified."""
        return self._compliant(self.told[[*map(str, COVERAGES)]].sum(axis=1) > self.told[Coverage.VERIFIED])

    @property
    def oldest(self) -> int:
        """Days since the oldest open sale was created."""
        return int(self.rows["ageDays"].max()) if self.open else 0

    @property
    def service_is_odd(self) -> bool:
        """Tell whether the service is read otherwise than before, or rows that cannot be used became many."""
        of_service = self.findings["code"].isin(
            [code for code, each in CODES.items() if each.subject is Subject.SERVICE]
        )
        standing = self.findings["status"].isin(STANDING)
        return bool(self.source.service_changes) or bool((of_service & standing).any())

    @cached_property
    def compliant_on_replaced(self) -> int:
        """Compliant sales with a file that was replaced after it had been seen."""
        replaced = [each.sale_ids for each in self.file_findings if each.problem is IntegrityProblem.OVERWRITTEN]
        return len(set().union(*replaced).difference(self.rows["saleId"])) if replaced else 0

    @cached_property
    def changed(self) -> dict[str, list[str]]:
        """The ids of the findings that are new, resolved or reopened since the audit before, or came and went."""
        changes = self.findings["change"]
        return {kind: sorted(self.findings.loc[changes == kind, "id"]) for kind in (*CHANGED, BETWEEN)}

    @property
    def change_counts(self) -> dict[str, int]:
        """The number of findings by what happened since the audit before.

        Of the resolved ones, ``saleGone`` were mended by nobody: their sale was gone when an audit looked.
        """
        changes = self.findings["change"]
        gone = (changes == "resolved") & (self.findings["reason"] == SALE_GONE)
        return {kind: int((changes == kind).sum()) for kind in (*KINDS, BETWEEN)} | {"saleGone": int(gone.sum())}

    @cached_property
    def changes_by_partner(self) -> pd.DataFrame:
        """The same numbers, one row a ``partner`` of which a finding came or went, those with the most first."""
        kinds = [*CHANGED, BETWEEN, *KINDS[len(CHANGED) :]]
        told = self.findings[["partner", "change"]].astype(object).fillna("")
        counts = pd.crosstab(told["partner"], told["change"]).reindex(columns=kinds, fill_value=0)
        moved = counts[kinds[:-1]].sum(axis=1)
        order = moved[moved > 0].sort_values(ascending=False, kind="stable").index
        return counts.loc[order].rename_axis(index="partner", columns=None).reset_index()

    def since(self, changes: FindingChanges) -> Audited:
        """Return the same, compared with the audits of an earlier moment instead of the audit before."""
        change = self.findings["id"].map(changes.findings["change"]).astype("category")
        return replace(self, changes_since=changes.start, findings=self.findings.assign(change=change))

    @property
    def finding_counts(self) -> dict[str, int]:
        """Findings by status, and ``overdue`` ones."""
        found = self.findings["status"].value_counts()
        overdue = int(self.findings["overdue"].sum())
        return {str(each): int(found.get(str(each), 0)) for each in FindingStatus} | {"overdue": overdue}

    @cached_property
    def trend(self) -> pd.DataFrame:
        """The last days, all partners together: ``day``, ``present``, ``came``, ``went``."""
        counts = self.trends[["day", "present", "came", "went"]]
        return counts.groupby("day", as_index=False, sort=True).sum()

    def _compliant(self, wanted: pd.Series[bool]) -> pd.DataFrame:
        return self.told[wanted & (self.told["status"] == Status.COMPLIANT)].reset_index(drop=True)
