"""The numbers and lists of an audit, of all partners or of one: values that were read once, and nothing else."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.audit.judge import COVERAGES
from toolkit.audit.source import Looks, Source
from toolkit.contract.codes import CODES, Owner, Severity, Subject
from toolkit.contract.contents import Coverage, IntegrityFinding, IntegrityProblem
from toolkit.contract.findings import FindingStatus, Status
from toolkit.contract.waivers import Waiver
from toolkit.errors import NothingEvaluated
from toolkit.reports.totals import Totals

CASES: Final = 20_000
"""The sales whose records and time lines are read, the gravest and oldest ones."""

ENDS_SOON: Final = 14
"""Days before the end of a waiver in which reports warn of it."""

OF_FINDINGS: Final = ("dueAt", "overdue", "open", "critical", "waived", "owners")
"""The columns that ``acting`` has beside those of the sales."""

_NEVER: Final = np.datetime64("9999-12-31", "us")
_STANDING: Final = [str(FindingStatus.OPEN), str(FindingStatus.REOPENED)]

NO_SALES: Final = (
    "Nothing was evaluated: there is no sale in the service's table, or none that this database user may see. "
    "Check DATABASE_URL, row level security and the statements of the service; sales come into an embedded "
    "database by: toolkit sales load"
)


@dataclass(frozen=True, eq=False)
class Compared:
    """The ids of findings by what happened since the audit before: new, resolved or reopened."""

    start: datetime
    end: datetime
    new: pa.Array
    resolved: pa.Array
    reopened: pa.Array
    without_sale: pa.Array
    """Those of ``resolved`` that nobody mended: their sale was gone when an audit looked."""
    still_open: int
    """The number of findings of then that are still there."""

    @property
    def counts(self) -> dict[str, int]:
        """The number of findings of each kind."""
        changed = {kind: len(getattr(self, kind)) for kind in ("new", "resolved", "reopened")}
        return {**changed, "open": self.still_open}

    def only(self, findings: pd.DataFrame) -> Compared:
        """Return what happened to these findings, which are all that there are."""
        kept = pa.array(findings["id"].astype(object), pa.large_string())
        new, resolved, reopened, gone = (
            each.filter(pc.is_in(each, kept))
            for each in (self.new, self.resolved, self.reopened, self.without_sale)
        )
        still = int((findings["status"] != FindingStatus.RESOLVED).sum()) - len(new) - len(reopened)
        return Compared(self.start, self.end, new, resolved, reopened, gone, still)


@dataclass(frozen=True, eq=False)
class Audited(Totals):
    """All sales judged as of one moment, or those of one partner."""

    as_of: datetime
    made_at: datetime
    source: Source
    told: pd.DataFrame
    """The sales behind the numbers, columns as in ``ROW_COLUMNS``: first those that are not compliant, the gravest
    and oldest first, then compliant ones with a warning or a finding, or on files not fully verified."""
    findings: pd.DataFrame
    """One row a finding with its history; resolved ones come last."""
    trends: pd.DataFrame
    """The last days: ``partner``, ``day``, ``present``, ``came``, ``went``."""
    compared: Compared | None
    """The changes since the audit before, ``None`` where there is none."""
    waivers: tuple[Waiver, ...]
    """The waivers that hold on the day of the audit."""
    file_findings: tuple[IntegrityFinding, ...]
    """The findings about the files themselves, gravest first."""
    faults: pd.DataFrame
    """The unusable files, the latest first."""
    withdrawals: pd.DataFrame
    """The withdrawn records with reason and people, the latest first."""
    latest_completed: pd.DataFrame
    """The sales that were completed lately: ``saleId``, ``partner``, ``completedAt``."""
    completions: pd.DataFrame
    """One row a partner: ``partner`` and the ``median_days`` from creation to completion."""
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

    @cached_property
    def completed(self) -> pd.DataFrame:
        """The sales that were completed lately, each with its ``status`` now."""
        found, open_sales = self.latest_completed, self.rows[["saleId", "status"]].astype(object)
        return found.merge(open_sales, on="saleId", how="left").fillna({"status": str(Status.COMPLIANT)})

    @cached_property
    def compliant_on_replaced(self) -> int:
        """Compliant sales with a file that was replaced after it had been seen."""
        replaced = [each.sale_ids for each in self.file_findings if each.problem is IntegrityProblem.OVERWRITTEN]
        return len(set().union(*replaced).difference(self.rows["saleId"])) if replaced else 0

    @cached_property
    def acting(self) -> pd.DataFrame:
        """The sales of ``told``, each with what its findings say, in ``OF_FINDINGS``.

        The next deadline, how many are overdue, open, critical and waived, and who has to act on the open ones.
        """
        findings, rows = self.findings, self.told
        wanted = ["saleId", "status", "severity", "dueAt", "overdue", "owner"]
        own = findings.loc[findings["status"].isin([*_STANDING, str(FindingStatus.WAIVED)]), wanted]
        at = pc.index_in(pa.array(own["saleId"], pa.large_string()), pa.array(rows["saleId"], pa.large_string()))
        own = own[at.is_valid().to_numpy(zero_copy_only=False)]  # others are about sales that are no longer told
        at = at.drop_null().to_numpy()
        standing = own["status"].isin(_STANDING).to_numpy(dtype=bool)
        due = np.full(len(rows), _NEVER)
        np.minimum.at(due, at[standing], own["dueAt"].to_numpy(dtype="datetime64[us]")[standing])

        def number(which: np.ndarray[Any, np.dtype[np.bool_]]) -> np.ndarray[Any, np.dtype[np.int64]]:
            return np.bincount(at[which], minlength=len(rows))

        people = pa.table(
            {"at": at[standing], "owner": pa.array(own["owner"].astype(object)[standing], pa.string())}
        )
        owners = people.group_by("at", use_threads=False).aggregate([("owner", "distinct")]).sort_by("at")
        acting = pd.Series("", rows.index, dtype=object)
        acting.iloc[owners["at"].to_numpy()] = pc.binary_join(owners["owner_distinct"], "|").to_pylist()
        return rows.assign(
            dueAt=pd.Series(due, rows.index).mask(due == _NEVER).dt.tz_localize("UTC"),
            overdue=number(own["overdue"].to_numpy(dtype=bool)),
            open=number(standing),
            critical=number(standing & (own["severity"] == Severity.CRITICAL).to_numpy(dtype=bool)),
            waived=number(~standing),
            owners=acting,
        )

    @cached_property
    def tally(self) -> pd.DataFrame:
        """The number of findings by ``partner``, ``status`` and ``overdue``."""
        keys = self.findings[["partner", "status", "overdue"]]
        return keys.groupby(list(keys), dropna=False, observed=True).size().rename("findings").reset_index()

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

    @cached_property
    def ending(self) -> tuple[Waiver, ...]:
        """The waivers that end within ``ENDS_SOON`` days."""
        return tuple(each for each in self.waivers if each.days_left(self.today) <= ENDS_SOON)

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
        for name, status, overdue, number in self.tally.itertuples(index=False, name=None):
            board = found.setdefault(_named(name), Counter())
            if status != FindingStatus.RESOLVED:
                board["waived" if status == FindingStatus.WAIVED else "findings"] += number
            board["overdue"] += number * overdue
        for name, present in self.trends.groupby("partner")["present"]:
            found.setdefault(str(name), Counter())["trend"] = int(present.iloc[-1] - present.iloc[0])
        days = {_named(row.partner): row.median_days for row in self.completions.itertuples(index=False)}
        names = ["sales", *map(str, Status), "findings", "overdue", "waived", "trend"]
        order = sorted(found.items(), key=lambda item: (-item[1]["overdue"], -item[1]["findings"], item[0]))
        rows = [
            {"partner": name, **{each: board[each] for each in names}, "medianDays": days.get(name)}
            | ({"trend": None} if self.partner is not None and self.trends.empty else {})
            for name, board in order
            if board["sales"] or board["findings"]
        ]
        return pd.DataFrame(rows, columns=["partner", *names, "medianDays"])

    def as_the_partner_sees_it(self) -> Audited:
        """Return the same without what is compliance's own: its suspicions about files, and the names of people.

        The days behind are left out with them: their counts hold those suspicions.
        """
        own = [code for code, each in CODES.items() if each.subject is Subject.FILE]
        own = [code for code in own if CODES[code].owner is Owner.COMPLIANCE]
        told = tuple(each for each in self.file_findings if str(each.problem) not in own)
        named = {sale_id for each in told for sale_id in each.sale_ids}
        looked_at = self.told[[*map(str, COVERAGES)]].sum(axis=1) == self.told[Coverage.VERIFIED]
        clean = (self.told["status"] == Status.COMPLIANT) & (self.told["problems"] == "") & looked_at
        clean &= self.told["clientId"].notna() & ~self.told["saleId"].isin(named)
        findings = self.findings[~self.findings["code"].isin(own)].reset_index(drop=True)
        compared = None if self.compared is None else self.compared.only(findings)
        used = set(findings["waiverId"].dropna())
        waivers = tuple(
            replace(each, request=replace(each.request, owner="", approved_by=""), revoked_by=None)
            for each in self.waivers
            if str(each.id) in used
        )
        nobody = pa.array(["-"] * len(self.records), pa.string())
        people = {"withdrawn_by": nobody, "approved_by": nobody}

        return replace(
            self,
            told=self.told[~clean].reset_index(drop=True),
            findings=findings,
            file_findings=told,
            compared=compared,
            waivers=waivers,
            withdrawals=self.withdrawals.assign(withdrawnBy=None, approvedBy=None),
            trends=self.trends.iloc[:0],
            records=pa.table(dict(zip(self.records.column_names, self.records.columns, strict=True)) | people),
        )

    def evaluated(self) -> Audited:
        """Return the same, unless there is no sale in it.

        Raises:
            NothingEvaluated: it holds no sale.
        """
        if self.sales:
            return self
        if self.of_now:
            raise NothingEvaluated(NO_SALES)
        moment = self.as_of.isoformat(timespec="seconds")
        raise NothingEvaluated(
            "Nothing was evaluated: no sale had been seen by {} in {}.", moment, self.source.database
        )

    def _compliant(self, wanted: pd.Series[bool]) -> pd.DataFrame:
        return self.told[wanted & (self.told["status"] == Status.COMPLIANT)].reset_index(drop=True)


def _named(partner: object) -> str:
    """Return the name on the scoreboard; sales without a partner are one row without a name."""
    return partner if isinstance(partner, str) else ""
