"""The result of an audit: the totals, and one row for each sale that is not compliant."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Final, Self

import pandas as pd

from toolkit.domain.codes import CODES
from toolkit.domain.contents import Coverage
from toolkit.domain.evidence import EvidenceType, UtilityGroup
from toolkit.domain.finding_life import FindingStatus, file_finding_ids
from toolkit.domain.findings import Problem, Reason, Status
from toolkit.domain.integrity import IntegrityFinding, IntegrityProblem
from toolkit.domain.report_cells import items
from toolkit.domain.rules import GROUP_RULES
from toolkit.errors import InvalidInput, NothingEvaluated
from toolkit.operations.judge.audit.census import AGE_BANDS, OLDER, UNKNOWN_GROUP
from toolkit.operations.judge.audit.expression import COVERAGES
from toolkit.operations.judge.audit.life import Life
from toolkit.operations.judge.audit.sale_evidence import ReadEvidence
from toolkit.operations.judge.audit.source import Source
from toolkit.operations.verify.contents.verification import Verified

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
"""The columns of ``AuditResult.rows`` under the contract's names, and what the expression calls them."""

FEW: Final = ("utilityGroup", "status", "missing", "reasons", "problems", "counted", "partner")
"""The columns with few distinct values: each is stored once, as a category, for there may be millions of sales."""

_NO_SALES: Final = (
    "Nothing was evaluated: there is no sale in the service's table, or none that this database user may see. "
    "Check DATABASE_URL, row level security and the service map; sales come into an embedded database by: "
    "toolkit sales load"
)


@dataclass(frozen=True, eq=False)
class AuditResult:
    """All sales judged as of one moment.

    The tables count sales. Those that are *open* are not compliant: they wait for somebody to act.
    """

    as_of: datetime
    made_at: datetime
    source: Source
    counts: pd.DataFrame
    """The census: one row a combination, see ``toolkit.operations.judge.audit.census``."""
    open_by_age: pd.DataFrame
    """The open sales by age, see ``toolkit.operations.judge.audit.census.by_age``."""
    read_rows: Callable[[], pd.DataFrame]
    """Reads ``told``, of all partners; as of the moment, whenever it is asked for."""
    life: Life
    """The findings with their lives, what changed, the trend and the waivers."""
    read_faults: Callable[[], pd.DataFrame]
    """Reads ``faults`` likewise."""
    read_withdrawals: Callable[[], pd.DataFrame]
    """Reads ``withdrawals`` likewise."""
    read_completions: Callable[[], pd.DataFrame]
    """Reads ``completions`` likewise."""
    read_completed: Callable[[], pd.DataFrame]
    """Reads the sales of ``completed`` likewise."""
    read_evidence: ReadEvidence
    """Reads the records of sales with their files, and the time lines, likewise."""
    partner: str | None = None
    """The partner that everything is restricted to, ``None`` where it is not."""
    of_now: bool = True
    """True for an audit of now, which is noted; one of the past only reads."""
    cpf_shown: bool = False
    """True if ``rows`` holds whole CPFs instead of masked ones."""
    file_findings: tuple[IntegrityFinding, ...] = ()
    """The findings about the files themselves, gravest first, where they were asked for."""
    verification: Verified | None = None
    """The verification of contents before this audit, ``None`` where none was made."""

    @cached_property
    def told(self) -> pd.DataFrame:
        """The sales behind the numbers: those of ``rows``, and then compliant ones."""
        return self._own(self.read_rows())

    @cached_property
    def rows(self) -> pd.DataFrame:
        """One row a sale that is not compliant; columns as in ``ROW_COLUMNS``, the gravest and oldest first."""
        return self.told.iloc[: (self.told["status"] != Status.COMPLIANT).sum()]

    @cached_property
    def warned(self) -> pd.DataFrame:
        """One row a compliant sale with a warning; columns as in ``rows``."""
        return self._compliant((self.told["problems"] != "") | self.told["clientId"].isna())

    @cached_property
    def unverified(self) -> pd.DataFrame:
        """The first compliant sales on files that are not fully verified; columns as in ``rows``."""
        return self._compliant(self.told[[*map(str, COVERAGES)]].sum(axis=1) > self.told[Coverage.VERIFIED])

    @cached_property
    def faults(self) -> pd.DataFrame:
        """The unusable files; columns as in ``toolkit.operations.judge.audit.details.faults_at``."""
        return self._own(self.read_faults())

    @cached_property
    def withdrawals(self) -> pd.DataFrame:
        """The withdrawn records with reason and people; columns as in ``details.withdrawals_at``."""
        return self._own(self.read_withdrawals())

    @cached_property
    def completions(self) -> pd.DataFrame:
        """One row a partner: ``partner``, ``completed`` sales, and the ``median_days`` until completion."""
        return self._own(self.read_completions())

    @cached_property
    def completed(self) -> pd.DataFrame:
        """The sales that were completed lately, see ``details.completed_at``, each with its ``status`` now."""
        found, open_sales = self._own(self.read_completed()), self.rows[["saleId", "status"]].astype(object)
        return found.merge(open_sales, on="saleId", how="left").fillna({"status": str(Status.COMPLIANT)})

    @cached_property
    def sales(self) -> int:
        """All sales."""
        return sum(row.sales for row in self._census)

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
        return sum(row.sales for row in self._census if not row.has_client)

    @cached_property
    def unexamined(self) -> int:
        """Files that count although nobody has looked into them yet."""
        return sum(row.unexamined for row in self._census)

    @cached_property
    def coverage(self) -> dict[Coverage, int]:
        """The counted files by the depth to which they were looked at."""
        return {each: sum(getattr(row, column) for row in self._census) for each, column in COVERAGES.items()}

    @cached_property
    def compliant_verified(self) -> int:
        """Compliant sales of which every counted file was verified; the others are so on first bytes only."""
        return sum(row.sales for row in self._census if row.status == Status.COMPLIANT and row.fully_verified)

    @cached_property
    def compliant_on_replaced(self) -> int:
        """Compliant sales with a file that was replaced after it had been seen, where findings were asked for."""
        replaced = [each.sale_ids for each in self.file_findings if each.problem is IntegrityProblem.OVERWRITTEN]
        return len(set().union(*replaced).difference(self.rows["saleId"])) if replaced else 0

    @cached_property
    def by_group(self) -> pd.DataFrame:
        """Sales by ``utilityGroup``, one column a ``Status``; all groups that the contract lacks are one row."""
        found = Counter[tuple[str, str]]()
        for row in self._census:
            found[row.utility_group, row.status] += row.sales
        unknown = [UNKNOWN_GROUP] if any(group == UNKNOWN_GROUP for group, _ in found) else []
        return _grid(found, "utilityGroup", [*UtilityGroup, *unknown], list(Status))

    @cached_property
    def missing(self) -> pd.DataFrame:
        """Sales that lack each ``evidenceType``, one column a ``Reason``."""
        found = Counter[tuple[str, str]]()
        for row in self._census:
            for piece in zip(items(row.missing), items(row.reasons), strict=True):
                found[piece] += row.sales
        demanded = {requirement.named for rules in GROUP_RULES.values() for requirement in rules}
        return _grid(found, "evidenceType", [each for each in EvidenceType if each in demanded], list(Reason))

    @cached_property
    def problems(self) -> pd.DataFrame:
        """Sales with each problem, gravest first: ``problem``, ``severity``, ``sales``."""
        found = Counter[str]()
        for row in self._census:
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

    @cached_property
    def partners(self) -> pd.DataFrame:
        """The scoreboard: one row a ``partner``, those with the most overdue findings first.

        ``sales``, ``compliant``, ``incomplete``, ``conflict``; ``findings`` (open and reopened), ``overdue``,
        ``waived``; ``trend``, the findings that it has more than when the trend began; ``medianDays`` from
        creation to completion of its completed sales, null where there are none.
        """
        found: dict[str, Counter[str]] = {}
        for row in self._census:
            board = found.setdefault(_named(row.partner), Counter())
            board.update({"sales": row.sales, row.status: row.sales})
        for name, status, overdue, number in self.life.tally.itertuples(index=False, name=None):
            board = found.setdefault(_named(name), Counter())
            if status != FindingStatus.RESOLVED:
                board["waived" if status == FindingStatus.WAIVED else "findings"] += number
            board["overdue"] += number * overdue
        for name, present in self.life.trends.groupby("partner")["present"]:
            found.setdefault(str(name), Counter())["trend"] = int(present.iloc[-1] - present.iloc[0])
        days = {_named(row.partner): row.median_days for row in self.completions.itertuples(index=False)}
        names = ["sales", *map(str, Status), "findings", "overdue", "waived", "trend"]
        order = sorted(found.items(), key=lambda item: (-item[1]["overdue"], -item[1]["findings"], item[0]))
        rows = [
            {"partner": name, **{each: board[each] for each in names}, "medianDays": days.get(name)}
            for name, board in order
            if board["sales"] or board["findings"]
        ]
        return pd.DataFrame(rows, columns=["partner", *names, "medianDays"])

    def evaluated(self) -> Self:
        """Return the same result, unless there is nothing in it.

        Raises:
            NothingEvaluated: it holds no sale.
        """
        if self.sales:
            return self
        if self.of_now:
            raise NothingEvaluated(_NO_SALES)
        place, moment = self.source.snapshot or self.source.database, self.as_of.isoformat(timespec="seconds")
        raise NothingEvaluated(f"Nothing was evaluated: no sale had been seen by {moment} in {place}.")

    def for_partner(self, name: str) -> Self:
        """Return the same audit as if the service held the sales of this partner only.

        Raises:
            InvalidInput: no sale names this partner.
        """
        if name not in set(self.counts["partner"].dropna()):
            raise InvalidInput(f"No sale names the partner {name!r}; names are written exactly as in the sales.")

        own = replace(self, partner=name)
        findings = own._own(self.life.findings)
        sales = set(findings["saleId"])
        ids = set(findings["id"])
        return replace(
            own,
            counts=own._own(self.counts),
            open_by_age=own._own(self.open_by_age),
            life=self.life.only(findings, name),
            file_findings=tuple(
                restricted
                for finding in self.file_findings
                if any(each in ids for each, _ in file_finding_ids(finding))
                for restricted in [finding.only(sales)]
            ),
        )

    def _own(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of the partner, where everything is restricted to one."""
        return table if self.partner is None else table[table["partner"] == self.partner].reset_index(drop=True)

    def _compliant(self, wanted: "pd.Series[bool]") -> pd.DataFrame:
        return self.told[wanted & (self.told["status"] == Status.COMPLIANT)].reset_index(drop=True)

    def _with_status(self, status: Status) -> int:
        return sum(row.sales for row in self._census if row.status == status)

    @cached_property
    def _census(self) -> list[Any]:
        return list(self.counts.itertuples(index=False))


def _named(partner: object) -> str:
    """Return the name on the scoreboard; sales without a partner are one row without a name."""
    return partner if isinstance(partner, str) else ""


def _grid(found: Counter[tuple[str, str]], name: str, rows: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """Return every row with every column, also where nothing was found."""
    return pd.DataFrame(
        [{name: str(row), **{str(column): found[row, column] for column in columns}} for row in rows]
    )
