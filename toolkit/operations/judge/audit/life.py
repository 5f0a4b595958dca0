"""The findings of an audit with their status and dates, the changes, the trend and the waivers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final

import pandas as pd

from toolkit.domain.codes import CODES, Subject
from toolkit.domain.deadlines import Deadlines
from toolkit.domain.finding_life import FindingStatus
from toolkit.domain.waivers import Waiver
from toolkit.operations.judge.audit.present import COLUMNS as PRESENT
from toolkit.operations.judge.findings.changes import TREND, Changes, all_partners, changes_between, trends
from toolkit.operations.judge.findings.history import audits_until, lives_at
from toolkit.operations.judge.findings.living import COLUMNS, living, places_in
from toolkit.operations.judge.findings.waivers import waivers_at
from toolkit.storage.reader import Place

TREND_DAYS: Final = 30
"""Days of the trend, the last one included."""

ENDS_SOON: Final = 14
"""Days before the end of a waiver in which reports warn of it."""


@dataclass(frozen=True, eq=False)
class Life:
    """The findings of an audit and their history up to its moment."""

    read: Callable[[], tuple[pd.DataFrame, pd.DataFrame]]
    """Reads ``findings`` and ``trends``; what was noted up to the moment stays, so that it may be asked later."""
    read_changes: Callable[[], Changes | None]
    """Reads ``changes`` likewise."""
    waivers: tuple[Waiver, ...]
    """The waivers that hold on the day of the audit."""
    ending: tuple[Waiver, ...]
    """Those of them that end within ``ENDS_SOON`` days."""

    @cached_property
    def _lists(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        return self.read()

    @property
    def findings(self) -> pd.DataFrame:
        """One row a finding, see ``toolkit.operations.judge.findings.living``; resolved ones come last."""
        return self._lists[0]

    @property
    def trends(self) -> pd.DataFrame:
        """The last days by partner, see ``toolkit.operations.judge.findings.changes.trends``."""
        return self._lists[1]

    @cached_property
    def changes(self) -> Changes | None:
        """The changes since the audit before, ``None`` where there is none."""
        return self.read_changes()

    def only(self, findings: pd.DataFrame, partner: str) -> Life:
        """Return the life of these findings, which are all that this partner has."""
        return Life(
            read=lambda: (findings, self.trends[self.trends["partner"] == partner].reset_index(drop=True)),
            read_changes=lambda: None if self.changes is None else self.changes.only(findings["id"]),
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
        found = self.findings["status"].value_counts()
        return {str(status): int(found.get(str(status), 0)) for status in FindingStatus} | {
            "overdue": int(self.findings["overdue"].sum())
        }


NO_LIFE: Final = Life(
    lambda: (pd.DataFrame(columns=list(COLUMNS)), pd.DataFrame(columns=list(TREND))), lambda: None, (), ()
)


def read_life(
    place: Place,
    of_sales: Callable[[], pd.DataFrame],
    of_files: pd.DataFrame | None,
    moment: datetime,
    deadlines: Deadlines,
) -> Life:
    """Read the lives of these findings; where nobody looked at files (``None``), those that were noted stand."""
    today = deadlines.day_of(moment)
    with place.snapshot() as connection:
        audits = audits_until(connection, moment)
        waivers = [each for each in waivers_at(connection, moment) if each.holds(today)]

    def read() -> tuple[pd.DataFrame, pd.DataFrame]:
        present = of_sales()
        with place.snapshot() as connection:
            lives = lives_at(connection, moment)
            of_any_file = _noted(lives) if of_files is None else of_files
            present = pd.concat([present, of_any_file], ignore_index=True)
            first, moved = today - timedelta(days=TREND_DAYS - 1), _moved(present, lives)
            by_day = trends(connection, first, moment, deadlines.timezone, moved)
        return living(present, lives, audits, waivers, moment, deadlines), by_day

    def read_changes() -> Changes | None:
        before = [each for each in audits if each < moment]
        return changes_between(place, before[-1], moment) if before else None

    return Life(
        read=read,
        read_changes=read_changes,
        waivers=tuple(waivers),
        ending=tuple(each for each in waivers if each.days_left(today) <= ENDS_SOON),
    )


def _noted(lives: pd.DataFrame) -> pd.DataFrame:
    """Return the findings about files that no audit has seen gone."""
    about_files = [code.code for code in CODES.values() if code.subject is Subject.FILE]
    return lives[lives["code"].isin(about_files) & lives["closed_at"].isna()].reindex(columns=list(PRESENT))


def _moved(present: pd.DataFrame, lives: pd.DataFrame) -> dict[str, str]:
    """Return the partner of each finding that was noted under another one, which the sale named then."""
    places = places_in(lives, present)
    known = present[places >= 0]
    now = known["partner"].astype("str").fillna("")
    moved = now != lives["partner"].take(places[places >= 0]).astype("str").fillna("").array
    return dict(zip(known.loc[moved, "id"], now[moved], strict=True))
