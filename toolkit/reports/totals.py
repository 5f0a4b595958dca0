"""The totals of an audit, all of them sums over its census."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pandas as pd

from toolkit.contract.codes import CODES
from toolkit.contract.contents import COVERAGES, Coverage
from toolkit.contract.evidence import EvidenceType, UtilityGroup
from toolkit.contract.findings import Problem, Reason, Status, items
from toolkit.contract.rules import GROUP_RULES

COMPLETED_DAYS: Final = 30

MOST: Final = 100
"""Completed sales of a partner that are listed."""

MONTHS: Final = 12
"""Months of which is told what partners did."""

UNKNOWN_GROUP: Final = "unknown"
"""The group in the census that stands for every utility group that the contract does not know."""

UNVERIFIED: Final = 1000
"""Compliant sales on files that are not fully verified, of which this is all that is wrong, that are listed."""

AGE_BANDS: Final = {"0-1": 1, "2-7": 7, "8-30": 30, "31-90": 90}
"""The age of a sale in whole days since it was created: each band, and the last day that belongs to it."""

OLDER: Final = ">90"

ROW_COLUMNS: Final = {
    "saleId": "sale_id",
    "utilityGroup": "utility_group",
    "status": "status",
    "missing": "missing",
    "reasons": "reasons",
    "problems": "problems",
    "counted": "counted",
    "isClientFinancialResponsible": "is_client_financial_responsible",
    "partner": "partner",
    "clientId": "client_id",
    "cpf": "cpf",
    "createdAt": "created_at",
    "ageDays": "age_days",
    "completedAt": "completed_at",
    "oldestRequest": "oldest_request",
    "unexamined": "unexamined",
    **{str(coverage): column for coverage, column in COVERAGES.items()},
}
"""The columns of a sale under the contract's names, and what the expression calls them."""

OF_FINDINGS: Final = ("dueAt", "overdue", "open", "critical", "waived", "owners")
"""The findings of a sale in columns: the next deadline, their numbers, and who has to act on the open ones."""

FEW: Final = ("utilityGroup", "status", "missing", "reasons", "problems", "counted", "partner")
"""The columns with few distinct values: each is stored once, as a category, for there may be millions of sales."""


@dataclass(frozen=True, eq=False)
class Totals:
    """The numbers of sales and files.

    The tables count sales. Those that are *open* are not compliant: they wait for somebody to act.
    """

    counts: pd.DataFrame
    """The census: one row a combination."""
    open_by_age: pd.DataFrame
    """The open sales by age: ``status``, ``partner``, ``band``, ``sales``."""

    @cached_property
    def sales(self) -> int:
        """All sales."""
        return sum(row.sales for row in self.census)

    @cached_property
    def compliant(self) -> int:
        """Sales with all the evidence that they need."""
        return self._with_status(Status.COMPLIANT)

    @cached_property
    def incomplete(self) -> int:
        """Sales that lack evidence."""
        return self._with_status(Status.INCOMPLETE)

    @cached_property
    def conflict(self) -> int:
        """Sales whose evidence contradicts the rules."""
        return self._with_status(Status.CONFLICT)

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
    def without_client(self) -> int:
        """Sales that name no client."""
        return sum(row.sales for row in self.census if not row.has_client)

    @cached_property
    def unexamined(self) -> int:
        """Files that count although nobody has looked into them yet."""
        return sum(row.unexamined for row in self.census)

    @cached_property
    def coverage(self) -> dict[Coverage, int]:
        """The counted files by the depth to which they were looked at."""
        return {each: sum(getattr(row, column) for row in self.census) for each, column in COVERAGES.items()}

    @cached_property
    def compliant_verified(self) -> int:
        """Compliant sales of which every counted file was verified; the others are so on first bytes only."""
        return sum(row.sales for row in self.census if row.status == Status.COMPLIANT and row.fully_verified)

    @cached_property
    def by_group(self) -> pd.DataFrame:
        """Sales by ``utilityGroup``, one column a ``Status``; all groups that the contract lacks are one row."""
        found = Counter[tuple[str, str]]()
        for row in self.census:
            found[row.utility_group, row.status] += row.sales
        unknown = [UNKNOWN_GROUP] if any(group == UNKNOWN_GROUP for group, _ in found) else []
        return _grid(found, "utilityGroup", [*UtilityGroup, *unknown], list(Status))

    @cached_property
    def missing(self) -> pd.DataFrame:
        """Sales that lack each ``evidenceType``, one column a ``Reason``."""
        found = Counter[tuple[str, str]]()
        for row in self.census:
            for piece in zip(items(row.missing), items(row.reasons), strict=True):
                found[piece] += row.sales
        demanded = {requirement.named for rules in GROUP_RULES.values() for requirement in rules}
        return _grid(found, "evidenceType", [each for each in EvidenceType if each in demanded], list(Reason))

    @property
    def pieces(self) -> int:
        """The pieces that are missing."""
        return int(self.missing[list(Reason)].to_numpy().sum())

    @cached_property
    def problems(self) -> pd.DataFrame:
        """Sales with each problem, gravest first: ``problem``, ``severity``, ``sales``."""
        found = Counter[str]()
        for row in self.census:
            for problem in items(row.problems):
                found[problem] += row.sales
        rows = [(each.value, str(CODES[each].severity), found[each]) for each in Problem]
        return pd.DataFrame(rows, columns=["problem", "severity", "sales"])

    @cached_property
    def ages(self) -> pd.DataFrame:
        """Open sales by ``ageDays``, a band of days since they were created: ``incomplete`` and ``conflict``."""
        found = Counter[tuple[str, str]]()
        for status, band, sales in self.open_by_age[["status", "band", "sales"]].itertuples(
            index=False, name=None
        ):
            found[band, status] += sales
        return _grid(found, "ageDays", [*AGE_BANDS, OLDER], [Status.INCOMPLETE, Status.CONFLICT])

    def _with_status(self, status: Status) -> int:
        return sum(row.sales for row in self.census if row.status == status)

    @cached_property
    def census(self) -> list[Any]:
        """The rows of ``counts``."""
        return list(self.counts.itertuples(index=False))


def _grid(found: Counter[tuple[str, str]], name: str, rows: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """Return every row with every column, also where nothing was found."""
    return pd.DataFrame(
        [{name: str(row), **{str(column): found[row, column] for column in columns}} for row in rows]
    )
