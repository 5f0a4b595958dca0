"""The numbers and lists of an audit, of all partners or of one: values that were read once, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import Any, Final

import pandas as pd
import pyarrow as pa
from pydantic.alias_generators import to_camel

from toolkit.audit.changes import BETWEEN, CHANGED, KINDS, FindingChanges
from toolkit.audit.folder import AuditFacts
from toolkit.contract.codes import CODES, SALE_GONE, Subject
from toolkit.contract.contents import COVERAGES, Coverage, IntegrityProblem
from toolkit.contract.findings import STANDING, FindingStatus, Problem, Reason, Status
from toolkit.contract.waivers import Waiver

ENDS_SOON: Final = 14  # days before the end of a waiver in which reports warn of it

COMPLETED_DAYS: Final = 30

MOST: Final = 100  # completed sales of a partner that are listed
MONTHS: Final = 12  # months of which is told what partners did

UNKNOWN_GROUP: Final = "unknown"
"""The group in the census that stands for every utility group that the contract does not know."""

AGE_BANDS: Final = {"0-1": 1, "2-7": 7, "8-30": 30, "31-90": 90}
"""The age of a sale in whole days since it was created: each band, and the last day that belongs to it."""

OLDER: Final = ">90"

ROW_COLUMNS: Final = {
    to_camel(name): name
    for name in (
        *("sale_id", "utility_group", "status", "missing", "reasons", "problems", "counted"),
        *("is_client_financial_responsible", "partner", "client_id", "cpf", "created_at", "age_days"),
        *("completed_at", "oldest_request", "unexamined", *COVERAGES.values()),
    )
}
"""The columns of a sale under the contract's names, and what the expression calls them."""

OF_FINDINGS: Final = ("dueAt", "overdue", "open", "critical", "waived", "owners")
"""The findings of a sale in columns: the next deadline, their numbers, and who has to act on the open ones."""

_RARE: Final = (Reason.VANISHED, Reason.EXPIRY_UNKNOWN, Reason.WITHDRAWN, Reason.TYPE_UNKNOWN)
"""The reasons that are shown only where they occur."""

FEW: Final = ("utilityGroup", "status", "missing", "reasons", "problems", "counted", "partner")
"""The columns with few distinct values: each is stored once, as a category, for there may be millions of sales."""

_QUESTIONS: Final = ("partner", "question", "drawn", "lookedAt", "failed", "share", "low", "high")
_AGREEMENT: Final = ("question", "reviewer", "compared", "agreed", "kappa")


@dataclass(frozen=True, eq=False)
class Reviews:
    """The looks of people at files, of all partners or of one."""

    files: int = 0
    """Counted files."""
    drawn: int = 0
    """Files of samples, in the versions that were drawn."""
    looked_at: int = 0
    """Counted files of which the version that lies there was looked at."""
    failed: int = 0
    """Those of them that failed."""
    accepted: int = 0
    """Those of them that passed, and whose acceptance has not ended."""
    questions: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=_QUESTIONS))
    """One row a ``partner`` and ``question``, null for all of them: ``drawn`` files, those ``lookedAt`` and
    ``failed``; the ``share`` of these from 0 to 1, and the interval from ``low`` to ``high``."""
    agreement: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=_AGREEMENT))
    """One row a ``question`` and ``reviewer``: files ``compared``, the share ``agreed``, and Cohen's ``kappa``."""


@dataclass(frozen=True, eq=False)
class Audited:
    """All sales judged as of one moment, or those of one partner.

    The tables of totals count sales. Those that are *open* are not compliant: they wait for somebody to act.
    """

    sales: int
    """All sales."""
    compliant: int
    """Sales with all the evidence that they need."""
    incomplete: int
    """Sales that lack evidence."""
    conflict: int
    """Sales whose evidence contradicts the rules."""
    without_client: int
    """Sales that name no client."""
    unexamined: int
    """Files that count although nobody has looked into them yet."""
    compliant_verified: int
    """Compliant sales of which every counted file was verified; the others are so on first bytes only."""
    compliant_not_completed: int
    """Compliant sales that nobody has completed yet."""
    coverage: dict[Coverage, int]
    """The counted files by the depth to which they were looked at."""
    by_group: pd.DataFrame
    """Sales by ``utilityGroup``, one column a ``Status``; all groups that the contract lacks are one row."""
    missing: pd.DataFrame
    """Sales that lack each ``evidenceType``, one column a ``Reason``."""
    problems: pd.DataFrame
    """Sales with each problem, gravest first: ``problem``, ``severity``, ``sales``."""
    ages: pd.DataFrame
    """Open sales by ``ageDays``, a band of days since they were created: ``incomplete`` and ``conflict``."""
    facts: AuditFacts
    listed: pd.DataFrame
    """The sales behind the numbers, columns as in ``ROW_COLUMNS`` and ``OF_FINDINGS``: first those that are not
    compliant, the gravest and oldest first, then compliant ones with a warning or a finding, or on files not fully
    verified."""
    findings: pd.DataFrame
    """One row a finding with its history and its ``change`` since an earlier audit, that of
    ``facts.changes_since``; resolved ones come last."""
    trend: pd.DataFrame
    """The last days: ``day``, ``present``, ``came``, ``went``."""
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
    file_findings: list[dict[str, Any]]
    """The findings about the files themselves, gravest first: ``problem``, ``saleIds``, ``evidenceIds``, the
    ``folders`` of the files, and a ``detail`` in words."""
    faults: pd.DataFrame
    """The unusable files, the latest first."""
    withdrawals: pd.DataFrame
    """The withdrawn records with reason and people, the latest first."""
    completed: pd.DataFrame
    """The sales that were completed lately, each with its ``status`` now."""
    reviews: Reviews
    """The reviews of files by people."""
    records: pa.Table
    """The records of the first sales, as a page has them, those of a sale in the order of their requests."""
    events: pa.Table
    """Their events: those of a sale in the order of time."""
    today: date
    """The day of the audit, in the zone of its deadlines."""
    partner: str | None = None
    """The partner that everything is restricted to, ``None`` where it is not."""
    cpf_shown: bool = False
    """True if CPFs are whole instead of masked."""

    @property
    def open(self) -> int:
        """Sales that are not compliant."""
        return self.incomplete + self.conflict

    @property
    def completed_without_evidence(self) -> int:
        """Open sales that are marked as completed, the gravest finding."""
        problems = self.problems.set_index("problem")["sales"]
        return int(problems[Problem.COMPLETED_WITHOUT_EVIDENCE])

    @cached_property
    def missing_shown(self) -> pd.DataFrame:
        """The same without the rare reasons, where they do not occur."""
        return self.missing.drop(columns=[reason for reason in _RARE if not self.missing[reason].any()])

    @property
    def pieces(self) -> int:
        """The pieces that are missing."""
        return int(self.missing[list(Reason)].to_numpy().sum())

    @cached_property
    def rows(self) -> pd.DataFrame:
        """One row a sale that is not compliant, the gravest and oldest first."""
        return self.listed.iloc[: (self.listed["status"] != Status.COMPLIANT).sum()]

    @cached_property
    def warned(self) -> pd.DataFrame:
        """One row a compliant sale with a warning."""
        return self._compliant((self.listed["problems"] != "") | self.listed["clientId"].isna())

    @cached_property
    def unverified(self) -> pd.DataFrame:
        """The first compliant sales on files that are not fully verified."""
        return self._compliant(self.listed[[*map(str, COVERAGES)]].sum(axis=1) > self.listed[Coverage.VERIFIED])

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
        return bool(self.facts.source.service_changes) or bool((of_service & standing).any())

    @cached_property
    def compliant_on_replaced(self) -> int:
        """Compliant sales with a file that was replaced after it had been seen."""
        about = IntegrityProblem.OVERWRITTEN
        replaced = [each["saleIds"] for each in self.file_findings if each["problem"] == about]
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
        changes = self.findings[["partner", "change"]].astype(object).fillna("")
        counts = pd.crosstab(changes["partner"], changes["change"]).reindex(columns=kinds, fill_value=0)
        moved = counts[kinds[:-1]].sum(axis=1)
        order = moved[moved > 0].sort_values(ascending=False, kind="stable").index
        return counts.loc[order].rename_axis(index="partner", columns=None).reset_index()

    def since(self, changes: FindingChanges) -> Audited:
        """Return the same, compared with the audits of an earlier moment instead of the audit before."""
        change = self.findings["id"].map(changes.findings["change"]).astype("category")
        facts = replace(self.facts, changes_since=changes.start)
        return replace(self, facts=facts, findings=self.findings.assign(change=change))

    @property
    def finding_counts(self) -> dict[str, int]:
        """Findings by status, and ``overdue`` ones."""
        found = self.findings["status"].value_counts()
        overdue = int(self.findings["overdue"].sum())
        return {str(each): int(found.get(str(each), 0)) for each in FindingStatus} | {"overdue": overdue}

    def _compliant(self, wanted: pd.Series[bool]) -> pd.DataFrame:
        return self.listed[wanted & (self.listed["status"] == Status.COMPLIANT)].reset_index(drop=True)
