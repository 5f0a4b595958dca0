"""The result of an audit: its totals and the lists behind them, of all partners or of one."""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Final, Self

import pandas as pd

from toolkit.domain.contents import Coverage
from toolkit.domain.finding_life import FindingStatus, file_finding_ids
from toolkit.domain.findings import Status
from toolkit.domain.integrity import IntegrityFinding, IntegrityProblem
from toolkit.errors import InvalidInput, NothingEvaluated
from toolkit.operations.judge.audit.expression import COVERAGES
from toolkit.operations.judge.audit.life import Life
from toolkit.operations.judge.audit.lists import Lists
from toolkit.operations.judge.audit.source import Source
from toolkit.operations.judge.audit.totals import Totals
from toolkit.operations.verify.contents.verification import Verified

_NO_SALES: Final = (
    "Nothing was evaluated: there is no sale in the service's table, or none that this database user may see. "
    "Check DATABASE_URL, row level security and the service map; sales come into an embedded database by: "
    "toolkit sales load"
)


@dataclass(frozen=True, eq=False)
class AuditResult(Totals):
    """All sales judged as of one moment."""

    as_of: datetime
    made_at: datetime
    source: Source
    lists: Lists
    """The lists behind the numbers, of all partners."""
    life: Life
    """The findings with their lives, what changed, the trend and the waivers."""
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
        return self._own(self.lists.sales)

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
        """The unusable files."""
        return self._own(self.lists.faults)

    @cached_property
    def withdrawals(self) -> pd.DataFrame:
        """The withdrawn records with reason and people."""
        return self._own(self.lists.withdrawals)

    @cached_property
    def completed(self) -> pd.DataFrame:
        """The sales that were completed lately, each with its ``status`` now."""
        found, open_sales = self._own(self.lists.completed), self.rows[["saleId", "status"]].astype(object)
        return found.merge(open_sales, on="saleId", how="left").fillna({"status": str(Status.COMPLIANT)})

    @cached_property
    def compliant_on_replaced(self) -> int:
        """Compliant sales with a file that was replaced after it had been seen, where findings were asked for."""
        replaced = [each.sale_ids for each in self.file_findings if each.problem is IntegrityProblem.OVERWRITTEN]
        return len(set().union(*replaced).difference(self.rows["saleId"])) if replaced else 0

    @cached_property
    def partners(self) -> pd.DataFrame:
        """The scoreboard: one row a ``partner``, those with the most overdue findings first.

        ``sales``, ``compliant``, ``incomplete``, ``conflict``; ``findings`` (open and reopened), ``overdue``,
        ``waived``; ``trend``, the findings that it has more than when the trend began; ``medianDays`` from
        creation to completion of its completed sales, null where there are none.
        """
        found: dict[str, Counter[str]] = {}
        for row in self.census:
            board = found.setdefault(_named(row.partner), Counter())
            board.update({"sales": row.sales, row.status: row.sales})
        for name, status, overdue, number in self.life.tally.itertuples(index=False, name=None):
            board = found.setdefault(_named(name), Counter())
            if status != FindingStatus.RESOLVED:
                board["waived" if status == FindingStatus.WAIVED else "findings"] += number
            board["overdue"] += number * overdue
        for name, present in self.life.trends.groupby("partner")["present"]:
            found.setdefault(str(name), Counter())["trend"] = int(present.iloc[-1] - present.iloc[0])
        days = {
            _named(row.partner): row.median_days
            for row in self._own(self.lists.completions).itertuples(index=False)
        }
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


def _named(partner: object) -> str:
    """Return the name on the scoreboard; sales without a partner are one row without a name."""
    return partner if isinstance(partner, str) else ""
