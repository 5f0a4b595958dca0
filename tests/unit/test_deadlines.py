"""Deadlines count business days of Brazil, by code and group, in the time zone of the settings."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.contract.deadlines import Deadlines, business_days, due_on
from toolkit.errors import SettingsError
from toolkit.settings import Settings

SAO_PAULO = ZoneInfo("America/Sao_Paulo")


@pytest.mark.parametrize(
    ("opened", "days", "due"),
    [
        ("2026-11-16", 3, "2026-11-19"),  # Monday to Thursday
        ("2026-11-19", 1, "2026-11-23"),  # the 20th is a holiday, then a week-end
        ("2026-12-30", 2, "2027-01-04"),  # across the year: the 31st, then the 4th
        ("2026-11-21", 1, "2026-11-23"),  # a Saturday
        ("2026-11-16", 0, "2026-11-16"),
        ("2026-02-13", 3, "2026-02-18"),  # carnival is no national holiday
        ("2026-06-03", 2, "2026-06-05"),  # nor is Corpus Christi
        ("2026-07-08", 1, "2026-07-09"),  # nor are the days of the states
        ("2026-11-14", 0, "2026-11-14"),  # no time at all: the day itself, even at a week-end
    ],
)
def test_week_ends_and_holidays_do_not_count(opened, days, due):
    assert due_on(date.fromisoformat(opened), days) == date.fromisoformat(due)


@given(start=st.dates(date(2020, 1, 1), date(2030, 1, 1)), days=st.integers(0, 60))
def test_the_days_until_a_deadline_are_those_that_were_given(start, days):
    due = due_on(start, days)
    assert business_days(start, due) == days
    assert business_days(due, start) == -days


def test_a_deadline_ends_with_its_day_in_the_zone_of_the_settings():
    deadlines = Deadlines(SAO_PAULO, {"MISSING_POV": 1, "MISSING_POV/D": 0})
    late_in_utc = datetime(2026, 11, 18, 1, 30, tzinfo=UTC)  # still the 17th in São Paulo

    assert deadlines.due_at(late_in_utc, "MISSING_POV", "A").isoformat() == "2026-11-18T23:59:59-03:00"
    assert deadlines.due_at(late_in_utc, "MISSING_POV", "D").isoformat() == "2026-11-17T23:59:59-03:00"
    assert deadlines.days("GROUP_UNKNOWN", "E") == 2


def test_settings_name_codes_of_findings():
    settings = Settings.from_environment({"TOOLKIT_DEADLINES": "MISSING_POV=3, MISSING_AUT/D=10"})
    assert settings.deadlines == {"MISSING_POV": 3, "MISSING_AUT/D": 10}
    for wrong in ("POV=3", "EXPIRED=3", "MISSING_POV", "MISSING_POV=-1"):
        with pytest.raises(SettingsError, match="TOOLKIT_DEADLINES"):
            Settings.from_environment({"TOOLKIT_DEADLINES": wrong})
