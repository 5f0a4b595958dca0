"""The findings of an audit with their status and dates, the changes, the trend and the waivers."""
# mypy: disable-error-code="override"
# It takes a cached property, which is an attribute once it was read, for one that cannot stand for an attribute.

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import Final

import pandas as pd

from toolkit.domain.codes import CODES, Subject
from toolkit.domain.deadlines import Deadlines
from toolkit.domain.finding_life import FindingStatus
from toolkit.domain.waivers import Waiver
from toolkit.operations.judge.audit.lists import Lists
from toolkit.operations.judge.audit.present import COLUMNS as PRESENT
from toolkit.operations.judge.audit.present import present_findings
from toolkit.operations.judge.findings.changes import TREND, Changes, all_partners, changes_between, trends
from toolkit.operations.judge.findings.history import audits_until, lives_at, without_sale
from toolkit.operations.judge.findings.living import living, places_in, tallied, tally
from toolkit.operations.judge.findings.waivers import waivers_at
from toolkit.storage.reader import Place

TREND_DAYS: Final = 30
"""Days of the trend, the last one included."""

ENDS_SOON: Final = 14
"""Days before the end of a waiver in which reports warn of it."""


class Life:
    """The findings of an audit and their history up to its moment."""

    findings: pd.DataFrame
    """One row a finding, see ``toolkit.operations.judge.findings.living``; resolved ones come last."""
    tally: pd.DataFrame
    """The number of findings by ``partner``, ``status`` and ``overdue``: ``findings``."""
    trends: pd.DataFrame
    """The last days by partner, see ``toolkit.operations.judge.findings.changes.trends``."""
    changes: Changes | None
    """The changes since the audit before, ``None`` where there is none."""
    waivers: tuple[Waiver, ...]
    """The waivers that hold on the day of the audit."""
    ending: tuple[Waiver, ...]
    """Those of them that end within ``ENDS_SOON`` days."""

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

    def only(self, findings: pd.DataFrame, partner: str) -> Life:
        """Return the life of these findings, which are all that this partner has."""
        own = self.trends[self.trends["partner"] == partner].reset_index(drop=True)
        still = self.trend.assign(partner=partner, present=0, came=0, went=0)[list(TREND)]
        waivers = set(findings["waiverId"])
        return KnownLife(
            findings,
            trends=still if own.empty else own,
            changes=None if self.changes is None else self.changes.only(findings["id"]),
            waivers=tuple(each for each in self.waivers if str(each.id) in waivers),
            ending=tuple(each for each in self.ending if str(each.id) in waivers),
        )


@dataclass(frozen=True, eq=False)
class KnownLife(Life):
    """The life of findings that are known already."""

    findings: pd.DataFrame
    trends: pd.DataFrame
    changes: Changes | None = None
    waivers: tuple[Waiver, ...] = ()
    ending: tuple[Waiver, ...] = ()

    @cached_property
    def tally(self) -> pd.DataFrame:
        """The findings, counted."""
        return tally(self.findings)


@dataclass(frozen=True, eq=False)
class ReadLife(Life):
    """The life of the findings that an audit saw, read when it is asked for: what was noted by then stays."""

    place: Place
    lists: Lists
    of_files: pd.DataFrame | None
    """The findings about files in the columns of ``present``; where nobody looked, those that were noted stand."""
    moment: datetime
    deadlines: Deadlines
    standing: tuple[pd.DataFrame, int] | None = None
    """The findings that an audit of now left, see ``standing_findings``: counted without reading them."""

    @cached_property
    def findings(self) -> pd.DataFrame:
        """Those that the audit sees with their lives, and those that are gone."""
        return self._listed[0]

    @cached_property
    def tally(self) -> pd.DataFrame:
        """The findings, counted."""
        if self.standing is None:
            return tally(self.findings)
        return tallied(*self.standing, self.waivers, self.moment, self.deadlines)

    @cached_property
    def trends(self) -> pd.DataFrame:
        """The last ``TREND_DAYS``."""
        moved = self._listed[1] if self.standing is None else _moved_alone(self.standing[0])
        first = self._today - timedelta(days=TREND_DAYS - 1)
        with self.place.snapshot() as connection:
            return trends(connection, first, self.moment, self.deadlines.timezone, moved)

    @cached_property
    def changes(self) -> Changes | None:
        """The changes since the last of the audits before this moment."""
        before = [each for each in self._audits if each < self.moment]
        return changes_between(self.place, before[-1], self.moment) if before else None

    @cached_property
    def waivers(self) -> tuple[Waiver, ...]:
        """Those that had been added by the moment."""
        with self.place.snapshot() as connection:
            return tuple(each for each in waivers_at(connection, self.moment) if each.holds(self._today))

    @cached_property
    def ending(self) -> tuple[Waiver, ...]:
        """Those of them that end soon."""
        return tuple(each for each in self.waivers if each.days_left(self._today) <= ENDS_SOON)

    @property
    def _today(self) -> date:
        return self.deadlines.day_of(self.moment)

    @cached_property
    def _audits(self) -> list[datetime]:
        with self.place.snapshot() as connection:
            return audits_until(connection, self.moment)

    @cached_property
    def _listed(self) -> tuple[pd.DataFrame, dict[str, str]]:
        """The findings, and the partners of those that were noted under another one."""
        present = present_findings(self.lists.sales)
        with self.place.snapshot() as connection:
            lives = lives_at(connection, self.moment)
            gone = without_sale(connection, None, self.moment)
        lives["sale_gone"] = lives["closed_at"].notna() & lives["id"].isin(gone.to_pylist())
        of_files = _noted(lives) if self.of_files is None else self.of_files
        present = pd.concat([present, of_files], ignore_index=True)
        found = living(present, lives, self._audits, self.waivers, self.moment, self.deadlines)
        return found, _moved(present, lives)


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
