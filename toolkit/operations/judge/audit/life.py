"""The findings of an audit with their status and dates, the changes, the trend and the waivers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, cached_property
from typing import Final

import pandas as pd

from toolkit.domain.codes import CODES, Subject
from toolkit.domain.deadlines import Deadlines
from toolkit.domain.finding_life import FindingStatus
from toolkit.domain.waivers import Waiver
from toolkit.operations.judge.audit.present import COLUMNS as PRESENT
from toolkit.operations.judge.findings.changes import TREND, Changes, all_partners, changes_between, trends
from toolkit.operations.judge.findings.history import audits_until, lives_at, without_sale
from toolkit.operations.judge.findings.living import COLUMNS, living, places_in, tallied, tally
from toolkit.operations.judge.findings.waivers import waivers_at
from toolkit.storage.reader import Place

TREND_DAYS: Final = 30
"""Days of the trend, the last one included."""

ENDS_SOON: Final = 14
"""Days before the end of a waiver in which reports warn of it."""


@dataclass(frozen=True, eq=False)
class Life:
    """The findings of an audit and their history up to its moment; what was noted until then stays as it is."""

    read_findings: Callable[[], pd.DataFrame]
    read_tally: Callable[[], pd.DataFrame]
    read_trends: Callable[[], pd.DataFrame]
    read_changes: Callable[[], Changes | None]
    waivers: tuple[Waiver, ...]
    """The waivers that hold on the day of the audit."""
    ending: tuple[Waiver, ...]
    """Those of them that end within ``ENDS_SOON`` days."""

    @cached_property
    def findings(self) -> pd.DataFrame:
        """One row a finding, see ``toolkit.operations.judge.findings.living``; resolved ones come last."""
        return self.read_findings()

    @cached_property
    def tally(self) -> pd.DataFrame:
        """The number of findings by ``partner``, ``status`` and ``overdue``: ``findings``."""
        return self.read_tally()

    @cached_property
    def trends(self) -> pd.DataFrame:
        """The last days by partner, see ``toolkit.operations.judge.findings.changes.trends``."""
        return self.read_trends()

    @cached_property
    def changes(self) -> Changes | None:
        """The changes since the audit before, ``None`` where there is none."""
        return self.read_changes()

    def only(self, findings: pd.DataFrame, partner: str) -> Life:
        """Return the life of these findings, which are all that this partner has."""
        own = self.trends[self.trends["partner"] == partner].reset_index(drop=True)
        still = self.trend.assign(partner=partner, present=0, came=0, went=0)[list(TREND)]
        changes = None if self.changes is None else self.changes.only(findings["id"])
        waivers = set(findings["waiverId"])
        return Life(
            read_findings=lambda: findings,
            read_tally=lambda: tally(findings),
            read_trends=lambda: still if own.empty else own,
            read_changes=lambda: changes,
            waivers=tuple(each for each in self.waivers if str(each.id) in waivers),
            ending=tuple(each for each in self.ending if str(each.id) in waivers),
        )

    @property
    def trend(self) -> pd.DataFrame:
        """The last days, all partners together: ``day``, ``present``, ``came``, ``went``."""
        return all_partners(self.trends)

    @property
    def counts(self) -> dict[str, int]:
        """Findings by status, and ``overdue`` ones."""
        found = self.tally.groupby("status", observed=True)["findings"].sum()
        overdue = self.tally.loc[self.tally["overdue"].astype(bool), "findings"].sum()
        return {str(each): int(found.get(str(each), 0)) for each in FindingStatus} | {"overdue": int(overdue)}


NO_LIFE: Final = Life(
    lambda: pd.DataFrame(columns=list(COLUMNS)),
    lambda: tally(pd.DataFrame(columns=list(COLUMNS))),
    lambda: pd.DataFrame(columns=list(TREND)),
    lambda: None,
    (),
    (),
)


def read_life(
    place: Place,
    of_sales: Callable[[], pd.DataFrame],
    of_files: pd.DataFrame | None,
    moment: datetime,
    deadlines: Deadlines,
    standing: tuple[pd.DataFrame, int] | None = None,
) -> Life:
    """Read the lives of these findings; where nobody looked at files (``None``), those that were noted stand.

    What an audit of now left, see ``standing_findings``, is counted without reading the findings themselves.
    """
    today = deadlines.day_of(moment)
    with place.snapshot() as connection:
        audits = audits_until(connection, moment)
        waivers = [each for each in waivers_at(connection, moment) if each.holds(today)]

    @cache
    def listed() -> tuple[pd.DataFrame, dict[str, str]]:
        """Return the findings, and the partners of those that were noted under another one."""
        present = of_sales()
        with place.snapshot() as connection:
            lives = lives_at(connection, moment)
            gone = without_sale(connection, None, moment)
        lives["sale_gone"] = lives["closed_at"].notna() & lives["id"].isin(gone.to_pylist())
        present = pd.concat([present, _noted(lives) if of_files is None else of_files], ignore_index=True)
        return living(present, lives, audits, waivers, moment, deadlines), _moved(present, lives)

    def counted() -> pd.DataFrame:
        if standing is None:
            return tally(listed()[0])
        return tallied(*standing, waivers, moment, deadlines)

    def by_day() -> pd.DataFrame:
        moved = listed()[1] if standing is None else _moved_alone(standing[0])
        first = today - timedelta(days=TREND_DAYS - 1)
        with place.snapshot() as connection:
            return trends(connection, first, moment, deadlines.timezone, moved)

    def changed() -> Changes | None:
        before = [each for each in audits if each < moment]
        return changes_between(place, before[-1], moment) if before else None

    return Life(
        read_findings=lambda: listed()[0],
        read_tally=counted,
        read_trends=by_day,
        read_changes=changed,
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
    moved = now != lives["noted"].take(places[places >= 0]).astype("str").fillna("").array
    return dict(zip(known.loc[moved, "id"], now[moved], strict=True))


def _moved_alone(standing: pd.DataFrame) -> dict[str, str]:
    moved = standing[standing["id"].notna()]
    return dict(zip(moved["id"], moved["partner"].fillna(""), strict=True))
