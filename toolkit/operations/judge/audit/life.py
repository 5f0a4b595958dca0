"""The findings of an audit with their status and dates, the changes, the trend and the waivers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import pandas as pd
from sqlalchemy import Connection

from toolkit.domain.codes import CODES, Subject
from toolkit.domain.deadlines import Deadlines
from toolkit.domain.finding_life import FindingStatus
from toolkit.domain.waivers import Waiver
from toolkit.operations.judge.audit.present import COLUMNS as PRESENT
from toolkit.operations.judge.findings.changes import TREND, Changes, all_partners, changes_seen, trends
from toolkit.operations.judge.findings.history import audits_until, lives_at
from toolkit.operations.judge.findings.living import COLUMNS, living
from toolkit.operations.judge.findings.waivers import waivers_at

TREND_DAYS: Final = 30
"""Days of the trend, the last one included."""

ENDS_SOON: Final = 14
"""Days before the end of a waiver in which reports warn of it."""


@dataclass(frozen=True, eq=False)
class Life:
    """The findings of an audit and their history up to its moment."""

    findings: pd.DataFrame
    """One row a finding, see ``toolkit.operations.judge.findings.living``; resolved ones come last."""
    changes: Changes | None
    """The changes since the audit before, ``None`` where there is none."""
    trends: pd.DataFrame
    """The last days by partner, see ``toolkit.operations.judge.findings.changes.trends``."""
    waivers: tuple[Waiver, ...]
    """The waivers that hold on the day of the audit."""
    ending: tuple[Waiver, ...]
    """Those of them that end within ``ENDS_SOON`` days."""

    def only(self, findings: pd.DataFrame, partner: str) -> Life:
        """Return the life of these findings, which are all that this partner has."""
        ids = set(findings["id"])
        return Life(
            findings=findings,
            changes=None if self.changes is None else self.changes.only(ids),
            trends=self.trends[self.trends["partner"] == partner].reset_index(drop=True),
            waivers=tuple(each for each in self.waivers if str(each.id) in set(findings["waiverId"])),
            ending=tuple(each for each in self.ending if str(each.id) in set(findings["waiverId"])),
        )

    @property
    def trend(self) -> pd.DataFrame:
        """The last days, all partners together: ``day``, ``present``, ``came``, ``went``."""
        return all_partners(self.trends)

    @property
    def counts(self) -> dict[str, int]:
        """Findings by status, and ``overdue`` ones."""
        found = Counter(self.findings["status"])
        return {str(status): found[str(status)] for status in FindingStatus} | {
            "overdue": int(self.findings["overdue"].sum())
        }


NO_LIFE: Final = Life(pd.DataFrame(columns=list(COLUMNS)), None, pd.DataFrame(columns=list(TREND)), (), ())


def read_life(
    connection: Connection,
    of_sales: pd.DataFrame,
    of_files: pd.DataFrame | None,
    moment: datetime,
    deadlines: Deadlines,
) -> Life:
    """Read the lives of these findings; where nobody looked at files (``None``), those that were noted stand."""
    lives = lives_at(connection, moment)
    if of_files is None:
        about_files = lives["code"].map(lambda code: CODES[code].subject is Subject.FILE).astype(bool)
        of_files = lives[about_files & lives["closed_at"].isna()].reindex(columns=list(PRESENT))
    audits = audits_until(connection, moment)
    waivers = [each for each in waivers_at(connection, moment) if each.holds(deadlines.day_of(moment))]
    before = [each for each in audits if each < moment]
    today = deadlines.day_of(moment)
    present = pd.concat([of_sales, of_files], ignore_index=True)
    return Life(
        findings=living(present, lives, audits, waivers, moment, deadlines),
        changes=changes_seen(connection, before[-1], moment) if before else None,
        trends=trends(connection, today - timedelta(days=TREND_DAYS - 1), moment, deadlines.timezone),
        waivers=tuple(waivers),
        ending=tuple(each for each in waivers if each.days_left(today) <= ENDS_SOON),
    )
